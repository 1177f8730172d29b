"""Base classes and number types for declarations: frozen values without unknown keys."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _require_name(value: str) -> str:
    if not value.strip():
        raise ValueError("expected a name")  # an empty path is the current folder
    return value


Name = Annotated[str, AfterValidator(_require_name)]
"""A name or a path, which is not empty."""
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Length = Annotated[int, Field(ge=3)]  # a word between two special tokens
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""A seed that every library takes."""
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Contradiction(ValueError):
    """A value that contradicts another one; `at` is its place below the checked value."""

    def __init__(self, message: str, *at: str | int) -> None:
        super().__init__(message)
        self.at = at


class FrozenConfig(BaseModel):
    """Base class for declarations: unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Settings(FrozenConfig):
    """Base class for run settings: the text below a field is the help of its command-line option."""

    model_config = ConfigDict(use_attribute_docstrings=True)


@dataclass(frozen=True)
class Flag:
    """How a setting appears on the command line.

    Attributes:
        name: its flag; empty for `--` and the name of the field.
        kind: `paths`, `folders` or `encoders`, which runs hold as absolute paths where they are local.
        comma: whether a repeated flag also takes lists with commas: not where a value may have a comma, as a path may.
    """

    name: str = ""
    metavar: str | None = None
    kind: str | None = None
    comma: bool = False
