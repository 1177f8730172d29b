"""Which pairs of texts two learners place most differently, for tasks that correlate similarity with gold."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from metasearch.reports.table import Cell, Line, Table
from metasearch.study.arms import Arm
from metasearch.study.statistics import weighted
from metasearch.study.study import Scored, Study

Pair = tuple[int, str, str]
"""Fold, languages and id of a pair of texts; pairs with the same id are one group, of which the mean is taken."""

NOTES = (
    "Rank is the share of the pairs of its languages that a pair is placed above, from 0 to 1 (ties in the middle).",
    "Nearer is by how much the second learner places the pair nearer to where gold does; negative: farther off.",
    "Values are means over seeds.",
)


def changed_pairs(study: Study, baseline: Arm, other: Arm, count: int = 20) -> Table | None:
    """Return the pairs whose distance to gold changes most, |rank(baseline) - rank(gold)| - |rank(other) - rank(gold)|.

    Ranks and not cosines, since a learner that stretches all cosines places no pair differently. None where the task
    correlates nothing, or both have no pair in common.
    """
    gold = _ranks(study.of(baseline), "gold")
    before, after = (_ranks(study.of(arm), "predicted") for arm in (baseline, other))
    both = before.keys() & after.keys()
    nearer = {pair: abs(before[pair] - gold[pair]) - abs(after[pair] - gold[pair]) for pair in both}
    if not nearer:
        return None
    chosen = sorted(nearer, key=lambda pair: (-abs(nearer[pair]), pair))[:count]
    return Table(
        key=f"pairs-{study.arms.index(other)}",
        title=f"Pairs that {baseline.label} and {other.label} place most differently",
        heads=("pair", "languages", "fold"),
        columns=("gold", baseline.label, other.label, "nearer"),
        lines=tuple(
            Line(
                (name, languages, str(fold)),
                tuple(Cell(values[fold, languages, name]) for values in (gold, before, after, nearer)),
            )
            for fold, languages, name in chosen
        ),
        notes=NOTES,
        scale=1.0,
        decimals=3,
    )


def _ranks(runs: Sequence[Scored], column: str) -> dict[Pair, float]:
    """Return the rank of each pair among those of its languages, from 0 to 1, mean over seeds."""
    listed: dict[Pair, list[float]] = defaultdict(list)
    for run in runs:
        for cell, ids in run.questions.units.items():
            values = run.questions.columns.get((column, *cell))
            if values is not None:
                for name, rank in zip(ids, _share(values), strict=True):
                    listed[run.fold, cell[1], name].append(float(rank))
    return {pair: float(np.mean(ranks)) for pair, ranks in listed.items()}


def _share(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return midranks, from 0 to 1, `(N,)` → `(N,)`."""
    ranks: NDArray[np.float64] = weighted.midranks(np.ones((1, len(values))), values)[0][0]
    return (ranks - 1) / max(len(values) - 1, 1)
