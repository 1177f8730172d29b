"""The two sides of each line of a parallel corpus, still as bytes."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from metasearch.data.parallel.files import Source
from metasearch.data.text_files import byte_lines
from metasearch.errors import DataError

Sides = tuple[bytes, bytes]


def sides(source: Source) -> Iterator[Sides | None]:
    """Yield the pivot side and the translation of each line; None for a line that has no two columns.

    Raises:
        DataError: a file cannot be read, is a damaged gzip file, or two sides differ in their number of lines.
    """
    return _aligned(*source.paths) if len(source.paths) == 2 else _columns(source)


def _columns(source: Source) -> Iterator[Sides | None]:
    for line in byte_lines(source.path):
        columns = line.split(b"\t", 2)
        if len(columns) < 2:
            yield None
        elif source.pivot_first:
            yield columns[0], columns[1]
        else:
            yield columns[1], columns[0]


def _aligned(pivot: Path, other: Path) -> Iterator[Sides]:
    left, right = byte_lines(pivot), byte_lines(other)
    for number, (source, target) in enumerate(zip_longest(left, right)):
        if source is None or target is None:
            # `zip_longest` has taken one line of the longer side.
            longer = number + 1 + sum(1 for _ in (right if source is None else left))
            counts = (number, longer) if source is None else (longer, number)
            raise DataError(
                f"{pivot} has {counts[0]} lines, {other} has {counts[1]};"
                " line n of one must be the translation of line n of the other"
            )
        yield source, target
