"""Problems in documents, with file and line, so one bad document does not stop the others."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

_MOST = 20
"""Skipped rows of a document that get a line each."""


class Problem(NamedTuple):
    """Something that cannot be read.

    Attributes:
        outcome: what happens instead, such as `row skipped`.
        message: file, line and value, and what is wrong.
    """

    outcome: str
    message: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.message}"


@dataclass
class Notes:
    """Skipped, changed or wrong parts of a document.

    Attributes:
        counts: in words → how often.
        problems: what cannot be read, the first rows among it.
        rows: rows that cannot be read.
    """

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    rows: int = 0

    def skip_row(self, message: str) -> None:
        """Note a row that cannot be read, and is not."""
        self.rows += 1
        if self.rows <= _MOST:
            self.problems.append(Problem("row skipped", message))

    def add(self, outcome: str, message: str) -> None:
        """Record a part that is not read as the document declares."""
        self.problems.append(Problem(outcome, message))

    def close(self, file: str) -> None:
        """Note how many rows have no line of their own; `file` is the document's name."""
        if self.rows > _MOST:
            self.problems.append(Problem("rows skipped", f"{file}: {self.rows - _MOST:,} more"))
