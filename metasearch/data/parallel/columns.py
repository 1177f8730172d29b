"""Which columns of a TSV file hold texts: corpora such as WikiMatrix and ParaCrawl also have scores and addresses."""

import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from metasearch.data.formats.text_files import byte_lines
from metasearch.errors import DataError

_LINES = 1000
"""Lines to examine."""
_SHARE = 0.9
"""Least share of cells of one kind in a column of that kind: the first cell may be a name."""
_NO_TEXT = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(?:e[-+]?\d+)?%?|nan|https?://\S+", re.I)
_LABEL = re.compile(r"[!-~]+")


class Layout(NamedTuple):
    """The number of columns of a TSV file, and those with the texts of the two languages, from 0."""

    width: int
    texts: tuple[int, int]


def find_layout(path: Path, chosen: tuple[int, ...] = ()) -> Layout:
    """Return the columns of a TSV file that hold texts: the chosen ones, counted from 1, or the two that are texts.

    Columns of numbers and of web addresses are skipped; if more than two are left, columns of labels without a space,
    too. Only lines with the most frequent number of columns are examined.

    Raises:
        DataError: there is no chosen column, or not exactly two columns hold texts.
    """
    rows = [line.rstrip(b"\r\n").decode(errors="replace").split("\t") for line in islice(byte_lines(path), _LINES)]
    widths = Counter(len(row) for row in rows if len(row) > 1)
    width = max(widths, key=lambda count: (widths[count], -count), default=2)
    if chosen:
        if len(chosen) != 2 or max(chosen) > width or chosen[0] == chosen[1]:
            asked = ",".join(map(str, chosen))
            raise DataError(f"{path}: columns {asked}: expected two columns from 1 to {width}, as --text-columns 1,2")
        return Layout(width, (chosen[0] - 1, chosen[1] - 1))
    columns = list(zip(*(row for row in rows if len(row) == width), strict=True))
    filled = [[cell.strip() for cell in cells if cell.strip()] for cells in columns]
    # Lines with a blank side are dropped later, and counted.
    texts = _find_texts(filled) if width > 2 or all(filled) else [0, 1]
    if columns and len(texts) != 2:
        found = ", ".join(str(number + 1) for number in texts) or "none"
        raise DataError(
            f"{path}: which two of its {width} columns are the translations? Columns of text are: {found} (others hold "
            "numbers, addresses or labels). Name two: --text-columns 1,2"
        )
    return Layout(width, (texts[0], texts[1]) if texts else (0, 1))


def _find_texts(columns: list[list[str]]) -> list[int]:
    """Return which columns hold texts."""
    texts = [number for number, cells in enumerate(columns) if cells and not _are(_NO_TEXT, cells)]
    if len(texts) <= 2:
        return texts
    without_labels = [number for number in texts if not _are(_LABEL, columns[number])]
    return without_labels if len(without_labels) >= 2 else texts


def _are(kind: re.Pattern[str], cells: list[str]) -> bool:
    return sum(kind.fullmatch(cell) is not None for cell in cells) >= _SHARE * len(cells)
