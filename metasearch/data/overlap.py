"""Detect training texts that occur in a test set, also as a part, ignoring punctuation and case.

Texts are compared after NFKC and case folding and without punctuation, symbols and white space. A text that is a part
of a passage overlaps, too, if `LEAST` characters of it are left; so does one that a text of a set with passages is a
part of.
"""

import unicodedata
from dataclasses import dataclass
from pathlib import Path

from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import suffix_of, table_rows, text_lines
from metasearch.data.records import Data, RetrievalData, texts_of
from metasearch.errors import DataError

LEAST = 25
"""Characters, after normalisation, from which a text that is a part of another one says something."""

_NO_LINES = (".html", ".json", ".jsonl", ".parquet", ".xml", ".yaml")
"""Suffixes of files whose lines are no texts."""


@dataclass(frozen=True)
class TestSet:
    """A test set's texts, each with file and line; no training text may be a part of one of its `passages`."""

    __test__ = False  # it is no test of pytest's

    name: str
    texts: tuple[tuple[str, str], ...]
    passages: tuple[tuple[str, str], ...] = ()


def set_of(name: str, data: Data) -> TestSet:
    """Return the texts of a task's data; its candidates are passages, as training texts may be their sentences."""
    texts = [(each.text, f"{name}: {each.role} in {each.language}") for each in texts_of(data)]
    passages = [each for each in data.candidates if each.shown] if isinstance(data, RetrievalData) else []
    shown = [(each.shown, f"{name}: {each.id}") for each in passages]
    return TestSet(name, (*texts, *shown), tuple((each.text, f"{name}: {each.id}") for each in passages))


def set_of_file(path: Path) -> TestSet:
    """Return a file's texts: its lines, or all cells in a `.tsv` or `.csv` file."""
    suffix = suffix_of(path)
    if suffix in _NO_LINES:
        raise DataError(f"{path}: expected a file of texts, a line each, or a table in .tsv or .csv; got {suffix}")
    lines = ((number, [line]) for number, line in text_lines(path))
    rows = table_rows(path) if suffix in (".csv", ".tsv") else lines
    texts = ((text.strip(), f"{path.name}:{number}") for number, row in rows for text in row if not blank(text))
    found = TestSet(path.name, tuple(texts))
    if not found.texts:
        raise DataError(f"{path}: the file has no text")
    return found


class _Kept(dict[int, str | None]):
    """A character translation that removes punctuation, symbols, white space and control characters."""

    def __missing__(self, code: int) -> str | None:
        kept = None if unicodedata.category(chr(code))[0] in "PSZC" else chr(code)
        self[code] = kept
        return kept


_KEPT = _Kept()


def key(text: str) -> str:
    """Return a text's comparison key; equal for texts that look the same to a reader."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_KEPT)


class Index:
    """A searchable index of a test set's texts."""

    def __init__(self, test: TestSet) -> None:
        self.name = test.name
        self.size = len(test.texts)
        self.places: dict[str, str] = {}
        for text, place in test.texts:
            if normalised := key(text):
                self.places.setdefault(normalised, place)
        self.passages = [(key(text), place) for text, place in test.passages]
        # Hashes take a fraction of the memory of the texts; what they find is looked at.
        self.parts = {hash(text[i : i + LEAST]) for text, _ in self.passages for i in range(len(text) - LEAST + 1)}
        self.heads: dict[str, list[str]] = {}
        if self.passages:
            for text in self.places:
                if len(text) >= LEAST:
                    self.heads.setdefault(text[:LEAST], []).append(text)

    def find(self, text: str) -> str | None:
        """Return the place of a normalised text, or None."""
        return self.places.get(text) or self._within(text) or self._around(text)

    def _within(self, text: str) -> str | None:
        """Return a passage that the text is a part of."""
        if len(text) < LEAST or hash(text[:LEAST]) not in self.parts:
            return None
        return next((f"{place} (part)" for passage, place in self.passages if text in passage), None)

    def _around(self, text: str) -> str | None:
        """Return a test-set text that is part of this text."""
        if self.heads:
            for i in range(len(text) - LEAST + 1):
                for known in self.heads.get(text[i : i + LEAST], ()):
                    if text.startswith(known, i):
                        return f"{self.places[known]} (contained)"
        return None
