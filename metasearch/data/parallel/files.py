"""The files of a parallel corpus: found below files, folders and hub names in a stable order, and read line by line.

Names are read by `metasearch.data.parallel.names`. Of a folder, files of dev, validation and test splits are skipped;
a file that is named itself is read, whatever its split.

The columns of a table are the languages as its name writes them (OPUS), `translation` with a field for each language,
`english` and `non_english` (`sentence-transformers/parallel-sentences-*`), or `source` and `target`, whose source is in
the first language of the name.
"""

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from metasearch.config.distillation import CorpusSettings
from metasearch.data.formats.blank import blank, normalise
from metasearch.data.formats.rows import SHARD, STATE, missing_column, read_rows
from metasearch.data.formats.text_files import PACKED, byte_lines, require_readable, some, suffix_of, unpacked
from metasearch.data.locate import fetch, is_hub_name
from metasearch.data.parallel.names import TRAIN, Part, recognise
from metasearch.errors import DataError, nearest
from metasearch.io import near

log = logging.getLogger(__name__)

_TRANSLATION_MEMORIES = (".tmx", ".xlf", ".xliff", ".sdlxliff", ".po", ".sgm")
"""Formats of translations that are not read."""
_EXPECTED = (
    "expected names such as en-de.tsv, TED2020-en-de-train.tsv.gz, en-de.parquet, or WikiMatrix.de-en.de and "
    "WikiMatrix.de-en.en"
)

Sides = tuple[bytes, bytes]
"""The pivot side and the translation of a line, as bytes."""


# Folders.


def _hint(names: Iterable[str]) -> str:
    """Return how to convert the first translation memory among some files; empty if there is none."""
    suffix = next((suffix for suffix in map(suffix_of, map(Path, names)) if suffix in _TRANSLATION_MEMORIES), "")
    return f"; {suffix} files are not read: save their translations as TSV, such as en-de.tsv" if suffix else ""


def find(paths: Sequence[Path], settings: CorpusSettings) -> list[Part]:
    """Return the parts to read; the log names some of the other files below folders."""
    parts: list[Part] = []
    ignored: dict[str, bool] = {}
    for path in map(Path, paths):
        place, corpus = path, ""
        if is_hub_name(path.as_posix()):
            place, corpus = fetch(path.as_posix()), path.parts[1]
        for below in walk(place):
            part = recognise(below, settings.pivot, corpus, below.relative_to(place).parts[:-1])
            if part is None and below == place:
                raise DataError(f"{place}: not named as parallel text{_hint([place.name])}; {_EXPECTED}")
            if part is None or (below != place and part.split != TRAIN):
                ignored[str(below)] = part is not None
                continue
            parts.append(_complete(part, below) if _is_wanted(part, settings) else part)
    where = ", ".join(map(str, paths)) or "no path"
    if not parts:
        seen = f"; there is: {', '.join(Path(name).name for name in islice(ignored, 5))}" if ignored else ""
        raise DataError(f"{where}: no parallel text{seen}{_hint(ignored)}; {_EXPECTED}")
    # Before the pivot is looked for, which a corpus that is not wanted may lack.
    parts = _merge(choose(parts, "corpus", settings.only, where))
    for part in parts:
        if part.pivot != settings.pivot:
            have = " and ".join(part.languages)
            raise DataError(
                f"{part.path}: neither side is '{settings.pivot}', the pivot language; its name says {have}"
            )
    parts = choose(parts, "language", settings.languages, where)
    _log_ignored(ignored)
    return parts


def _log_ignored(ignored: Mapping[str, bool]) -> None:
    """Log the number of skipped files and the first of them: splits for evaluation, and others."""
    held_out, others = ([name for name, held in ignored.items() if held is kind] for kind in (True, False))
    for names, reason, hint in (
        (held_out, "skipped as dev, validation or test split", "; name a file to read it"),
        (others, "skipped, not named as parallel text", _hint(others)),
    ):
        if names:
            log.warning("%s: %s files, %s%s", reason, f"{len(names):,}", some(names), hint)


def _is_wanted(part: Part, settings: CorpusSettings) -> bool:
    """Return whether the settings choose a part's corpus and language, or all."""
    corpora, languages = settings.only, settings.languages
    return (not corpora or part.corpus in corpora) and (not languages or part.language in languages)


def _complete(part: Part, path: Path) -> Part:
    """Return a part with the two files of a Moses pair, packed or not, of which `path` is one.

    `DataError` if one is missing, or in a compression that cannot be read.
    """
    require_readable(path)
    found = []
    for name in part.paths if len(part.paths) == 2 else ():
        forms = [path] if unpacked(path.name) == name.name else [name, name.with_name(f"{name.name}{PACKED}")]
        existing = [form for form in forms if form.exists()]
        if not existing:
            expected = " or ".join(form.name for form in forms)
            raise DataError(f"{path}: its other side is missing; expected {expected} beside it")
        found.append(existing[0])
    return replace(part, paths=tuple(found)) if found else part


def choose(parts: list[Part], key: str, values: Sequence[str], where: str) -> list[Part]:
    """Return the parts with these values of an attribute; all parts for no values; `where` they are, for the error."""
    known = {getattr(part, key) for part in parts}
    for value in values:
        if value not in known:
            raise DataError(f"{where}: no parallel text of {key} '{value}'.{nearest(value, known)}")
    return [part for part in parts if not values or getattr(part, key) in values]


def _merge(parts: Sequence[Part]) -> list[Part]:
    """Return each part once, with all shards of a table: both sides of a Moses pair lead to it, and equal paths."""
    merged: dict[Path, Part] = {}
    for part in parts:
        # A packed and an unpacked copy of a text share this key, and then differ in their paths. Only the folder is
        # resolved: shards from the hub are links to files whose names are hashes.
        name = unpacked(part.path.name)
        key = part.path.parent.resolve() / (SHARD.sub("", name) if part.columns else name)
        other = merged.setdefault(key, part)
        if part.columns and name not in {unpacked(path.name) for path in other.paths}:
            merged[key] = replace(other, paths=(*other.paths, part.path))
        elif not _resolved(other).issuperset(_resolved(part)):
            raise DataError(f"{other.path} and {part.path}: the same text, compressed and plain; remove one")
    distinct: dict[frozenset[Path], Part] = {}
    for part in merged.values():
        distinct.setdefault(_resolved(part), part)
    return list(distinct.values())


def _resolved(part: Part) -> frozenset[Path]:
    return frozenset(path.resolve() for path in part.paths)


def walk(path: Path) -> Iterator[Path]:
    """Yield a file, or the files in a folder at any depth, and folders of saved tables; hidden ones are skipped."""
    # pathlib raises an error for a path that may not be inspected.
    if not os.path.isdir(path):
        # A named pipe, too: it is refused where it is read.
        if os.path.exists(path):
            yield path
            return
        raise DataError(f"{path}: no such file or folder{near(path)}")
    for folder, below, names in os.walk(path, onerror=_refuse):
        if STATE in names:
            below.clear()
            yield Path(folder)
            continue
        # In place: `os.walk` goes down into what is left here, in this order.
        below[:] = sorted(name for name in below if not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(names) if not name.startswith("."))


def _refuse(error: OSError) -> None:
    raise DataError(f"{error.filename}: cannot be read: {error.strerror}")


# Lines.


def read_sides(part: Part, columns: tuple[int, ...] = ()) -> Iterator[Sides | str]:
    """Yield the pivot side and the translation of each line or row; of a line without two, the reason to drop it.

    `columns` are the two of a TSV file that hold the texts, from 1; by default they are found.
    """
    if part.columns:
        yield from _table_rows(part)
    elif len(part.paths) == 2:
        yield from _aligned_lines(*part.paths)
    else:
        yield from _tsv_lines(part, columns)


def _tsv_lines(part: Part, chosen: tuple[int, ...]) -> Iterator[Sides | str]:
    layout = _find_layout(part.path, chosen)
    first, second = layout.texts if part.pivot_first else layout.texts[::-1]
    # Bytes are split: a line that is not UTF-8 is dropped and counted later, and does not end the reading.
    for line in byte_lines(part.path):
        columns = line.rstrip(b"\r\n").split(b"\t")
        if len(columns) == layout.width:
            yield columns[first], columns[second]
        else:
            yield "no tab" if len(columns) == 1 else "another number of columns"


def clean(line: Sides | str, settings: CorpusSettings) -> tuple[str, str] | str:
    """Return both texts of a line, or the reason to drop it; duplicates and tokens are checked elsewhere."""
    if isinstance(line, str):
        return line
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
    fuzzy = 0
    for path in part.paths:
        for row in read_rows(path):
            inner = row.values.get("translation", row.values)
            values = inner if isinstance(inner, Mapping) else {} if inner is None else row.values
            if names is None and values:
                names = _column_names(part, row.place, values)
            if str(values.get("fuzzy")).strip().lower() in ("true", "1", "yes", "fuzzy"):
                fuzzy += 1
                yield b"", b""  # as a row without text
                continue
            first, second = (_encode(values.get(name), row.place, name) for name in names or ("", ""))
            yield first, second
    if fuzzy:
        log.warning("%s: translations that need work (column 'fuzzy'), skipped: %s", part.paths[0], f"{fuzzy:,}")


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


# Columns of a TSV file: corpora such as WikiMatrix and ParaCrawl also have scores and addresses.

_LINES = 1000
"""Lines to examine."""
_SHARE = 0.9
"""Least share of cells of one kind in a column of that kind: the first cell may be a name."""
_NO_TEXT = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(?:e[-+]?\d+)?%?|nan|https?://\S+", re.I)
_LABEL = re.compile(r"[!-~]+")


class _Layout(NamedTuple):
    """The number of columns of a TSV file, and those with the texts of the two languages, from 0."""

    width: int
    texts: tuple[int, int]


def _find_layout(path: Path, chosen: tuple[int, ...]) -> _Layout:
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
            raise DataError(f"{path}: columns {asked}: expected two columns from 1 to {width}")
        return _Layout(width, (chosen[0] - 1, chosen[1] - 1))
    columns = list(zip(*(row for row in rows if len(row) == width), strict=True))
    filled = [[cell.strip() for cell in cells if cell.strip()] for cells in columns]
    # Lines with a blank side are dropped later, and counted.
    texts = _find_texts(filled) if width > 2 or all(filled) else [0, 1]
    if columns and len(texts) != 2:
        found = ", ".join(str(number + 1) for number in texts) or "none"
        raise DataError(
            f"{path}: which two of its {width} columns are the translations? Columns of text are: {found} (others hold "
            "numbers, addresses or labels). Keep two, as with cut -f1,2, or set corpus.columns of a stage to [1,2]"
        )
    return _Layout(width, (texts[0], texts[1]) if texts else (0, 1))


def _find_texts(columns: list[list[str]]) -> list[int]:
    """Return which columns hold texts."""
    texts = [number for number, cells in enumerate(columns) if cells and not _are(_NO_TEXT, cells)]
    if len(texts) <= 2:
        return texts
    without_labels = [number for number in texts if not _are(_LABEL, columns[number])]
    return without_labels if len(without_labels) >= 2 else texts


def _are(kind: re.Pattern[str], cells: list[str]) -> bool:
    return sum(kind.fullmatch(cell) is not None for cell in cells) >= _SHARE * len(cells)
