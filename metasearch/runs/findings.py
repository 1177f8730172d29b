"""Findings of checks, such as `metasearch doctor` shows, each in one line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from metasearch.errors import MetasearchError


@dataclass(frozen=True)
class Finding:
    """One line: the checked thing, its value or problem, and the exit code of a problem."""

    about: str
    found: str
    state: Literal["ok", "note", "bad"] = "ok"
    code: int = 0

    @classmethod
    def of(cls, about: str, read: Callable[[], str]) -> Self:
        """Return a check's result, or the problem that it raises."""
        try:
            return cls(about, read())
        except MetasearchError as error:
            return cls.of_error(about, error)

    @classmethod
    def of_error(cls, about: str, error: MetasearchError) -> Self:
        """Return the problem that an error reports."""
        return cls(about, " ".join(str(error).split()), "bad", error.exit_code)


@dataclass(frozen=True)
class Section:
    """Findings about one thing, such as a folder."""

    title: str
    findings: Sequence[Finding]
