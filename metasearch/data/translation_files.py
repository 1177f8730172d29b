"""Translations in files: one file a pair of languages with two columns, or row-aligned files, one a language."""

import logging
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path

from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import strip_text, table_rows
from metasearch.errors import DataError
from metasearch.io import digest, fingerprint_of, near

log = logging.getLogger(__name__)


class TranslationFiles:
    """Looks texts up in files that somebody translated before.

    `{language}` in the path makes it files that are aligned by rows: each cell of row i of the one language is the
    translation of the cell in the same place of the other. `{source}` and `{target}` make it a file with a text and
    its translation in the first two columns of each row. Texts are compared without white space at their ends.
    """

    def __init__(self, path: str, folder: Path) -> None:
        self._path, self._folder = path, folder

    def fingerprint(self, source: str, target: str) -> str:
        """Return a hash of the files' content."""
        try:
            return fingerprint_of([["files", *map(digest, self._files(source, target))]])
        except OSError as error:
            hint = near(Path(error.filename))
            raise DataError(f"{error.filename}: the translations cannot be read: {error.strerror}{hint}") from None

    def translate(self, source: str, target: str, texts: Sequence[str]) -> dict[str, str]:
        """Return text → translation; `DataError` where a file is missing or damaged, or has not all of them."""
        table, several = dict[str, str](), 0
        files = self._files(source, target)
        for text, translation in _aligned(*files) if len(files) == 2 else _columns(files[0]):
            several += table.setdefault(text, translation) != translation
        if several:
            log.warning("%s: %d texts have several translations; using the first", files[-1], several)
        texts = list(dict.fromkeys(texts))
        if missing := [text for text in texts if text.strip() not in table]:
            raise DataError(
                f"{' and '.join(map(str, files))}: no translation from {source} into {target} of {len(missing)} of "
                f"{len(texts)} texts, the first '{missing[0][:80]}'"
            )
        return {text: table[text.strip()] for text in texts}

    def _files(self, source: str, target: str) -> list[Path]:
        named = self._path.replace("{source}", source).replace("{target}", target)
        names = dict.fromkeys(named.replace("{language}", language) for language in (source, target))
        return [self._folder / name for name in names]


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    rows = list(table_rows(path))
    while rows and not rows[-1][1]:
        rows.pop()
    if not rows:
        raise DataError(f"{path}: the file is empty")
    return rows


def _columns(path: Path) -> Iterator[tuple[str, str]]:
    for line, row in filter(itemgetter(1), _rows(path)):
        if len(row) < 2:
            raise DataError(f"{path}:{line}: expected a text and its translation, got one column")
        yield strip_text(row[0], f"{path}:{line}"), strip_text(row[1], f"{path}:{line}")


def _aligned(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    own, its = _rows(source), _rows(target)
    if len(own) != len(its):
        raise DataError(f"{source} and {target}: expected as many rows in both; there are {len(own)} and {len(its)}")
    for (line, row), (other, translated) in zip(own, its, strict=True):
        if len(row) != len(translated):
            raise DataError(
                f"{target}:{other}: expected {len(row)} columns, as in {source}:{line}; got {len(translated)}"
            )
        for text, translation in zip(row, translated, strict=True):
            if bool(held := blank(translation)) and not blank(text):
                raise DataError(f"{target}:{other}: expected the translation of '{text[:80]}', got {held}")
            yield text.strip(), translation.strip()
