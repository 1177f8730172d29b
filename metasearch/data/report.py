"""What became of the lines of files in which a damaged line is left out and counted."""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

EXAMPLES = 3
"""Places that are named of each reason to leave a line out, and files that are named of those passed over."""


@dataclass
class Report:
    """Counts of lines.

    Attributes:
        read: lines that were read.
        dropped: reason such as `no tab` → how many lines or pairs were left out for it.
        places: reason → the first few places, as `file:line: reason`.
        ignored: files that are not training text, such as `README` or `en-de-dev.tsv`.
    """

    read: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    @property
    def kept(self) -> int:
        """Lines that became pairs."""
        return self.read - self.dropped.total()

    @property
    def examples(self) -> tuple[str, ...]:
        """The first few places of each reason."""
        return tuple(place for places in self.places.values() for place in places)

    def drop(self, reason: str, place: str = "") -> None:
        """Count a line that is left out, and remember its place, `file:line`, while there are few of its reason."""
        self.dropped[reason] += 1
        if place:
            self._remember(reason, [f"{place}: {reason}"])

    def include(self, other: "Report") -> None:
        """Add the counts and places of another file."""
        self.read += other.read
        self.dropped += other.dropped
        for reason, places in other.places.items():
            self._remember(reason, places)

    def with_dropped(self, reason: str, count: int) -> "Report":
        """Return a report in which further pairs are left out for a reason."""
        return replace(self, dropped=self.dropped + Counter({reason: count}))

    def describe(self) -> str:
        """Return the counts in words, such as `100 lines read, 97 kept; dropped: 3 no tab; passed over: README`."""
        parts = [f"{self.read} lines read, {self.kept} kept"]
        if self.dropped:
            parts.append("dropped: " + ", ".join(f"{count} {reason}" for reason, count in self.dropped.items()))
        if self.ignored:
            names = [Path(name).name for name in self.ignored[:EXAMPLES]]
            parts.append("passed over: " + ", ".join(names + ["..."] * (len(self.ignored) > EXAMPLES)))
        return "; ".join(parts)

    def _remember(self, reason: str, places: list[str]) -> None:
        self.places[reason] = [*self.places.get(reason, ()), *places][:EXAMPLES]
