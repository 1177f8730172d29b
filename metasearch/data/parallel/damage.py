"""What became of the lines of a parallel corpus."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

EXAMPLES = 3
"""Places that are kept of each reason to drop a pair, and files that are named of those passed over."""


@dataclass(frozen=True)
class Report:
    """Counts of lines.

    Attributes:
        read: lines that were looked at.
        dropped: reason such as `no tab` → how many lines or pairs were left out for it.
        examples: the first few places of each reason, as `file:line: why`.
        ignored: files that were found but are not training text, such as `README` or `en-de-dev.tsv`.
    """

    read: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def kept(self) -> int:
        """Lines that became pairs."""
        return self.read - sum(self.dropped.values())

    def add(self, reason: str, count: int, examples: tuple[str, ...] = ()) -> "Report":
        """Return the report with further pairs dropped."""
        if not count:
            return self
        dropped = {**self.dropped, reason: self.dropped.get(reason, 0) + count}
        return replace(self, dropped=dropped, examples=(*self.examples, *examples[:EXAMPLES]))

    def describe(self) -> str:
        """Return the counts in words, such as `100 lines read, 97 kept; dropped: 3 no tab; passed over: README`."""
        said = [f"{self.read} lines read, {self.kept} kept"]
        if self.dropped:
            said.append("dropped: " + ", ".join(f"{count} {reason}" for reason, count in self.dropped.items()))
        if self.ignored:
            names = [Path(name).name for name in self.ignored[:EXAMPLES]]
            said.append("passed over: " + ", ".join(names + ["..."] * (len(self.ignored) > EXAMPLES)))
        return "; ".join(said)
