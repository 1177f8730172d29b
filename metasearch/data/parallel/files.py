"""Finds the files of a parallel corpus below files, folders and hub names, in a stable order.

Languages come from names such as `en-de.tsv`, `TED2020-en-de-train.tsv.gz`, `WikiMatrix.de-en.de` and
`en-de/train-00000-of-00002.parquet`; `docs/corpora.md` lists them. If a name begins with no corpus, the corpus is named
after the folder or the hub's data set. A region in lower case behind a hyphen could be a language of its own, so
`en-pt-br` is English and Brazilian Portuguese only if English is the pivot language.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from metasearch.config.corpus import DEFAULT_PIVOT, CorpusSettings
from metasearch.config.languages import is_listed, parse_name
from metasearch.data.formats.rows import STATE
from metasearch.data.formats.text_files import PACKED, unpacked
from metasearch.data.hub import fetch, is_hub_name
from metasearch.errors import DataError, nearest
from metasearch.io import near

_SPLITS = ("train", "dev", "validation", "test")
_NAME = re.compile(rf"(?P<pair>.+?)(?:-(?P<split>{'|'.join(_SPLITS)}))?")
_SHARD = re.compile(r"-\d+-of-\d+(?=\.|$)")
_TABLES = ("parquet", "jsonl", "csv")
_MOSES = re.compile(r"(?P<pair>.+?)\.(?P<side>[^.]+?)(?:\.gz|\.zst)?")

EXPECTED = (
    "expected names such as en-de.tsv, TED2020-en-de-train.tsv.gz, en-de.parquet, or WikiMatrix.de-en.de and "
    "WikiMatrix.de-en.en"
)


@dataclass(frozen=True, slots=True)
class ParallelFile:
    """A file of parallel text, or one of two line-aligned files, as its name describes it.

    Attributes:
        path: the file.
        corpus: name of the corpus, such as `TED2020`.
        languages: languages in the order of the name, hence of the columns.
        columns: the languages as the name writes them, which may be the names of the columns of a table.
        split: `train`, `dev`, `validation` or `test`; `train` where the name has none.
        sides: names of the two line-aligned files, unpacked, in the order of the languages; empty for another file.
        table: whether columns have names, as in a Parquet file.
        shards: all files of a table in several files; empty for another file.
    """

    path: Path
    corpus: str
    languages: tuple[str, str]
    columns: tuple[str, str]
    split: str = "train"
    sides: tuple[str, ...] = ()
    table: bool = False
    shards: tuple[Path, ...] = ()

    def paths(self) -> tuple[Path, ...]:
        """Return the file, its shards, or the two sides, packed or not; `DataError` when one is missing."""
        return self.shards or tuple(map(self._side, self.sides)) or (self.path,)

    def _side(self, name: str) -> Path:
        if unpacked(self.path.name) == name:
            return self.path
        forms = [self.path.with_name(f"{name}{suffix}") for suffix in ("", *PACKED)]
        found = next((form for form in forms if form.exists()), None)
        if found is None:
            names = " or ".join(form.name for form in forms)
            raise DataError(f"{self.path}: its other side is missing; expected {names} beside it")
        return found


def recognise(path: Path, tables: bool = False, pivot: str = DEFAULT_PIVOT, corpus: str = "") -> ParallelFile | None:
    """Return what the name of a file says; None if it is no name of parallel text."""
    stem, _, kind = unpacked(path.name).rpartition(".")
    # Absolute, since a bare file name has a parent without a name.
    folder, table = path.absolute().parent, kind in _TABLES
    if is_saved_table(path):
        stem, table = path.name, True
    if not table and kind != "tsv":
        return _side_of_two(path, pivot, corpus or folder.name)
    stem = _SHARD.sub("", stem)
    if stem in _SPLITS:
        split, stem, folder = stem, folder.name, folder.parent
    else:
        match = _NAME.fullmatch(stem)
        stem, split = (match["pair"], match["split"] or "train") if match else (stem, "train")
    pair = _read_pair(stem, "", pivot, path)
    if pair is None or (table and not tables):
        return None
    return ParallelFile(path, pair.corpus or corpus or folder.name, pair.languages, pair.written, split, (), table)


def is_saved_table(path: Path) -> bool:
    """Return whether a path is a folder that `datasets.Dataset.save_to_disk` wrote."""
    return os.path.isfile(path / STATE)


def _side_of_two(path: Path, pivot: str, corpus: str) -> ParallelFile | None:
    """Return what the name of a side in Moses format says; None for other names."""
    match = _MOSES.fullmatch(path.name)
    pair = _read_pair(match["pair"], match["side"], pivot, path) if match else None
    if match is None or pair is None:
        return None
    sides = tuple(f"{match['pair']}.{code}" for code in pair.written)
    return ParallelFile(path, pair.corpus or corpus, pair.languages, pair.written, sides=sides)


@dataclass(frozen=True, slots=True)
class _Pair:
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


Item = TypeVar("Item", bound="ParallelFile | Part")


@dataclass(frozen=True, slots=True)
class Part:
    """The text of one corpus in one language: a TSV file, a table, or the two files of a Moses pair.

    Attributes:
        paths: the file, the shards of a table, or the two line-aligned files, pivot first.
        corpus: name of the corpus, such as `TED2020`.
        language: language of the translations.
        pivot: language of the sources.
        pivot_first: whether the name has the pivot first, and so a TSV file its column.
        columns: names that the columns of a table may have, the pivot's first; empty for other files.
        pairs: number of its pairs; 0 before it is read.
    """

    paths: tuple[Path, ...]
    corpus: str
    language: str
    pivot: str
    pivot_first: bool = True
    columns: tuple[str, ...] = ()
    pairs: int = 0

    @property
    def path(self) -> Path:
        """The file, its last shard, or the side in the language of the translations."""
        return self.paths[-1]


def find(paths: Sequence[Path], settings: CorpusSettings) -> tuple[list[Part], tuple[str, ...]]:
    """Return the parts to read, and the files that are no training text."""
    files: list[ParallelFile] = []
    ignored: list[str] = []
    for path in map(Path, paths):
        place, corpus = path, ""
        if is_hub_name(path.as_posix()):
            place, corpus = fetch(path.as_posix()), path.parts[1]
        for below in _walk(place):
            file = recognise(below, tables=True, pivot=settings.pivot, corpus=corpus)
            if below == place and file is None:
                raise DataError(f"{below}: not named as parallel text; {EXPECTED}")
            if file is None or (below != place and file.split != "train"):
                ignored.append(str(below))
            else:
                files.append(file)
    if not files:
        where = ", ".join(map(str, paths)) or "no path"
        seen = f"; there is: {', '.join(Path(name).name for name in ignored[:5])}" if ignored else ""
        raise DataError(f"{where}: no parallel text{seen}; {EXPECTED}")
    # Before the pivot is looked for, which a corpus that is not wanted may lack.
    files = _chosen(_merge_shards(files), "corpus", settings.only)
    parts = _distinct([_part(file, settings.pivot) for file in files])
    return _chosen(parts, "language", settings.languages), tuple(ignored)


def _merge_shards(files: Sequence[ParallelFile]) -> list[ParallelFile]:
    """Return files with all shards of a table as one."""
    merged: dict[Path, ParallelFile] = {}
    for file in files:
        if not file.table:
            merged[file.path] = file
            continue
        table = file.path.with_name(_SHARD.sub("", file.path.name))
        shards = merged[table].shards if table in merged else ()
        merged[table] = replace(file, shards=tuple(dict.fromkeys((*shards, file.path))))
    return list(merged.values())


def _chosen(items: list[Item], key: str, values: Sequence[str]) -> list[Item]:
    """Return the items with these values of an attribute; all items for no values."""
    known = {getattr(item, key) for item in items}
    for value in values:
        if value not in known:
            raise DataError(f"no parallel text of {key} '{value}'.{nearest(value, known)}")
    return [item for item in items if not values or getattr(item, key) in values]


def _part(file: ParallelFile, pivot: str) -> Part:
    if pivot not in file.languages:
        have = " and ".join(file.languages)
        raise DataError(f"{file.path}: neither side is '{pivot}', the pivot language; its name says {have}")
    pivot_first = file.languages[0] == pivot
    step = 1 if pivot_first else -1
    # The pivot comes first from here on; the columns of a TSV file are swapped when it is read.
    paths = file.paths()[::step] if file.sides else file.paths()
    columns = file.columns[::step] if file.table else ()
    return Part(paths, file.corpus, file.languages[::step][1], pivot, pivot_first, columns)


def _distinct(parts: Sequence[Part]) -> list[Part]:
    """Return each part once; both sides of a Moses pair lead to the same one, and so do overlapping paths."""
    distinct: dict[str, Part] = {}
    for part in parts:
        # A packed and an unpacked copy of a text share this key, and then differ in their paths.
        name = unpacked(str(part.path.resolve()))
        other = distinct.setdefault(name, part)
        if [path.resolve() for path in other.paths] != [path.resolve() for path in part.paths]:
            raise DataError(f"{other.path} and {part.path}: the same text, compressed and plain; remove one")
    return list(distinct.values())


def _walk(path: Path) -> Iterator[Path]:
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
