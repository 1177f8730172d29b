"""Unlabelled texts from files, or from a task's split; with their languages where these are known.

| name | texts | language |
|---|---|---|
| `de.txt`, `zh-CN.txt.gz` | lines | from the name |
| `en-de.tsv` and other TSV files | the two columns of texts | one for each |
| `WikiMatrix.de-en.de`, a side of a parallel corpus | lines | from the name |
| `en-de.parquet` and other tables of a parallel corpus, hub names | both columns | from the name |
| a saved corpus, a folder of `datasets` | both sides | from its columns |

Of a folder, dev, validation and test splits are skipped, as in training (`metasearch.data.parallel.names`).
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from operator import itemgetter
from pathlib import Path

import numpy as np

from metasearch.config.distillation import CorpusSettings
from metasearch.config.languages import parse_name, spelling_of
from metasearch.config.roles import Role
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import Report, require_readable, some, text_lines, unpacked
from metasearch.data.locate import fetch, is_hub_name
from metasearch.data.parallel.files import clean, read_sides, walk
from metasearch.data.parallel.names import TRAIN, Part, recognise, take_split
from metasearch.data.parallel.saved import SavedTable, is_saved_corpus
from metasearch.data.records import Data, TranslationData, texts_of
from metasearch.errors import DataError, nearest

Tagged = dict[str, list[tuple[Role, str]]]
"""Language → distinct texts in it, each with its role."""

SUFFIXES = (".txt", ".tsv")
_KINDS = (
    f"no file in it ends in {', '.join(SUFFIXES)}, or in one of these and .gz, or is named as a side of a parallel "
    "corpus, such as WikiMatrix.de-en.de"
)
_NAMES = "expected names that tell the language, such as de.txt, en-de.tsv or WikiMatrix.de-en.de"

log = logging.getLogger(__name__)


# Texts in any language.


def read_texts(paths: Iterable[Path]) -> Iterator[str]:
    """Yield non-blank texts from files and folders, one a line; in a `.tsv` file two columns are texts.

    `DataError` with file and line if a path is missing, empty, damaged, or not UTF-8.
    """
    for path in text_files(paths):
        if unpacked(path.name).endswith(".tsv"):
            yield from chain.from_iterable(_pairs(Part((path,), "", "", "")))
        else:
            yield from _texts(path)


def text_files(paths: Iterable[Path]) -> list[Path]:
    """Return the given files, and the text files in given folders, at any depth, by name.

    The log names some of the other files. `DataError` where a path is missing, a folder has no text file, or a text is
    in a compression that cannot be read.
    """
    files = _find(paths, _is_text, "are not texts and are skipped", _KINDS)
    for path in files:
        require_readable(path)
    return files


def _is_text(path: Path) -> bool:
    if unpacked(path.name).endswith(SUFFIXES):
        return True
    part = recognise(path)
    return part is not None and not part.columns


def _find(paths: Iterable[Path], known: Callable[[Path], object], others: str, expected: str) -> list[Path]:
    """Return the given files, and those in folders that are `known`; messages say what `others` are."""
    files: dict[Path, None] = {}
    for path in paths:
        inside = sorted(walk(path))
        held_out = {below: None for below in inside if below != path and _is_held_out(below, path)}
        inside = [below for below in inside if below not in held_out]
        found = [below for below in inside if known(below) or (below == path and not path.is_dir())]
        if not found:
            raise DataError(f"{path}: {expected}")
        files |= dict.fromkeys(found)
        for left, why in ((held_out, "of a dev, validation or test split are skipped"), (inside, others)):
            if names := [str(below.relative_to(path)) for below in left if below not in files]:
                log.info("%s: %d files %s: %s", path, len(names), why, some(names))
    return list(files)


def _is_held_out(below: Path, path: Path) -> bool:
    *folders, name = below.relative_to(path).parts
    if all(take_split(each)[1] in ("", TRAIN) for each in (*folders, unpacked(name).rpartition(".")[0])):
        return False
    part = recognise(below, folders=folders)
    return part is not None and part.split != TRAIN


def _texts(path: Path) -> Iterator[str]:
    """Yield the lines that are not blank; `DataError` if there is none."""
    empty = True
    for _, line in text_lines(path):
        if not blank(line):
            empty = False
            yield line.strip()
    if empty:
        raise DataError(f"{path}: the file has no text")


def _pairs(part: Part) -> Iterator[tuple[str, str]]:
    """Yield both texts of each line or row that has two; `DataError` if there is none."""
    report = Report()
    for report.read, line in enumerate(read_sides(part), 1):
        texts = clean(line, CorpusSettings())
        if isinstance(texts, str):
            report.drop(texts)
        else:
            yield texts
    report.require_pairs(part.path)
    if report.dropped:
        log.info("%s: %s", part.path, report.describe())


# Texts by language.


def read_tagged(paths: Iterable[Path], limit: int, languages: Sequence[str] = ()) -> Tagged:
    """Return the first texts per language from files; several files in a language alternate.

    Every other text is a question, the others are candidates, so that the prompts of both have their part.
    """
    sources: dict[str, list[Iterator[str]]] = {}
    for path in paths:
        for language, texts in _table_sources(path) if is_saved_corpus(path) else _file_sources(path):
            sources.setdefault(language, []).append(texts)
    _require(languages, sources, "no texts")
    roles: tuple[Role, Role] = ("question", "candidate")
    tagged: Tagged = {}
    for language in languages or sorted(sources):
        rounds = filter(None, chain.from_iterable(zip_longest(*sources[language])))
        tagged[language] = [(roles[i % 2], text) for i, text in enumerate(islice(_distinct(rounds), limit))]
    return tagged


def tagged_of(data: Data, limit: int, languages: Sequence[str] = ()) -> Tagged:
    """Return a task's texts by language, without labels, sampled evenly if there are too many."""
    found: dict[str, dict[tuple[Role, str], None]] = {}
    if isinstance(data, TranslationData):
        raise DataError("a translation task has no train part to take texts from")
    for role, text, language in texts_of(data):
        found.setdefault(language, {})[role, text] = None
    languages = [spelling_of(language, found) for language in languages]
    _require(languages, found, "the train part has no texts")
    return {language: _spread(list(found[language]), limit) for language in languages or sorted(found)}


def _table_sources(folder: Path) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield a saved corpus, file by file: each language with its texts."""
    table = SavedTable(folder)
    numbers, origins = table.origins()
    for number, (_, *languages) in enumerate(origins):
        rows = np.flatnonzero(numbers == number)
        yield from ((language, map(itemgetter(side), table.texts(rows))) for side, language in enumerate(languages))


def _file_sources(path: Path) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield each language of a file, a folder or a hub name with the texts of one of its files."""
    place = fetch(path.as_posix()) if is_hub_name(path.as_posix()) else path
    for below in _find([place], _sides, "without a language are skipped", f"no file name has a language; {_NAMES}"):
        sides = _sides(below)
        if not sides:
            raise DataError(f"{below}: unknown language; {_NAMES}")
        yield from sides


def _sides(path: Path) -> list[tuple[str, Iterator[str]]]:
    """Return the languages in a file's name, each with its texts; empty if it has none."""
    name = unpacked(path.name)
    part = recognise(path)
    if part and len(part.paths) == 1:
        return [(part.pivot, map(itemgetter(0), _pairs(part))), (part.language, map(itemgetter(1), _pairs(part)))]
    if part:
        return [(part.language if name == part.path.name else part.pivot, _texts(path))]
    stem, _, suffix = name.rpartition(".")
    tag = parse_name(stem) if suffix == "txt" else ""
    return [(tag, _texts(path))] if tag else []


def _require(languages: Sequence[str], known: Iterable[str], what: str) -> None:
    for language in languages:
        if language not in (there := set(known)):
            raise DataError(f"{what} of language '{language}'.{nearest(language, there)}")


def _spread(texts: list[tuple[Role, str]], limit: int) -> list[tuple[Role, str]]:
    count = min(limit, len(texts))
    return [texts[i * len(texts) // count] for i in range(count)]


def _distinct(texts: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text
