"""Tatoeba as LASER ships it: `tatoeba.LLL-eng.LLL` and `tatoeba.LLL-eng.eng`, line by line translations of each other.

Codes follow ISO 639-3 (LASER, `data/tatoeba/v1`: 112 languages with up to 1,000 pairs each).
"""

import logging
from pathlib import Path

from metasearch.config.task import Task
from metasearch.data.formats.text_files import lines_of, strip_text
from metasearch.data.records import Translation, TranslationData
from metasearch.errors import DataError

PIVOT = "eng"
_SHOWN = 8

log = logging.getLogger(__name__)


def files(task: Task) -> list[str]:
    """Return the two files for each language."""
    return [name for language in task.languages for name in _names(language)]


def read(folder: Path, task: Task) -> TranslationData:
    """Read all languages of a task; those without files are passed over, and named, where the task is `partial`."""
    pairs: list[Translation] = []
    absent: list[str] = []
    for language in task.languages:
        if task.partial and not any((folder / name).exists() for name in _names(language)):
            absent.append(language)
        else:
            pairs += _pairs(folder, language)
    if absent:
        present = [language for language in task.languages if language not in absent]
        few = f": {_some(present)}" if len(present) < len(absent) else f"; without files: {_some(absent)}"
        log.info(f"{task.name}: {len(present)} of {len(task.languages)} languages are there{few}")
    return TranslationData(tuple(pairs), {name: tuple(codes) for name, codes in task.groups.items()})


def _some(languages: list[str]) -> str:
    more = f" ... ({len(languages)})" if len(languages) > _SHOWN else ""
    return " ".join(languages[:_SHOWN]) + more


def _names(language: str) -> tuple[str, str]:
    stem = f"tatoeba.{language}-{PIVOT}"
    return f"{stem}.{language}", f"{stem}.{PIVOT}"


def _pairs(folder: Path, language: str) -> list[Translation]:
    paths = [folder / name for name in _names(language)]
    for path, other in (paths, paths[::-1]):
        if not path.exists():
            raise DataError(f"{path}: no such file; {other.name} needs it, line by line")
    sides = [lines_of(path) for path in paths]
    if len(sides[0]) != len(sides[1]):
        raise DataError(
            f"{paths[0]}: expected {len(sides[1])} lines, as many as in {paths[1].name}; got {len(sides[0])}."
            " Line by line they must be translations of each other"
        )
    targets, sources = (
        [strip_text(text, f"{path}:{number}") for number, text in enumerate(lines, 1)]
        for path, lines in zip(paths, sides, strict=True)
    )
    return [Translation(source, target, (PIVOT, language)) for source, target in zip(sources, targets, strict=True)]
