"""Recognises files of parallel text by their names.

| name | content |
|---|---|
| `en-de.tsv`, `de-en.tsv.gz` | two columns in the order of the name; further columns are ignored |
| `TED2020-en-de-train.tsv.gz` | the same, as sentence-transformers names them; `-dev`, `-test` are not for training |
| `WikiMatrix.de-en.de` and `WikiMatrix.de-en.en` | line-aligned sides in Moses format, as OPUS ships them; `.gz`, too |

Where a name begins with no corpus, the folder's name is the corpus.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from metasearch.errors import DataError
from metasearch.spec.arrangement import language_of

# With a hyphen, a region or script is in the case of BCP 47; `de-en` could be a language and its region otherwise.
_LANGUAGE = r"[a-z]{2,3}(?:-[A-Z]{2}|-[A-Z][a-z]{3}|_[A-Za-z]{2,4})?"
_PAIR = re.compile(rf"(?:(?P<corpus>.+)[-.])?(?P<first>{_LANGUAGE})-(?P<second>{_LANGUAGE})")
_TSV = re.compile(r"(?P<pair>.+?)(?:-(?P<split>train|dev|test))?\.tsv(?:\.gz)?")
_MOSES = re.compile(rf"(?P<pair>.+?)\.(?P<side>{_LANGUAGE})(?:\.gz)?")

EXPECTED = (
    "expected names such as en-de.tsv, TED2020-en-de-train.tsv.gz, or WikiMatrix.de-en.de and WikiMatrix.de-en.en"
)


@dataclass(frozen=True, slots=True)
class ParallelFile:
    """A file of parallel text, or one of two line-aligned files, as its name describes it.

    Attributes:
        path: the file.
        corpus: name of the corpus, such as `TED2020`.
        languages: languages in the order of the name, hence of the columns.
        split: `train`, `dev` or `test`; `train` where the name has none.
        sides: names of the two line-aligned files without `.gz`, in the order of the languages; empty for a TSV file.
    """

    path: Path
    corpus: str
    languages: tuple[str, str]
    split: str = "train"
    sides: tuple[str, ...] = ()

    def paths(self) -> tuple[Path, ...]:
        """Return the TSV file, or the two sides, packed or not; `DataError` when one is missing."""
        return tuple(map(self._side, self.sides)) or (self.path,)

    def _side(self, name: str) -> Path:
        if self.path.name.removesuffix(".gz") == name:
            return self.path
        plain, packed = self.path.with_name(name), self.path.with_name(f"{name}.gz")
        if not plain.exists() and not packed.exists():
            raise DataError(f"{self.path}: its other side is missing; expected {plain.name} or {packed.name} beside it")
        return plain if plain.exists() else packed


def recognise(path: Path) -> ParallelFile | None:
    """Return what a file's name says; None when it is no name of parallel text."""
    tsv, moses = _TSV.fullmatch(path.name), _MOSES.fullmatch(path.name)
    match = tsv or moses
    pair = _PAIR.fullmatch(match["pair"]) if match else None
    if match is None or pair is None:
        return None
    written = (pair["first"], pair["second"])
    # Absolute, since a bare file name has a parent without a name.
    corpus = pair["corpus"] or path.absolute().parent.name
    languages = (language_of(written[0]), language_of(written[1]))
    if tsv:
        return ParallelFile(path, corpus, languages, tsv["split"] or "train")
    if match["side"] not in written:
        return None
    return ParallelFile(path, corpus, languages, sides=tuple(f"{match['pair']}.{code}" for code in written))
