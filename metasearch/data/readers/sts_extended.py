"""Similarity pairs as TSV without a header, `STS.A-B.txt` a language pair: the form of STS2017-extended.

A line is `sentence<TAB>sentence<TAB>score`, the score from 0 to 5.
"""

from pathlib import Path

from metasearch.config.task import Task
from metasearch.data.records import ScoredPair, SimilarityData
from metasearch.data.scored import scored_rows


def files(task: Task) -> list[str]:
    """Return one file name a language pair."""
    return [f"STS.{first}-{second}.txt" for first, second in task.language_pairs]


def read(folder: Path, task: Task) -> SimilarityData:
    """Read all pairs of a task; `DataError` names file and line. Row i in every file belongs to one group."""
    pairs: list[ScoredPair] = []
    for languages, name in zip(task.language_pairs, files(task), strict=True):
        rows = enumerate(scored_rows(folder / name), 1)
        pairs += [ScoredPair("-".join(languages), languages, *row, f"row-{i}") for i, row in rows]
    return SimilarityData(tuple(pairs))
