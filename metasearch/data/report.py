"""Line counts for files where damaged lines are dropped."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from metasearch.errors import DataError

EXAMPLES = 3
"""Places that are named of each reason to leave a line out, and files that are named of those passed over."""


@dataclass
class Report:
    """Line counts.

    Attributes:
        read: lines that were read.
        dropped: reason such as `no tab` → number of lines or pairs dropped for it.
        examples: the first few places of each reason in each file, as `file:line: reason`.
        ignored: files that are not training text, such as `README` or `en-de-dev.tsv`.
    """

    read: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    ignored: tuple[str, ...] = ()

    @property
    def kept(self) -> int:
        """Lines that became pairs."""
        return self.read - self.dropped.total()

    def drop(self, reason: str, place: str = "") -> None:
        """Count a dropped line; remember its place, `file:line`, for the first few per reason."""
        self.dropped[reason] += 1
        if place and self.dropped[reason] <= EXAMPLES:
            self.examples.append(f"{place}: {reason}")

    def require_pairs(self, path: Path) -> None:
        """Raise `DataError` where no line of a file became a pair."""
        if not self.kept:
            why = ", ".join(f"{count} {reason}" for reason, count in self.dropped.items())
            raise DataError(
                f"{path}: " + (f"no line of {self.read} is a pair: {why}" if self.read else "the file is empty")
            )

    def include(self, other: "Report") -> None:
        """Add counts and places from another file."""
        self.read += other.read
        self.dropped += other.dropped
        self.examples += other.examples

    def describe(self) -> str:
        """Return the counts in words, such as `100 lines read, 97 kept; dropped: 3 no tab; skipped: README`."""
        parts = [f"{self.read} lines read, {self.kept} kept"]
        if self.dropped:
            parts.append("dropped: " + ", ".join(f"{count} {reason}" for reason, count in self.dropped.items()))
        if self.ignored:
            names = [Path(name).name for name in self.ignored[:EXAMPLES]]
            parts.append("skipped: " + ", ".join(names + ["..."] * (len(self.ignored) > EXAMPLES)))
        return "; ".join(parts)
