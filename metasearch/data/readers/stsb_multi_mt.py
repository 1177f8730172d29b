"""stsb-multi-mt: the STS benchmark machine-translated, one CSV a language and split, row-aligned across languages.

A pair in two languages takes its first sentence from one file and its second from the same row of the other.
"""

from pathlib import Path

from metasearch.data.readers.base import csv_of, gold, nonempty, pair_languages, text_of
from metasearch.data.records import ScoredPair, SimilarityData
from metasearch.errors import DataError
from metasearch.spec.task import Task

SPLITS = ("train", "dev", "test")
Row = tuple[str, str, float]


def files(task: Task) -> list[str]:
    """Return one file name a language and split."""
    return [_name(language, split) for language in task.languages for split in SPLITS]


def read(folder: Path, task: Task) -> SimilarityData:
    """Read all pairs of a task, split as the files are.

    Raises:
        DataError: a row is damaged, or two languages have different numbers of rows.
    """
    pairs: list[ScoredPair] = []
    given: dict[str, str] = {}
    for split in SPLITS:
        rows = {language: _rows(folder / _name(language, split)) for language in task.languages}
        _aligned(folder, split, rows)
        for first, second in pair_languages(task):
            for i, (left, right) in enumerate(zip(rows[first], rows[second], strict=True), 1):
                group = f"{split}-{i}"
                given[group] = split
                pairs.append(ScoredPair(f"{first}-{second}", (first, second), left[0], right[1], left[2], group))
    return SimilarityData(tuple(pairs), given)


def _name(language: str, split: str) -> str:
    return f"stsb-{language}-{split}.csv"


def _rows(path: Path) -> list[Row]:
    rows: list[Row] = []
    for line, row in csv_of(text_of(path), path):
        if len(row) != 3:
            raise DataError(f"{path}:{line}: expected sentence, sentence, score; got {len(row)} columns")
        first, second = (nonempty(text, "a sentence", path, line) for text in row[:2])
        rows.append((first, second, gold(row[2], path, line)))
    if not rows:
        raise DataError(f"{path}: the file is empty")
    return rows


def _aligned(folder: Path, split: str, rows: dict[str, list[Row]]) -> None:
    sizes = {_name(language, split): len(found) for language, found in rows.items()}
    if len(set(sizes.values())) > 1:
        counts = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise DataError(f"{folder}: the files of a split must have the same rows in every language; rows: {counts}")
