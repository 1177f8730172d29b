"""What the name of a file of parallel text says: corpus, languages and split.

`docs/corpora.md` lists names. If a name begins with no corpus, the corpus is named after the folder or the hub's data
set. A region in lower case behind a hyphen could be a language of its own, so `en-pt-br` is English and Brazilian
Portuguese only if English is the pivot language. A split stands anywhere in the name, between `.`, `-` and `_`.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from metasearch.config.distillation import CorpusSettings
from metasearch.config.languages import parse_name
from metasearch.data.formats.rows import SHARD, STATE
from metasearch.data.formats.text_files import unpacked
from metasearch.errors import DataError

TRAIN = "train"
# WMT and IWSLT add a year: newstest2014, newsdiscussdev2015, newssyscomb2009, dev2010, tst2013.
_SPLIT = re.compile(
    r"""(?:^|[-_.])(?P<name>
    (?:news(?:discuss)?|wmt|iwslt)?
    (?:train(?:ing)?|val(?:id(?:ation)?)?|dev(?:el(?:opment)?|test)?|tests?|tst|eval(?:uation)?|syscomb|h[eo]ld[-_.]?out)
    (?:[-_.]?set)?\d*)(?=[-_.]|$)""",
    re.I | re.X,
)
_TABLES = ("parquet", "jsonl", "csv")


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
        split: `train`, also where no name has one, or the word in the name, such as `dev` or `test`.
    """

    paths: tuple[Path, ...]
    corpus: str
    language: str
    pivot: str
    pivot_first: bool = True
    columns: tuple[str, ...] = ()
    split: str = TRAIN

    @property
    def path(self) -> Path:
        """The file, its last shard, or the side in the language of the translations."""
        return self.paths[-1]

    @property
    def languages(self) -> tuple[str, str]:
        """Both languages in the order of the name, hence of the columns."""
        return (self.pivot, self.language) if self.pivot_first else (self.language, self.pivot)


def take_split(name: str) -> tuple[str, str]:
    """Return a name without its splits, and the first split that is not `train`, or `train`; empty without any.

    Example:
        >>> take_split("opus.de-en-Valid"), take_split("train_europarl"), take_split("contest.de-en")
        (('opus.de-en', 'valid'), ('europarl', 'train'), ('contest.de-en', ''))
    """
    found = [match["name"].lower() for match in _SPLIT.finditer(name)]
    words = [TRAIN if word.startswith(TRAIN) else word for word in found]
    split = next((word for word in words if word != TRAIN), words[0] if words else "")
    return (_SPLIT.sub("", name).lstrip("-_.") if words else name), split


def recognise(
    path: Path, pivot: str = CorpusSettings().pivot, corpus: str = "", folders: Sequence[str] = ()
) -> Part | None:
    """Return what the name of a file says; None if it is no name of parallel text.

    Of a Moses pair, `paths` are the unpacked names of both sides, which need not exist. If the name has no split, the
    nearest of the `folders` around the file with a split decides.
    """
    name, _, kind = unpacked(path.name).rpartition(".")
    # Absolute, since a bare file name has a parent without a name.
    folder, table, side = path.absolute().parent, kind in _TABLES, ""
    if is_saved_table(path):
        name, table = path.name, True
    if not table and kind != "tsv":
        side = kind
        if not side:
            return None
    stem, split = take_split(name if side else SHARD.sub("", name))
    if not stem and split:
        stem, folder = take_split(folder.name)[0], folder.parent
    split = split or next(filter(None, (take_split(each)[1] for each in reversed(folders))), TRAIN)
    # An underscore mostly stands within a tag, as in `pt_br-en`, so it begins one only where nothing else does.
    pair = _read_pair(stem, side, pivot, path) or _read_pair(stem.replace("_", "."), side, pivot, path)
    if pair is None:
        return None
    paths: tuple[Path, ...] = (path,)
    if side:
        paths = tuple(path.with_name(f"{name}.{code}") for code in pair.written)
    first = pair.languages[0] == pivot or pair.languages[1] != pivot
    step = 1 if first else -1
    source, target = pair.languages[::step]
    columns = pair.written[::step] if table else ()
    name = stem[: len(pair.corpus)] or corpus or _corpus_folder(folder)
    return Part(paths[::step], name, target, source, first, columns, split)


def _corpus_folder(folder: Path) -> str:
    """Return the name of the nearest folder that is not a split alone."""
    while folder.name and not take_split(folder.name)[0]:
        folder = folder.parent
    return folder.name


def is_saved_table(path: Path) -> bool:
    """Return whether a path is a folder that `datasets.Dataset.save_to_disk` wrote."""
    return os.path.isfile(path / STATE)


class _Pair(NamedTuple):
    """A way to read a name: the corpus, and the two languages in canonical form and as written."""

    corpus: str
    languages: tuple[str, str]
    written: tuple[str, str]

    def is_common(self) -> bool:
        """Return whether both languages are written with codes that are seldom words."""
        return all(parse_name(code, common=True) for code in self.written)


def _read_pair(name: str, side: str, pivot: str, path: Path) -> _Pair | None:
    """Return the languages at the end of a name; `side` is the language of a Moses file.

    If there are several readings, the one with the pivot counts. A reading with regions in capitals, and a corpus that
    does not end in a language as in `pt-br-en`, comes first.
    """
    strict, loose = (
        [pair for pair in _readings(name, cased) if side in ("", *pair.written)] for cased in (True, False)
    )
    usual = [pair for pair in strict if not _ends_in_language(pair.corpus)]
    others = [pair for pair in loose if pair not in usual and pair.is_common()]
    for pairs in (usual, others):
        if with_pivot := [pair for pair in pairs if pivot in pair.languages]:
            return with_pivot[0]
    if others and len(usual + others) > 1:
        readings = " or ".join(" and ".join(pair.languages) for pair in others)
        raise DataError(f"{path}: the name can be read as {readings}; write regions in capitals, such as pt-BR")
    return next(iter(usual + others + strict), None)


def _ends_in_language(corpus: str) -> bool:
    return any(parse_name(corpus[start:], common=True) for start in _starts(corpus))


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
