"""What was ranked where, for the questions that two learners differ on most.

A question stands together with its translations: it is chosen by the mean over its languages, and shown in all of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metasearch.runs.questions import Ranking, Text
from metasearch.study.arms import Arm
from metasearch.study.study import Scored, Study

POOL = "multilingual"
DEPTH = 10
"""How many candidates of a ranking are shown."""

Asked = tuple[str, str]
"""Id and language of a question."""


@dataclass(frozen=True)
class Hit:
    """A candidate in a ranking.

    Attributes:
        rank: from 1.
        candidate: what stands there.
        relevant: whether it answers the question.
        score: that ranks it; None below the candidates that were kept.
    """

    rank: int
    candidate: Text
    relevant: bool
    score: float | None


@dataclass(frozen=True)
class Side:
    """What one learner did with a question in one language.

    Attributes:
        value: of the measure, mean over seeds.
        seed: whose ranking is shown, the first one.
        hits: the highest ranked candidates.
        below: the relevant ones that are not among them, by rank.
    """

    value: float
    seed: int
    hits: tuple[Hit, ...]
    below: tuple[Hit, ...]


@dataclass(frozen=True)
class Version:
    """A question in one language, and what both learners did with it."""

    text: Text
    baseline: Side
    other: Side

    @property
    def difference(self) -> float:
        """By how much the other learner is better."""
        return self.other.value - self.baseline.value


@dataclass(frozen=True)
class Question:
    """A question in its languages.

    Attributes:
        id: that its translations share.
        fold: that tested it.
        versions: one for each language, in the order of the study.
    """

    id: str
    fold: int
    versions: tuple[Version, ...]

    @property
    def baseline(self) -> float:
        """The baseline's value, mean over languages."""
        return float(np.mean([version.baseline.value for version in self.versions]))

    @property
    def other(self) -> float:
        """The other learner's value, mean over languages."""
        return float(np.mean([version.other.value for version in self.versions]))

    @property
    def difference(self) -> float:
        """By how much the other learner is better, mean over languages."""
        return self.other - self.baseline


@dataclass(frozen=True)
class Explorer:
    """The questions that two learners differ on most.

    Attributes:
        baseline: label of the learner that the other is compared with.
        other: label of the other learner.
        measure: such as `map@20`; of a single question it is the average precision.
        questions: the largest difference first, whatever its sign.
        compared: how many questions were compared, translations counted once.
        seeds: how many of baseline and other, at most.
    """

    baseline: str
    other: str
    measure: str
    questions: tuple[Question, ...]
    compared: int
    seeds: tuple[int, int]


def explore(study: Study, baseline: Arm, other: Arm, count: int = 20, measure: str | None = None) -> Explorer | None:
    """Return the questions that two learners differ on most.

    Args:
        study: has both.
        baseline: what the other is compared with.
        other: likewise, on the same questions.
        count: how many questions at most.
        measure: of the pool of all languages; by default the task's first.

    Returns:
        None where the task ranks nothing, or both have no fold in common.

    Raises:
        ConfigError: there is no such measure.
        DataError: what was kept of a run is damaged.
        RunFolderError: a run kept nothing of its questions.
    """
    measure, _ = study.require(measure)
    sides = [_by_fold(study.of(arm)) for arm in (baseline, other)]
    folds = sorted(sides[0].keys() & sides[1].keys())
    if not folds or any(run.questions.ranking is None for side in sides for fold in folds for run in side[fold]):
        return None
    values = {fold: (_values(sides[0][fold], measure), _values(sides[1][fold], measure)) for fold in folds}
    differences = {(fold, unit): diff for fold in folds for unit, diff in _differences(*values[fold]).items()}
    chosen = sorted(differences, key=lambda key: (-abs(differences[key]), key))[:count]
    shown = tuple(
        Question(unit, fold, _versions(unit, study.languages, (sides[0][fold][0], sides[1][fold][0]), values[fold]))
        for fold, unit in chosen
    )
    seeds = tuple(max(len(side[fold]) for fold in folds) for side in sides)
    return Explorer(baseline.label, other.label, measure, shown, len(differences), (seeds[0], seeds[1]))


def explorers(study: Study, baseline: Arm, count: int = 20, measure: str | None = None) -> list[Explorer]:
    """Return what `explore` finds for the baseline and each other arm, in their order; see there."""
    found = (explore(study, baseline, arm, count, measure) for arm in study.arms if arm != baseline)
    return [explorer for explorer in found if explorer]


def _by_fold(runs: Iterable[Scored]) -> dict[int, list[Scored]]:
    """Return the runs of each fold, the first seed first."""
    found: dict[int, list[Scored]] = defaultdict(list)
    for run in runs:
        found[run.fold].append(run)
    return found


def _values(runs: Sequence[Scored], measure: str) -> dict[Asked, float]:
    """Return the value of each question in each language, mean over seeds."""
    found: dict[Asked, list[float]] = defaultdict(list)
    for run in runs:
        for cell, ids in run.questions.units.items():
            if cell[0] == POOL:
                for unit, value in zip(ids, run.questions.columns[measure, *cell], strict=True):
                    found[unit, cell[1]].append(float(value))
    return {asked: float(np.mean(each)) for asked, each in found.items()}


def _differences(baseline: Mapping[Asked, float], other: Mapping[Asked, float]) -> dict[str, float]:
    """Return by how much the other is better at each question, mean over the languages that both were asked in."""
    found: dict[str, list[float]] = defaultdict(list)
    for asked in baseline.keys() & other.keys():
        found[asked[0]].append(other[asked] - baseline[asked])
    # Summed in sorted order: equal differences must not differ by the order of a set.
    return {unit: float(np.mean(sorted(each))) for unit, each in found.items()}


def _versions(
    unit: str,
    languages: Sequence[str],
    runs: tuple[Scored, Scored],
    values: tuple[Mapping[Asked, float], Mapping[Asked, float]],
) -> tuple[Version, ...]:
    """Return a question in each language that both learners were asked in."""
    found = []
    for asked in ((unit, language) for language in languages):
        if asked in values[0] and asked in values[1]:
            (text, baseline), (_, other) = (
                _side(run, asked, value[asked]) for run, value in zip(runs, values, strict=True)
            )
            found.append(Version(text, baseline, other))
    return tuple(found)


def _side(run: Scored, asked: Asked, value: float) -> tuple[Text, Side]:
    """Return the text of a question, and what a run ranked for it."""
    ranking = run.questions.ranking
    assert ranking is not None
    row = next(i for i, text in enumerate(ranking.questions) if (text.id, text.language) == asked)
    return ranking.questions[row], Side(value, run.seed, *_shown(ranking, row))


def _shown(ranking: Ranking, row: int, depth: int = DEPTH) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
    """Return the highest ranked candidates of a question, and the relevant ones below them."""
    mine = slice(int(ranking.offsets[row]), int(ranking.offsets[row + 1]))
    rank_of = dict(zip(ranking.relevant[mine].tolist(), ranking.ranks[mine].tolist(), strict=True))
    top, scores = ranking.top[row].tolist(), ranking.scores[row].tolist()
    hits = tuple(
        Hit(rank, ranking.candidates[i], i in rank_of, score)
        for rank, (i, score) in enumerate(zip(top[:depth], scores, strict=False), 1)
    )
    below = tuple(
        Hit(rank, ranking.candidates[i], True, scores[rank - 1] if rank <= len(scores) else None)
        for i, rank in rank_of.items()
        if rank > depth
    )
    return hits, below
