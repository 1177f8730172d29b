"""Findings of checks, such as `metasearch doctor` shows, each in one line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from metasearch.errors import MetasearchError


@dataclass(frozen=True)
class Finding:
    """One line: the checked thing, its value or problem, and the exit code of a problem."""

    about: str
    found: str
    state: Literal["ok", "note", "bad"] = "ok"
    code: int = 0


@dataclass(frozen=True)
class Section:
    """Findings about one thing, such as a folder."""

    title: str
    findings: Sequence[Finding]


def examine(about: str, read: Callable[[], str]) -> Finding:
    """Return a check's result, or the problem that it raises, in one line."""
    try:
        return Finding(about, read())
    except MetasearchError as error:
        return bad(about, error)


def bad(about: str, error: MetasearchError) -> Finding:
    """Return the problem that an error reports, in one line."""
    return Finding(about, " ".join(str(error).split()), "bad", error.exit_code)
