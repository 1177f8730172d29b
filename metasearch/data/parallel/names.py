"""Recognises files of parallel text by their names.

| name | content |
|---|---|
| `en-de.tsv`, `de-en.tsv.gz` | two columns in the order of the name; further columns are ignored |
| `TED2020-en-de-train.tsv.gz` | the same, as sentence-transformers names them; `-dev`, `-test` are not for training |
| `WikiMatrix.de-en.de` and `WikiMatrix.de-en.en` | line-aligned sides in Moses format, as OPUS ships them |
| `en-de.parquet`, `TED2020-en-de-train.parquet` | a column for each language, called as in the name, or one of both |

All but Parquet files may be packed, and then end in `.gz` or `.zst`.

Where a name begins with no corpus, the folder's name is the corpus.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from metasearch.errors import DataError
from metasearch.formats.packed import SUFFIXES, unpacked
from metasearch.spec.arrangement import language_of

# With a hyphen, a region or script is in the case of BCP 47; `de-en` could be a language and its region otherwise.
_LANGUAGE = r"[a-z]{2,3}(?:-[A-Z]{2}|-[A-Z][a-z]{3}|_[A-Za-z]{2,4})?"
_PAIR = re.compile(rf"(?:(?P<corpus>.+)[-.])?(?P<first>{_LANGUAGE})-(?P<second>{_LANGUAGE})")
_TSV = re.compile(r"(?P<pair>.+?)(?:-(?P<split>train|dev|test))?\.(?P<kind>tsv(?:\.gz|\.zst)?|parquet)")
_MOSES = re.compile(rf"(?P<pair>.+?)\.(?P<side>{_LANGUAGE})(?:\.gz|\.zst)?")

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


def recognise(path: Path, tables: bool = False) -> ParallelFile | None:
    """Return what a file's name says; None when it is no name of parallel text, of lines or, if wanted, of tables."""
    tsv, moses = _TSV.fullmatch(path.name), _MOSES.fullmatch(path.name)
    match = tsv or moses
    pair = _PAIR.fullmatch(match["pair"]) if match else None
    if match is None or pair is None or (tsv and tsv["kind"] == "parquet" and not tables):
        return None
    written = (pair["first"], pair["second"])
    # Absolute, since a bare file name has a parent without a name.
    corpus = pair["corpus"] or path.absolute().parent.name
    languages = (language_of(written[0]), language_of(written[1]))
    if tsv:
        return ParallelFile(path, corpus, languages, written, tsv["split"] or "train")
    if match["side"] not in written:
        return None
    return ParallelFile(path, corpus, languages, written, sides=tuple(f"{match['pair']}.{code}" for code in written))
