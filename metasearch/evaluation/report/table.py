"""A table as values, before it is Markdown, LaTeX, CSV, JSON or HTML."""

from dataclasses import dataclass
from typing import Literal

Place = Literal["best", "second", ""]
_SHADES = 9
"""Colours of a palette in `templates/style.css`."""


@dataclass(frozen=True)
class Cell:
    """A value in a table.

    Attributes:
        value: measured value, not times 100; None where there is none.
        spread: standard deviation, where the value is a mean; `Table.notes` says over what.
        place: place among the learners of its column; the best is set bold, the second in italics.
        mark: sign behind the value, such as `*` or `†`, explained in `Table.notes`.
        text: text shown in place of the value, such as `0.0031` for a probability.
    """

    value: float | None = None
    spread: float | None = None
    place: Place = ""
    mark: str = ""
    text: str = ""


@dataclass(frozen=True)
class Line:
    """A table line: names, such as learner and mode, and values; `rule` draws a rule above."""

    heads: tuple[str, ...]
    cells: tuple[Cell, ...]
    rule: bool = False


@dataclass(frozen=True)
class Table:
    """A table as values.

    Attributes:
        key: name for files and links, such as `main`.
        heads: headings of the first columns, which say what a line is.
        columns: headings of the values.
        notes: what the values, spreads and marks are, one sentence each.
        scale: factor by which values are shown.
        unit: unit behind the title, such as `× 100`.
        shades: lowest and highest value of the cells' colours, unscaled.
    """

    key: str
    title: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    scale: float = 100.0
    decimals: int = 2
    unit: str = ""
    shades: tuple[float, float] | None = None

    @property
    def caption(self) -> str:
        """Title with the unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def shown(self, cell: Cell) -> str:
        """Return a cell as plain text, without its place and mark: `57.04` or `57.04 ± 2.90`; never `-0.00`."""
        if cell.text or cell.value is None:
            return cell.text
        value = f"{self.scale * cell.value:z.{self.decimals}f}"
        return value if cell.spread is None else f"{value} ± {self.scale * cell.spread:.{self.decimals}f}"

    def has_words(self, column: int) -> bool:
        """Return whether a column holds text, which is left-aligned, instead of numbers."""
        cells = [line.cells[column] for line in self.lines]
        # A column of `–` alone has no word: it stays a column of numbers that are missing.
        return all(cell.value is None for cell in cells) and any(cell.text[:1].isalpha() for cell in cells)

    def css(self, cell: Cell, column: int) -> str:
        """Return a cell's CSS class: `words`, the colour of its value such as `q3`, or nothing."""
        if self.shades is None or cell.value is None:
            return "words" if self.has_words(column) else ""
        low, high = self.shades
        share = (cell.value - low) / (high - low) if high > low else 0.5
        return f"q{min(_SHADES - 1, int(_SHADES * share))}"
