"""The two sides of each line of a parallel corpus, still as bytes."""

import gzip
import io
import zlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, cast

from metasearch.data.corpus.files import Source
from metasearch.errors import DataError

Sides = tuple[bytes, bytes]
_BOM = b"\xef\xbb\xbf"


def sides(source: Source) -> Iterator[Sides | None]:
    """Yield the pivot side and the translation of each line; None for a line that has no two columns.

    Raises:
        DataError: a file cannot be read, is a damaged gzip file, or two sides differ in their number of lines.
    """
    return _aligned(*source.paths) if len(source.paths) == 2 else _columns(source)


def _columns(source: Source) -> Iterator[Sides | None]:
    for line in _lines(source.path):
        columns = line.split(b"\t", 2)
        if len(columns) < 2:
            yield None
        elif source.pivot_first:
            yield columns[0], columns[1]
        else:
            yield columns[1], columns[0]


def _aligned(pivot: Path, other: Path) -> Iterator[Sides]:
    left, right = _lines(pivot), _lines(other)
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


def _lines(path: Path) -> Iterator[bytes]:
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                yield line.removeprefix(_BOM) if number == 1 else line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: damaged gzip file after line {number}: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def _open(path: Path) -> BinaryIO:
    if path.suffix != ".gz":
        return path.open("rb")
    # Lines are cut faster by a buffered reader than by the gzip file itself.
    return io.BufferedReader(cast(io.RawIOBase, gzip.open(path)))
