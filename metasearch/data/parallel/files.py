"""The files of a parallel corpus: found below files, folders and hub names in a stable order, and read line by line.

Languages come from names such as `en-de.tsv`, `TED2020-en-de-train.tsv.gz`, `WikiMatrix.de-en.de` and
`en-de/train-00000-of-00002.parquet`; `docs/corpora.md` lists them. If a name begins with no corpus, the corpus is named
after the folder or the hub's data set. A region in lower case behind a hyphen could be a language of its own, so
`en-pt-br` is English and Brazilian Portuguese only if English is the pivot language.

The columns of a table are the languages as its name writes them (OPUS), `translation` with a field for each language,
`english` and `non_english` (`sentence-transformers/parallel-sentences-*`), or `source` and `target`, whose source is in
the first language of the name.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from metasearch.config.distillation import DEFAULT_PIVOT, CorpusSettings
from metasearch.config.languages import is_listed, parse_name
from metasearch.data.formats.blank import blank, normalise
from metasearch.data.formats.rows import SHARD, STATE, missing_column, read_rows
from metasearch.data.formats.text_files import PACKED, byte_lines, require_readable, unpacked
from metasearch.data.locate import fetch, is_hub_name
from metasearch.errors import DataError, nearest
from metasearch.io import near

_SPLITS = ("train", "dev", "validation", "test")
_NAME = re.compile(rf"(?P<pair>.+?)(?:-(?P<split>{'|'.join(_SPLITS)}))?")
_TABLES = ("parquet", "jsonl", "csv")

EXPECTED = (
    "expected names such as en-de.tsv, TED2020-en-de-train.tsv.gz, en-de.parquet, or WikiMatrix.de-en.de and "
    "WikiMatrix.de-en.en"
)

Sides = tuple[bytes, bytes]
"""The pivot side and the translation of a line, as bytes."""


@dataclass(frozen=True, slots=True)
class Part:
    """The text of one corpus in one language: a TSV file, a table, or the two files of a Moses pair.

    Attributes:
        paths: the file, the shards of a table, or the two line-aligned files, pivot first.
        corpus: name of the corpus, such as `TED2020`.
        language: language of the translations.
        pivot: language of the sources; the first one where the pivot that was asked for is neither.
        pivot_first: whether the name has the pivot first, and so a TSV file its column.
        columns: names that the columns of a table may have, the pivot's first; empty for other files.
        split: `train`, `dev`, `validation` or `test`; `train` where the name has none.
    """

    paths: tuple[Path, ...]
    corpus: str
    language: str
    pivot: str
    pivot_first: bool = True
    columns: tuple[str, ...] = ()
    split: str = "train"

    @property
    def path(self) -> Path:
        """The file, its last shard, or the side in the language of the translations."""
        return self.paths[-1]

    @property
    def languages(self) -> tuple[str, str]:
        """Both languages in the order of the name, hence of the columns."""
        return (self.pivot, self.language) if self.pivot_first else (self.language, self.pivot)


# Names.


def recognise(path: Path, pivot: str = DEFAULT_PIVOT, corpus: str = "") -> Part | None:
    """Return what the name of a file says; None if it is no name of parallel text.

    Of a Moses pair, `paths` are the unpacked names of both sides, which need not exist.
    """
    stem, _, kind = unpacked(path.name).rpartition(".")
    # Absolute, since a bare file name has a parent without a name.
    folder, table, split, side = path.absolute().parent, kind in _TABLES, "train", ""
    if is_saved_table(path):
        stem, table = path.name, True
    if table or kind == "tsv":
        stem = SHARD.sub("", stem)
        if stem in _SPLITS:
            split, stem, folder = stem, folder.name, folder.parent
        elif match := _NAME.fullmatch(stem):
            stem, split = match["pair"], match["split"] or "train"
    elif kind:
        side = kind
    else:
        return None
    pair = _read_pair(stem, side, pivot, path)
    if pair is None:
        return None
    paths: tuple[Path, ...] = (path,)
    if side:
        paths = tuple(path.with_name(f"{stem}.{code}") for code in pair.written)
    first = pair.languages[0] == pivot or pair.languages[1] != pivot
    step = 1 if first else -1
    source, target = pair.languages[::step]
    columns = pair.written[::step] if table else ()
    return Part(paths[::step], pair.corpus or corpus or folder.name, target, source, first, columns, split)


def is_saved_table(path: Path) -> bool:
    """Return whether a path is a folder that `datasets.Dataset.save_to_disk` wrote."""
    return os.path.isfile(path / STATE)


class _Pair(NamedTuple):
    """A way to read a name: the corpus, and the two languages in canonical form and as written."""

    corpus: str
    languages: tuple[str, str]
    written: tuple[str, str]


def _read_pair(name: str, side: str, pivot: str, path: Path) -> _Pair | None:
    """Return the languages at the end of a name; `side` is the language of a Moses file.

    If there are several readings, the one with the pivot counts. A reading with regions in capitals, and a corpus that
    does not end in a language as in `pt-br-en`, comes first.
    """
    strict, loose = (
        [pair for pair in _readings(name, cased) if side in ("", *pair.written)] for cased in (True, False)
    )
    usual = [pair for pair in strict if not _ends_in_language(pair.corpus)]
    others = [pair for pair in loose if pair not in usual and all(map(is_listed, pair.languages))]
    for pairs in (usual, others):
        if with_pivot := [pair for pair in pairs if pivot in pair.languages]:
            return with_pivot[0]
    if others and len(usual + others) > 1:
        readings = " or ".join(" and ".join(pair.languages) for pair in others)
        raise DataError(f"{path}: the name can be read as {readings}; write regions in capitals, such as pt-BR")
    return next(iter(usual + others + strict), None)


def _ends_in_language(corpus: str) -> bool:
    return any(is_listed(parse_name(corpus[start:])) for start in _starts(corpus))


def _starts(name: str) -> list[int]:
    return [0, *(mark.end() for mark in re.finditer("[-.]", name))]


def _readings(name: str, cased: bool) -> Iterator[_Pair]:
    """Yield every way to read the end of a name as two languages, the longest end first."""
    for start in _starts(name):
        parts = name[start:].split("-")
        for end in range(1, len(parts)):
            written = "-".join(parts[:end]), "-".join(parts[end:])
            first, second = (parse_name(part, cased) for part in written)
            if first and second:
                yield _Pair(name[: max(start - 1, 0)], (first, second), written)


# Folders.


def find(paths: Sequence[Path], settings: CorpusSettings) -> tuple[list[Part], tuple[str, ...]]:
    """Return the parts to read, and the files that are no training text."""
    parts: list[Part] = []
    ignored: list[str] = []
    for path in map(Path, paths):
        place, corpus = path, ""
        if is_hub_name(path.as_posix()):
            place, corpus = fetch(path.as_posix()), path.parts[1]
        for below in walk(place):
            part = recognise(below, settings.pivot, corpus)
            if part is None and below == place:
                raise DataError(f"{place}: not named as parallel text; {EXPECTED}")
            if part is None or (below != place and part.split != "train"):
                ignored.append(str(below))
                continue
            parts.append(_complete(part, below) if _is_wanted(part, settings) else part)
    where = ", ".join(map(str, paths)) or "no path"
    if not parts:
        seen = f"; there is: {', '.join(Path(name).name for name in ignored[:5])}" if ignored else ""
        raise DataError(f"{where}: no parallel text{seen}; {EXPECTED}")
    # Before the pivot is looked for, which a corpus that is not wanted may lack.
    parts = _merge(choose(parts, "corpus", settings.only, where))
    for part in parts:
        if part.pivot != settings.pivot:
            have = " and ".join(part.languages)
            raise DataError(
                f"{part.path}: neither side is '{settings.pivot}', the pivot language; its name says {have}"
            )
    return choose(parts, "language", settings.languages, where), tuple(ignored)


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
        forms = [name.with_name(f"{name.name}{suffix}") for suffix in ("", PACKED)]
        if unpacked(path.name) == name.name:
            forms = [path]
        if not any(form.exists() for form in forms):
            expected = " or ".join(form.name for form in forms)
            raise DataError(f"{path}: its other side is missing; expected {expected} beside it")
        found.append(next(form for form in forms if form.exists()))
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
