"""Rankings by two learners for the questions with the largest difference.

A question and its translations are one entry: it is chosen by the mean over its languages, and shown in all of them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.statistics import weighted
from metasearch.evaluation.study.arms import Arm
from metasearch.evaluation.study.study import Scored, ScoreSelection, Study
from metasearch.runs.per_query_results import Ranking, Text

POOL = "multilingual"
DEPTH = 10
"""How many candidates of a ranking are shown."""
DECIMALS = 4
"""To how many decimals values and scores are rounded: a page has thousands of them."""

Asked = tuple[str, str]
"""Id and language of a question."""


class Hit(NamedTuple):
    """A candidate in a ranking, with its rank from 1; its score is None where the run has kept only the rank.

    `relevant` is 1 where it answers the question, else 0: a page has thousands of them.
    """

    rank: int
    candidate: Text
    relevant: int
    score: float | None


@dataclass(frozen=True)
class Side:
    """One learner's result on a question in one language: measure, mean over seeds, and ranking.

    The ranking is that of the first seed: the highest ranked candidates, and the relevant ones below them, by rank.
    """

    value: float
    seed: int
    hits: tuple[Hit, ...]
    below: tuple[Hit, ...]


@dataclass(frozen=True)
class Version:
    """A question in one language, and the results of the baseline and the other learner."""

    text: Text
    sides: tuple[Side, ...]


@dataclass(frozen=True)
class Question:
    """A question in a fold, in all languages in study order, with the id shared by its translations.

    `values` are those of the baseline and the other learner, mean over languages.
    """

    id: str
    fold: int
    values: tuple[float, ...]
    versions: tuple[Version, ...]

    @property
    def difference(self) -> float:
        """By how much the other learner is better."""
        return self.values[1] - self.values[0]


@dataclass(frozen=True)
class Explorer:
    """The questions that two learners, named by their labels, differ on most.

    Attributes:
        measure: name of the measure, such as `map@20`; of a single question it is the average precision.
        questions: the largest difference first, whatever its sign.
        compared: number of questions that were compared, translations counted once.
        seeds: largest number of seeds on a fold, of baseline and other.
    """

    baseline: str
    other: str
    measure: str
    questions: tuple[Question, ...]
    compared: int
    seeds: tuple[int, int]


def explore(study: Study, baseline: Arm, other: Arm, count: int = 20, measure: str | None = None) -> Explorer | None:
    """Return at most `count` questions with the largest difference between two learners, on the multilingual pool.

    None where the task ranks nothing, or both have no fold in common.

    Raises:
        ConfigError: there is no such measure; by default it is the task's first.
        DataError: the results of the questions of a run are damaged.
        RunFolderError: a run has no such results.
    """
    selection = ScoreSelection(study.select(measure).measure, POOL)
    sides = [study.by_fold(arm, selection) for arm in (baseline, other)]
    folds = sorted(sides[0].keys() & sides[1].keys())
    if not folds or any(run.questions.ranking is None for side in sides for fold in folds for run in side[fold]):
        return None
    values = {fold: [_values(side[fold], selection) for side in sides] for fold in folds}
    differences = {(fold, unit): diff for fold in folds for unit, diff in _differences(*values[fold]).items()}
    # Ties are broken by fold and id: the set behind the dictionary has another order in each process.
    chosen = sorted(differences, key=lambda key: (-abs(differences[key]), key))[:count]
    shown = tuple(
        _question(unit, fold, study.languages, [side[fold][0] for side in sides], values[fold]) for fold, unit in chosen
    )
    one, two = (max(len(side[fold]) for fold in folds) for side in sides)
    return Explorer(baseline.label, other.label, selection.measure, shown, len(differences), (one, two))


def explorers(study: Study, baseline: Arm, count: int = 20, measure: str | None = None) -> list[Explorer]:
    """Return the result of `explore` for the baseline and each other arm, in their order; see there."""
    each = (explore(study, baseline, arm, count, measure) for arm in study.arms if arm != baseline)
    return [explorer for explorer in each if explorer]


def _values(runs: Sequence[Scored], selection: ScoreSelection) -> dict[Asked, float]:
    """Return each question's value per language, mean over seeds."""
    values: dict[Asked, list[float]] = defaultdict(list)
    for run in runs:
        for cell, ids in run.questions.units.items():
            if cell[0] == selection.pool:
                for unit, value in zip(ids, run.questions.columns[selection.measure, *cell], strict=True):
                    values[unit, cell[1]].append(float(value))
    return {asked: float(np.mean(each)) for asked, each in values.items()}


def _differences(baseline: Mapping[Asked, float], other: Mapping[Asked, float]) -> dict[str, float]:
    """Return by how much the other is better at each question, mean over the languages that both were asked in."""
    differences: dict[str, list[float]] = defaultdict(list)
    for asked in baseline.keys() & other.keys():
        differences[asked[0]].append(other[asked] - baseline[asked])
    # Summed in sorted order: equal differences must not differ by the order of a set.
    return {unit: float(np.mean(sorted(each))) for unit, each in differences.items()}


def _question(
    unit: str, fold: int, languages: Sequence[str], runs: Sequence[Scored], values: Sequence[Mapping[Asked, float]]
) -> Question:
    """Return a question in each language that both learners were asked in."""
    both = [language for language in languages if all((unit, language) in own for own in values)]
    versions = []
    for language in both:
        asked = unit, language
        texts, sides = zip(*(_side(run, asked, own[asked]) for run, own in zip(runs, values, strict=True)), strict=True)
        versions.append(Version(texts[0], sides))
    means = (float(np.mean([own[unit, language] for language in both])) for own in values)
    return Question(unit, fold, tuple(round(mean, DECIMALS) for mean in means), tuple(versions))


def _side(run: Scored, asked: Asked, value: float) -> tuple[Text, Side]:
    """Return a question's text, and a run's ranking for it."""
    ranking = run.questions.ranking
    # `explore` has returned before where a run has none.
    assert ranking is not None
    row = next(i for i, text in enumerate(ranking.questions) if (text.id, text.language) == asked)
    return ranking.questions[row], Side(round(value, DECIMALS), run.seed, *_hits(ranking, row))


def _hits(ranking: Ranking, row: int) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
    """Return a question's top candidates, and its relevant ones below them."""
    own = slice(int(ranking.offsets[row]), int(ranking.offsets[row + 1]))
    rank_of = dict(zip(ranking.relevant[own].tolist(), ranking.ranks[own].tolist(), strict=True))
    top, scores = ranking.top[row].tolist(), [round(score, DECIMALS) for score in ranking.scores[row].tolist()]
    hits = tuple(
        Hit(rank, ranking.candidates[i], int(i in rank_of), score)
        # Not strict: scores go deeper than what is shown.
        for rank, (i, score) in enumerate(zip(top[:DEPTH], scores, strict=False), 1)
    )
    below = tuple(
        # Below what is shown, a score is known as deep as the run kept its ranking.
        Hit(rank, ranking.candidates[i], 1, scores[rank - 1] if rank <= len(scores) else None)
        for i, rank in rank_of.items()
        if rank > DEPTH
    )
    return hits, below


# Which pairs of texts two learners place most differently, for tasks that correlate similarity with gold.

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
    """Return each pair's rank among pairs with the same languages, from 0 to 1, mean over seeds."""
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
