"""Similarity pairs as TSV without a header, `STS.A-B.txt` a language pair: the form of STS2017-extended.

A line is `sentence<TAB>sentence<TAB>score`, the score from 0 to 5.
"""

from pathlib import Path

from metasearch.config.task import Task
from metasearch.data.formats.text_files import tsv_rows
from metasearch.data.readers.base import pair_languages
from metasearch.data.records import ScoredPair, SimilarityData
from metasearch.data.scored import check_rows


def files(task: Task) -> list[str]:
    """Return one file name a language pair."""
    return [f"STS.{first}-{second}.txt" for first, second in pair_languages(task)]


def read(folder: Path, task: Task) -> SimilarityData:
    """Read all pairs of a task; `DataError` names file and line of a damaged one. Row i of each file is one group."""
    pairs: list[ScoredPair] = []
    for languages, name in zip(pair_languages(task), files(task), strict=True):
        rows = check_rows(folder / name, tsv_rows(folder / name))
        pairs += [ScoredPair("-".join(languages), languages, *row, f"row-{i}") for i, row in enumerate(rows, 1)]
    return SimilarityData(tuple(pairs))
