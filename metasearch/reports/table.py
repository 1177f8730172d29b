"""A table as values, before it is Markdown, LaTeX, CSV, JSON or HTML."""

from dataclasses import dataclass, field
from typing import Literal

Place = Literal["best", "second", ""]


@dataclass(frozen=True)
class Cell:
    """A value in a table.

    Attributes:
        value: as it was measured, not times 100; None where there is none.
        spread: standard deviation, where the value is a mean; `Table.notes` says over what.
        place: among the learners of its column; the best is set bold, the second in italics.
        mark: behind the value, such as `*` or `†`, explained in `Table.notes`.
        text: shown in place of the value, such as `0.0031` for a probability.
    """

    value: float | None = None
    spread: float | None = None
    place: Place = ""
    mark: str = ""
    text: str = ""


@dataclass(frozen=True)
class Line:
    """A line of a table.

    Attributes:
        heads: what it is, such as learner and mode; as many as `Table.heads`.
        cells: as many as `Table.columns`.
        rule: whether a rule stands above it.
    """

    heads: tuple[str, ...]
    cells: tuple[Cell, ...]
    rule: bool = False


@dataclass(frozen=True)
class Table:
    """A table as values.

    Attributes:
        key: for files and links, such as `main`.
        title: what it shows, in one line.
        heads: above the first columns, which say what a line is.
        columns: above the values.
        lines: of values.
        notes: what the values, spreads and marks are, one sentence each.
        scale: what values are shown times.
        decimals: behind the point.
        unit: behind the measure's name in the title, such as `× 100`.
    """

    key: str
    title: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    scale: float = 100.0
    decimals: int = 2
    unit: str = field(default="")

    def shown(self, cell: Cell) -> str:
        """Return a cell as plain text, without its place and mark: `57.04` or `57.04 ± 2.90`; never `-0.00`."""
        if cell.text or cell.value is None:
            return cell.text
        value = f"{self.scale * cell.value:z.{self.decimals}f}"
        return value if cell.spread is None else f"{value} ± {self.scale * cell.spread:.{self.decimals}f}"
