"""Unlabelled texts with known language: from files named by language, or from a task's split.

| name | language |
|---|---|
| `de.txt`, `zh-CN.txt.gz` | from the name; a line is a text |
| `en-de.tsv` and the other names of parallel corpora | one for each side, see `metasearch.data.parallel.files` |
| a folder of `metasearch prepare` | one for each side, from its columns |
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path

from metasearch.config.languages import parse_name
from metasearch.config.recipe import Role
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import text_lines, unpacked
from metasearch.data.parallel.files import recognise
from metasearch.data.parallel.saved import SavedTable, is_prepared
from metasearch.data.records import Data, TranslationData, texts_of
from metasearch.errors import DataError, nearest
from metasearch.io import near

Tagged = dict[str, list[tuple[Role, str]]]
"""Language → distinct texts in it, each with its role."""

EXPECTED = "expected names that tell the language, such as de.txt, en-de.tsv or WikiMatrix.de-en.de"

log = logging.getLogger(__name__)


def read_tagged(paths: Iterable[Path], limit: int, languages: Sequence[str] = ()) -> Tagged:
    """Return the first texts per language from files; several files in a language alternate.

    Every other text is a question, the others are candidates, so that the prompts of both have their part.
    """
    sources: dict[str, list[Iterator[str]]] = {}
    for path in paths:
        for language, texts in _table_sources(path) if is_prepared(path) else _file_sources(path):
            sources.setdefault(language, []).append(texts)
    _require(languages, sources, "no texts")
    roles: tuple[Role, Role] = ("question", "candidate")
    tagged: Tagged = {}
    for language in languages or sorted(sources):
        rounds = chain.from_iterable(zip_longest(*sources[language]))
        first = islice(_distinct(text for text in rounds if text is not None), limit)
        tagged[language] = [(roles[i % 2], text) for i, text in enumerate(first)]
    return tagged


def tagged_of(data: Data, limit: int, languages: Sequence[str] = ()) -> Tagged:
    """Return a task's texts by language, without labels, sampled evenly if there are too many."""
    found: dict[str, dict[tuple[Role, str], None]] = {}
    if isinstance(data, TranslationData):
        raise DataError("a translation task has no train part to take texts from")
    for role, text, language in texts_of(data):
        found.setdefault(language, {})[role, text] = None
    _require(languages, found, "the train part has no texts")
    return {language: _spread(list(found[language]), limit) for language in languages or sorted(found)}


def _require(languages: Sequence[str], known: Iterable[str], what: str) -> None:
    for language in languages:
        if language not in (there := set(known)):
            raise DataError(f"{what} of language '{language}'.{nearest(language, there)}")


def _spread(texts: list[tuple[Role, str]], limit: int) -> list[tuple[Role, str]]:
    count = min(limit, len(texts))
    return [texts[i * len(texts) // count] for i in range(count)]


def _table_sources(folder: Path) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield the languages of a prepared corpus, each with its texts."""
    table = SavedTable(folder)
    _, origins = table.origins()
    for language in sorted({language for _, *sides in origins for language in sides}):
        yield language, _table_texts(table, language)


def _table_texts(table: SavedTable, language: str) -> Iterator[str]:
    for source, source_languages, target, target_languages in table.columns(
        "source", "source_language", "target", "target_language"
    ):
        both = chain(zip(source_languages, source, strict=True), zip(target_languages, target, strict=True))
        yield from (text for found, text in both if found == language)


def _file_sources(path: Path) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield each language of a file or folder with the texts of one of its files."""
    for below in _files(path):
        for language, column in _sides(below):
            yield language, _texts(below, column)


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise DataError(f"{path}: no such file or folder{near(path)}")
    if not path.is_dir():
        if not _sides(path):
            raise DataError(f"{path}: unknown language; {EXPECTED}")
        return [path]
    inside = sorted(below for below in path.rglob("*") if not below.is_dir() and not below.name.startswith("."))
    others = [str(below.relative_to(path)) for below in inside if not _sides(below)]
    if len(others) == len(inside):
        raise DataError(f"{path}: no file name has a language; {EXPECTED}")
    if others:
        names = ", ".join(others[:3] + ["..."] * (len(others) > 3))
        log.info("%s: %d files without a language are skipped: %s", path, len(others), names)
    return [below for below in inside if _sides(below)]


def _sides(path: Path) -> list[tuple[str, int | None]]:
    """Return the languages of a file, each with its column in a TSV file; none where the name does not tell."""
    name = unpacked(path.name)
    part = recognise(path)
    if part and not part.columns:
        if len(part.paths) == 1:
            return [(language, column) for column, language in enumerate(part.languages)]
        return [(part.language if name == part.path.name else part.pivot, None)]
    stem, _, suffix = name.rpartition(".")
    tag = parse_name(stem) if suffix == "txt" else ""
    return [(tag, None)] if tag else []


def _texts(path: Path, column: int | None) -> Iterator[str]:
    empty = True
    for number, line in text_lines(path):
        cells = [line] if column is None else line.split("\t")
        if column is not None and len(cells) <= column:
            raise DataError(f"{path}:{number}: expected two tab-separated columns")
        if not blank(text := cells[column or 0]):
            empty = False
            yield text.strip()
    if empty:
        raise DataError(f"{path}: the file has no text")


def _distinct(texts: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text
