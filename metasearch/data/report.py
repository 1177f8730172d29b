"""What became of the lines of files in which a damaged line is left out and counted."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

EXAMPLES = 3
"""Places that are named of each reason to leave a line out, and files that are named of those passed over."""


@dataclass(frozen=True)
class Report:
    """Counts of lines.

    Attributes:
        read: lines that were read.
        dropped: reason such as `no tab` → how many lines or pairs were left out for it.
        examples: the first few places of each reason, as `file:line: why`.
        ignored: files that are not training text, such as `README` or `en-de-dev.tsv`.
    """

    read: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def kept(self) -> int:
        """Lines that became pairs."""
        return self.read - sum(self.dropped.values())

    def add(self, reason: str, count: int) -> "Report":
        """Return the report with further pairs left out for a reason."""
        return replace(self, dropped={**self.dropped, reason: self.dropped.get(reason, 0) + count})

    def describe(self) -> str:
        """Return the counts in words, such as `100 lines read, 97 kept; dropped: 3 no tab; passed over: README`."""
        parts = [f"{self.read} lines read, {self.kept} kept"]
        if self.dropped:
            parts.append("dropped: " + ", ".join(f"{count} {reason}" for reason, count in self.dropped.items()))
        if self.ignored:
            names = [Path(name).name for name in self.ignored[:EXAMPLES]]
            parts.append("passed over: " + ", ".join(names + ["..."] * (len(self.ignored) > EXAMPLES)))
        return "; ".join(parts)


class Tally:
    """Counts the lines of files while they are read."""

    def __init__(self) -> None:
        self.read = 0
        self.dropped: Counter[str] = Counter()
        self._places: dict[str, list[str]] = {}

    def drop(self, reason: str, place: str = "") -> None:
        """Count a line that is left out; of each reason the first few places, `file:line`, are remembered."""
        self.dropped[reason] += 1
        if place:
            self._remember(reason, [f"{place}: {reason}"])

    def include(self, other: "Tally") -> None:
        """Add the counts and places of another file."""
        self.read += other.read
        self.dropped += other.dropped
        for reason, places in other._places.items():
            self._remember(reason, places)

    def report(self, ignored: tuple[str, ...] = ()) -> Report:
        """Return the counts and the places."""
        places = tuple(place for of_reason in self._places.values() for place in of_reason)
        return Report(self.read, dict(self.dropped), places, ignored)

    def _remember(self, reason: str, places: list[str]) -> None:
        self._places[reason] = [*self._places.get(reason, ()), *places][:EXAMPLES]
