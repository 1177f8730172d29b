"""Recognises files of parallel text by their names.

| name | content |
|---|---|
| `en-de.tsv`, `de-en.tsv.gz` | two columns in the order of the name; further columns are ignored |
| `TED2020-en-de-train.tsv.gz` | the same, as sentence-transformers names them; `-dev`, `-test` are not for training |
| `WikiMatrix.de-en.de` and `WikiMatrix.de-en.en` | line-aligned sides in Moses format, as OPUS ships them |
| `en-de.parquet`, `TED2020-en-de-train.parquet` | a column for each language, called as in the name, or one of both |

All but Parquet files may be packed, and then end in `.gz` or `.zst`.

If a name begins with no corpus, the name of the folder is the corpus. Languages may have a script or a region:
`en-zh_cn`, `en-pt-BR`, `sr-latn-en`. A region in lower case behind a hyphen could be a language of its own. So
`en-pt-br` is English and Brazilian Portuguese only if English is the pivot language.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from metasearch.errors import DataError
from metasearch.formats.packed import SUFFIXES, unpacked
from metasearch.spec.corpus import DEFAULT_PIVOT
from metasearch.spec.languages import is_listed, parse_name

_TSV = re.compile(r"(?P<pair>.+?)(?:-(?P<split>train|dev|test))?\.(?P<kind>tsv(?:\.gz|\.zst)?|parquet)")
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
        columns: the languages as the name writes them, which are the names of the columns of a Parquet file.
        split: `train`, `dev` or `test`; `train` where the name has none.
        sides: names of the two line-aligned files, unpacked, in the order of the languages; empty for another file.
    """

    path: Path
    corpus: str
    languages: tuple[str, str]
    columns: tuple[str, str]
    split: str = "train"
    sides: tuple[str, ...] = ()

    def paths(self) -> tuple[Path, ...]:
        """Return the file, or the two sides, packed or not; `DataError` when one is missing."""
        return tuple(map(self._side, self.sides)) or (self.path,)

    def _side(self, name: str) -> Path:
        if unpacked(self.path.name) == name:
            return self.path
        forms = [self.path.with_name(f"{name}{suffix}") for suffix in ("", *SUFFIXES)]
        found = next((form for form in forms if form.exists()), None)
        if found is None:
            names = " or ".join(form.name for form in forms)
            raise DataError(f"{self.path}: its other side is missing; expected {names} beside it")
        return found


def recognise(path: Path, tables: bool = False, pivot: str = DEFAULT_PIVOT) -> ParallelFile | None:
    """Return what the name of a file says; None if it is no name of parallel text.

    Args:
        path: the file.
        tables: whether Parquet files count.
        pivot: language that decides where a name can be read in several ways.

    Raises:
        DataError: a name can be read in several ways, none of which has the pivot language.
    """
    tsv, moses = _TSV.fullmatch(path.name), _MOSES.fullmatch(path.name)
    match = tsv or moses
    side = moses["side"] if moses and not tsv else ""
    pair = _read_pair(match["pair"], side, pivot, path) if match else None
    if match is None or pair is None or (tsv and tsv["kind"] == "parquet" and not tables):
        return None
    # Absolute, since a bare file name has a parent without a name.
    corpus = pair.corpus or path.absolute().parent.name
    if tsv:
        return ParallelFile(path, corpus, pair.languages, pair.written, tsv["split"] or "train")
    sides = tuple(f"{match['pair']}.{code}" for code in pair.written)
    return ParallelFile(path, corpus, pair.languages, pair.written, sides=sides)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A way to read a name: the corpus, and the two languages in canonical form and as written."""

    corpus: str
    languages: tuple[str, str]
    written: tuple[str, str]


def _read_pair(name: str, side: str, pivot: str, path: Path) -> _Pair | None:
    """Return the languages that a name ends in; `side` is the one that a Moses file is in.

    Of several readings, the one with the pivot counts, and first of all one with regions in capitals and a corpus that
    does not end in a language, as `pt` does in `pt-br-en`.
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
