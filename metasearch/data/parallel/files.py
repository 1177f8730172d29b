"""Finds the files of a parallel corpus below the given files and folders, in an order that does not change."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from metasearch.data.parallel.names import EXPECTED, ParallelFile, recognise
from metasearch.errors import DataError, nearest
from metasearch.formats.packed import unpacked
from metasearch.spec.corpus import CorpusSettings

Item = TypeVar("Item", bound="ParallelFile | Part")


@dataclass(frozen=True, slots=True)
class Part:
    """The text of one corpus in one language: a TSV or Parquet file, or the two files of a Moses pair.

    Attributes:
        paths: the file, or the two line-aligned files, pivot first.
        corpus: name of the corpus, such as `TED2020`.
        language: language of the translations.
        pivot: language of the sources.
        pivot_first: whether the pivot is the first column of a TSV file.
        columns: names of the columns of a Parquet file, the pivot's first; empty for other files.
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
        """The file, or the side in the language of the translations."""
        return self.paths[-1]


def find(paths: Sequence[Path], settings: CorpusSettings) -> tuple[list[Part], tuple[str, ...]]:
    """Return the parts to read, and the files that are no training text.

    In a folder, files of other names and those named `-dev` or `-test` are passed over; a file that is given is read.

    Args:
        paths: files, and folders that are searched at any depth; at least one.
        settings: pivot, languages and corpora to read.

    Raises:
        DataError: a path is missing, a file is not named as parallel text or lacks the pivot, one side of two is
            missing, the same text stands there twice, or a language or corpus that is asked for is not there.
    """
    files: list[ParallelFile] = []
    ignored: list[str] = []
    for path in map(Path, paths):
        for below in _walk(path):
            file = recognise(below, tables=True, pivot=settings.pivot)
            if not path.is_dir() and file is None:
                raise DataError(f"{below}: not named as parallel text; {EXPECTED}")
            if file is None or (path.is_dir() and file.split != "train"):
                ignored.append(str(below))
            else:
                files.append(file)
    if not files:
        where = ", ".join(map(str, paths)) or "no path"
        seen = f"; there is: {', '.join(Path(name).name for name in ignored[:5])}" if ignored else ""
        raise DataError(f"{where}: no parallel text{seen}; {EXPECTED}")
    # Before the pivot is looked for, which a corpus that is not wanted may lack.
    files = _chosen(files, "corpus", settings.only)
    parts = _distinct([_part(file, settings.pivot) for file in files])
    return _chosen(parts, "language", settings.languages), tuple(ignored)


def _chosen(items: list[Item], key: str, values: Sequence[str]) -> list[Item]:
    """Return the items with these values of an attribute, all items where no value is asked for."""
    known = {getattr(item, key) for item in items}
    for value in values:
        if value not in known:
            raise DataError(f"no parallel text of {key} '{value}'.{nearest(value, known)}")
    return [item for item in items if not values or getattr(item, key) in values]


def _part(file: ParallelFile, pivot: str) -> Part:
    if pivot not in file.languages:
        have = " and ".join(file.languages)
        raise DataError(f"{file.path}: neither side is '{pivot}', the pivot language; by its name it holds {have}")
    pivot_first = file.languages[0] == pivot
    step = 1 if pivot_first else -1
    # The pivot comes first from here on; the columns of a TSV file are swapped when it is read.
    columns = file.columns[::step] if file.path.suffix == ".parquet" else ()
    return Part(file.paths()[::step], file.corpus, file.languages[::step][1], pivot, pivot_first, columns)


def _distinct(parts: Sequence[Part]) -> list[Part]:
    """Return each part once; both sides of a Moses pair lead to the same one, and so do overlapping paths."""
    distinct: dict[str, Part] = {}
    for part in parts:
        # A packed and an unpacked copy of a text share this key, and then differ in their paths.
        name = unpacked(str(part.path.resolve()))
        other = distinct.setdefault(name, part)
        if [path.resolve() for path in other.paths] != [path.resolve() for path in part.paths]:
            raise DataError(f"{other.path} and {part.path}: the same text, packed and not; remove one of them")
    return list(distinct.values())


def _walk(path: Path) -> Iterator[Path]:
    # Of a path that may not be looked at, pathlib raises an error; it is no file that could be read.
    if not os.path.isdir(path):
        # A named pipe, too: it is refused where it is read.
        if os.path.exists(path):
            yield path
            return
        siblings = os.listdir(path.parent) if os.access(path.parent, os.R_OK | os.X_OK) else []
        hint = nearest(path.name, siblings) if siblings else ""
        raise DataError(f"{path}: no such file or folder.{hint}")
    for folder, below, names in os.walk(path, onerror=_refuse):
        # In place: `os.walk` goes down into what is left here, in this order.
        below[:] = sorted(name for name in below if not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(names) if not name.startswith("."))


def _refuse(error: OSError) -> None:
    raise DataError(f"{error.filename}: cannot be read: {error.strerror}")
