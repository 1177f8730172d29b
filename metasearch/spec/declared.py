"""The base of everything that is declared."""

from pydantic import BaseModel, ConfigDict


class Contradiction(ValueError):
    """A value that does not go with another one; `at` is where it stands below the value that is checked."""

    def __init__(self, message: str, *at: str | int) -> None:
        super().__init__(message)
        self.at = at


class Declared(BaseModel):
    """Base of everything that is declared: unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)
