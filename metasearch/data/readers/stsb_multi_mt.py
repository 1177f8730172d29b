"""stsb-multi-mt: the STS benchmark machine-translated, one CSV a language and split, row-aligned across languages.

A pair in two languages takes its first sentence from one file and its second from the same row of the other.
"""

from pathlib import Path

from metasearch.config.task import Task
from metasearch.data.records import ScoredPair, SimilarityData
from metasearch.data.scored import scored_rows
from metasearch.errors import DataError

SPLITS = ("train", "dev", "test")


def files(task: Task) -> list[str]:
    """Return one file name a language and split."""
    return [_name(language, split) for language in task.languages for split in SPLITS]


def read(folder: Path, task: Task) -> SimilarityData:
    """Read all pairs of a task, with the files' splits."""
    pairs: list[ScoredPair] = []
    given: dict[str, str] = {}
    for split in SPLITS:
        rows = {language: list(scored_rows(folder / _name(language, split))) for language in task.languages}
        if len({len(of_language) for of_language in rows.values()}) > 1:
            counts = ", ".join(f"{_name(language, split)} {len(rows[language])}" for language in rows)
            raise DataError(f"{folder}: the files of a split must have the same rows in every language; rows: {counts}")
        for first, second in task.language_pairs:
            for i, (left, right) in enumerate(zip(rows[first], rows[second], strict=True), 1):
                group = f"{split}-{i}"
                given[group] = split
                pairs.append(ScoredPair(f"{first}-{second}", (first, second), left[0], right[1], left[2], group))
    return SimilarityData(tuple(pairs), given)


def _name(language: str, split: str) -> str:
    return f"stsb-{language}-{split}.csv"
