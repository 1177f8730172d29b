"""What all declarations are made of: frozen values without unknown keys, and the numbers in them."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Length = Annotated[int, Field(ge=3)]  # a word between two special tokens
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""A seed that every library takes."""
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]


class Contradiction(ValueError):
    """A value that does not go with another one; `at` is where it stands below the value that is checked."""

    def __init__(self, message: str, *at: str | int) -> None:
        super().__init__(message)
        self.at = at


class FrozenConfig(BaseModel):
    """Base of everything that is declared: unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Settings(FrozenConfig):
    """Base of the settings of a run, whose command-line options follow from their fields.

    The text below a field is its description, and the help of its option.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)


@dataclass(frozen=True)
class Flag:
    """How a setting appears on the command line, where its name and type do not say it.

    Attributes:
        name: its flag; by default `--` and the name of the field.
        metavar: how its value is called in the help.
        complete: kind of names that a shell completes, such as `encoders` or `task`.
        comma: whether several values are one word with commas, rather than a repeated flag.
    """

    name: str | None = None
    metavar: str | None = None
    complete: str | None = None
    comma: bool = False
