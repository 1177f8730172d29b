"""What was found: a line that is in order, one to know of, or a problem with its exit code."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from metasearch.errors import MetasearchError

State = Literal["ok", "note", "bad"]


@dataclass(frozen=True)
class Finding:
    """One line.

    Attributes:
        about: what was looked at, such as `torch` or `log.jsonl`.
        found: what it is, what is wrong with it, or how to get what is missing.
        state: `ok`; `note` for what is missing and need not be there; `bad` for a problem.
        code: exit code of a problem, else 0.
    """

    about: str
    found: str
    state: State = "ok"
    code: int = 0


@dataclass(frozen=True)
class Section:
    """Findings about one thing, such as a folder."""

    title: str
    findings: Sequence[Finding]


def note(about: str, found: str) -> Finding:
    """Return what is to be known and is no problem."""
    return Finding(about, found, "note")


def bad(about: str, error: MetasearchError) -> Finding:
    """Return the problem that an error tells of, in one line."""
    return Finding(about, " ".join(str(error).split()), "bad", error.exit_code)


def checked(about: str, check: Callable[[], str]) -> Finding:
    """Return what a check returns, or the problem where it raises an error of metasearch."""
    try:
        return Finding(about, check())
    except MetasearchError as error:
        return bad(about, error)


def worst(sections: Sequence[Section]) -> int:
    """Return the highest exit code of all problems; 0 where there is none."""
    return max((finding.code for section in sections for finding in section.findings), default=0)
