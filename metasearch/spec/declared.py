"""What all declarations are made of: frozen values without unknown keys, and the numbers in them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Length = Annotated[int, Field(ge=3)]  # a word between two special tokens
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]


class Contradiction(ValueError):
    """A value that does not go with another one; `at` is where it stands below the value that is checked."""

    def __init__(self, message: str, *at: str | int) -> None:
        super().__init__(message)
        self.at = at


class Declared(BaseModel):
    """Base of everything that is declared: unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)
