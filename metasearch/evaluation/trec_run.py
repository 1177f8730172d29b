"""Writes the ranking of a pool as a TREC run file, for trec_eval and other programs.

A line is `query Q0 document rank score system`. A query is `LANGUAGE:ID`, as translations share their id.
"""

from pathlib import Path

import numpy as np

from metasearch.errors import DataError
from metasearch.io import atomic_write
from metasearch.runs.per_query_results import Ranking


def write_ranking(path: Path, ranking: Ranking, system: str) -> None:
    """Write a ranking as a run file, whole or not at all; `DataError` for a name with white space."""
    name, lines = "_".join(system.split()), list[str]()
    for question, columns, scores in zip(ranking.questions, ranking.top, ranking.scores, strict=True):
        query = f"{question.language}:{question.id}"
        # The question itself, where it is not ranked, comes last in a pool that is no deeper.
        ranked = [pair for pair in zip(columns, scores, strict=True) if np.isfinite(pair[1])]
        for rank, (column, score) in enumerate(ranked, 1):
            document = ranking.candidates[column].id
            for written in (query, document, name):
                if not written or written.split() != [written]:
                    raise DataError(
                        f"{path}: '{written}' cannot be a name in a TREC run file, which has no white space"
                    )
            # `repr` has all digits of a score, so that reading it back changes no order.
            lines.append(f"{query} Q0 {document} {rank} {float(score)!r} {name}\n")
    atomic_write(path, "".join(lines).encode())
