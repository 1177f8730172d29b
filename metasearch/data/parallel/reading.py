"""Reads lines of parallel text: from TSV files, line-aligned files, and tables with named columns.

The columns of a table are the languages as its name writes them (OPUS), `translation` with a field for each language,
`english` and `non_english` (`sentence-transformers/parallel-sentences-*`), or `source` and `target`, whose source is in
the first language of the name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from metasearch.config.corpus import CorpusSettings
from metasearch.data.formats.blank import blank
from metasearch.data.formats.rows import missing_column, read_rows
from metasearch.data.formats.text_files import byte_lines
from metasearch.data.normalise import normalise
from metasearch.data.parallel.files import Part
from metasearch.errors import DataError

Sides = tuple[bytes, bytes]
"""The pivot side and the translation of a line, as bytes."""


class TokenCounter(NamedTuple):
    """Counts tokens.

    Attributes:
        count_tokens: texts `N` → tokens of each `(N,)`.
        key: identifies tokenizer, prompt and limit, so that counts can be stored.
    """

    count_tokens: Callable[[Sequence[str]], ArrayLike]
    key: str


def read_sides(part: Part) -> Iterator[Sides | None]:
    """Yield the pivot side and the translation of each line or row; None for a line without two columns."""
    if part.columns:
        yield from _table_rows(part)
    elif len(part.paths) == 2:
        yield from _aligned_lines(*part.paths)
    else:
        # Bytes are split: a line that is not UTF-8 is dropped and counted later, and does not end the reading.
        for line in byte_lines(part.path):
            columns = line.split(b"\t", 2)
            if len(columns) < 2:
                yield None
            else:
                yield (columns[0], columns[1]) if part.pivot_first else (columns[1], columns[0])


def clean(line: Sides | None, settings: CorpusSettings) -> tuple[str, str] | str:
    """Return both texts of a line, or the reason to drop it; duplicates and tokens are checked elsewhere."""
    if line is None:
        return "no tab"
    try:
        first, second = line[0].decode().strip(), line[1].decode().strip()
    except UnicodeDecodeError:
        return "not UTF-8"
    if settings.normalise:
        first, second = normalise(first), normalise(second)
    if "\0" in first or "\0" in second:
        return "NUL character"
    if blank(first) or blank(second):
        return "empty side"
    if 0 < settings.max_chars < max(len(first), len(second)):
        return f"over {settings.max_chars} characters"
    return first, second


def _aligned_lines(pivot: Path, other: Path) -> Iterator[Sides]:
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


def _table_rows(part: Part) -> Iterator[Sides]:
    names: tuple[str, str] | None = None
    for path in part.paths:
        for row in read_rows(path):
            inner = row.values.get("translation", row.values)
            values = inner if isinstance(inner, Mapping) else {} if inner is None else row.values
            if names is None and values:
                names = _column_names(part, row.place, values)
            first, second = (_encode(values.get(name), row.place, name) for name in names or ("", ""))
            yield first, second


def _column_names(part: Part, place: str, values: Mapping[str, Any]) -> tuple[str, str]:
    """Return the columns of a table that hold the pivot side and the translation."""
    english = ("english", "non_english")
    known = [part.columns, ("source", "target")[:: 1 if part.pivot_first else -1]]
    if "en" in (part.pivot, part.language):
        known.append(english if part.pivot == "en" else english[::-1])
    for first, second in known:
        if first in values and second in values:
            return first, second
    missing = next(name for name in part.columns if name not in values)
    error = missing_column(place, missing, values)
    raise DataError(f"{error} Expected {', or '.join(' and '.join(names) for names in known)}")


def _encode(value: Any, place: str, name: str) -> bytes:
    if value is not None and not isinstance(value, str):
        raise DataError(f"{place}: column '{name}': expected text, got {str(value)[:40]}")
    return (value or "").encode("utf-8", "surrogatepass")
