"""A fold's test questions as a resampling unit, and paired runs of two arms."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasearch.config.measure import Measure
from metasearch.config.seeding import stream
from metasearch.errors import ConfigError, DataError
from metasearch.evaluation.statistics import bootstrap
from metasearch.evaluation.statistics.bootstrap import Array
from metasearch.evaluation.study.arms import Arm
from metasearch.evaluation.study.study import Scored, ScoreSelection, Study
from metasearch.runs.per_query_results import Cell

Runs = tuple[Scored, ...]
"""Runs of one arm on one fold, one for each seed."""
Rows = Sequence[NDArray[np.int64]]
"""Unit of each question, per cell."""
Values = Sequence[Sequence[Sequence[Array]]]
"""Of each cell and seed, the measure of each question, or what is predicted and gold."""

_CORRELATIONS = {"pearson": bootstrap.pearson, "spearman": bootstrap.spearman}
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Sample:
    """An arm's results per question in a fold; seeds are averaged.

    Attributes:
        cells: pool, language and candidates, C in all; `ids` are their questions.
        clusters: article of each distinct question, from 0, `(U,)`; the question itself if articles cannot be drawn.
        one_article: whether all questions are of one article, which cannot be resampled.
        statistic: how often each resample has each unit, `(B, U)` → the measure on each cell, `(B, C)`.
        observed: the measure per cell on the original questions, `(C,)`.
        source: path of a run that was sampled, for errors.
    """

    cells: tuple[Cell, ...]
    ids: tuple[tuple[str, ...], ...]
    clusters: NDArray[np.int64]
    one_article: bool
    statistic: Callable[[Array], Array]
    observed: Array
    source: str


def sample(runs: Runs, selection: ScoreSelection) -> Sample:
    """Return the sample of an arm on a fold, from one run for each seed.

    A mean over questions averages each question's values over seeds; a correlation has no value for a single question,
    so each resample's correlation is averaged over seeds.
    """
    first, results = runs[0], [run.questions for run in runs]
    measure, pool, _ = selection
    # Sorted, since cells of two arms are paired by their place.
    cells = tuple(sorted(cell for cell in results[0].units if cell[0] == pool))
    ids = tuple(results[0].units[cell] for cell in cells)
    # A single pair has no correlation, so runs store both sides of it instead.
    correlated = any(name == "predicted" for name, *_ in results[0].columns)
    names = ("predicted", "gold") if correlated else (measure,)
    for run, own in zip(runs, results, strict=True):
        if tuple(own.units.get(cell) for cell in cells) != ids:
            raise DataError(
                f"{first.run.path} and {run.run.path}: fold {first.fold} has different test questions in each"
            )
        if not cells or any((name, *cell) not in own.columns for name in names for cell in cells):
            raise DataError(f"{run.run.path}: no {measure} of each question was kept in pool {pool}")
    # One numbering for all cells, so that a question is drawn together with its translations.
    units = {unit: i for i, unit in enumerate(sorted({unit for asked in ids for unit in asked}))}
    rows = [np.array([units[unit] for unit in asked]) for asked in ids]
    values = [[[own.columns[name, *cell] for name in names] for own in results] for cell in cells]
    statistic = _correlation(measure, rows, values) if correlated else _mean(rows, values, len(units))
    observed: Array = statistic(np.ones((1, len(units))))[0]
    made = Sample(cells, ids, *_clusters(units, results[0].articles), statistic, observed, str(first.run.path))
    _require_reported(runs, made, selection)
    return made


def _clusters(units: Mapping[str, int], articles: Mapping[str, str]) -> tuple[NDArray[np.int64], bool]:
    """Return each question's article, or the question itself and True if all share one article."""
    # A question and an article may have the same name.
    names = [("article", articles[unit]) if unit in articles else ("question", unit) for unit in units]
    number = {name: i for i, name in enumerate(sorted(set(names)))}
    if len(number) < 2:
        return np.arange(len(units)), True
    return np.array([number[name] for name in names]), False


def _mean(rows: Rows, values: Values, units: int) -> Callable[[Array], Array]:
    columns = [np.mean([column for (column,) in seeds], axis=0) for seeds in values]
    # A unit may stand in a cell more than once, such as a source with two translations: hence sums and sizes.
    sums: Array = np.stack(
        [np.bincount(r, column, units).astype(np.float64) for r, column in zip(rows, columns, strict=True)], axis=1
    )
    sizes = np.stack([np.bincount(r, minlength=units) for r in rows], axis=1).astype(np.float64)
    return lambda weights: bootstrap.means(weights, sums, sizes)


def _correlation(measure: str, rows: Rows, values: Values) -> Callable[[Array], Array]:
    correlate = _CORRELATIONS.get(measure) or bootstrap.resampled(Measure(measure).load().function)

    def statistic(weights: Array) -> Array:
        columns = [
            np.mean([correlate(weights[:, r], predicted, gold) for predicted, gold in seeds], axis=0)
            for r, seeds in zip(rows, values, strict=True)
        ]
        return np.stack(columns, axis=1)

    return statistic


def _require_reported(runs: Runs, made: Sample, selection: ScoreSelection) -> None:
    """Raise `DataError` unless per-query results give the reported scores."""
    reported = [run.values(*selection) for run in runs]
    for (_, language, inside), value in zip(made.cells, made.observed, strict=True):
        score = np.mean([values.get((language, inside), np.nan) for values in reported])
        # Not `>=`: a score that is missing is NaN, and must be refused, too.
        if not abs(value - score) < _TOLERANCE:
            raise DataError(
                f"{made.source}: the kept questions give {selection.measure} {value:.6f} on {selection.pool} "
                f"{language}, but results.jsonl has {score:.6f}: they belong to different evaluations"
            )


@dataclass(frozen=True, eq=False)
class Pairing:
    """Runs of an arm and the baseline per fold and seed; `notes` name unpaired ones."""

    arm: Arm
    runs: Mapping[int, tuple[Runs, Runs]]
    notes: tuple[str, ...]


def pair(study: Study, arm: Arm, baseline: Arm, selection: ScoreSelection) -> Pairing:
    """Return the folds that both arms have, with the seeds to average over on each.

    Two trained arms are compared on common seeds, because a seed draws the same episodes for both. An untrained encoder
    may have fewer seeds; then each arm's own seeds are averaged.
    """
    own, other = (study.by_fold(each, selection) for each in (arm, baseline))
    names = arm.label, baseline.label
    both = sorted(own.keys() & other.keys())
    have = _have(names, "fold", own, other)
    if not both:
        raise ConfigError(f"{have}: no fold in common.")
    notes = [] if own.keys() == other.keys() else [f"{have}: compared on {join_numbers(both)}."]
    runs: dict[int, tuple[Runs, Runs]] = {}
    differing: dict[str, list[int]] = {}
    for fold in both:
        seeds, theirs = ({run.seed: run for run in folds[fold]} for folds in (own, other))
        common = sorted(seeds.keys() & theirs.keys())
        trained = arm.mode is not None and baseline.mode is not None
        if seeds.keys() != theirs.keys():
            done = (f"compared on {join_numbers(common)}" if common else "skipped") if trained else "averaged over them"
            differing.setdefault(f"{_have(names, 'seed', seeds, theirs)}: {done}.", []).append(fold)
        if not trained:
            runs[fold] = own[fold], other[fold]
        elif common:
            runs[fold] = tuple(seeds[s] for s in common), tuple(theirs[s] for s in common)
    notes += [f"Fold {join_numbers(folds)}: {text}" for text, folds in differing.items()]
    if not runs:
        raise ConfigError(f"no seed in common. {' '.join(notes)}")
    return Pairing(arm, runs, tuple(notes))


def _have(names: tuple[str, str], what: str, own: Collection[int], other: Collection[int]) -> str:
    (one, two), plural = names, [what + ("s" if len(each) != 1 else "") for each in (own, other)]
    return f"{one} has {plural[0]} {join_numbers(own)} and {two} {plural[1]} {join_numbers(other)}"


def join_numbers(numbers: Collection[int]) -> str:
    """Return numbers in order as text, such as `0, 2`."""
    return ", ".join(map(str, sorted(numbers))) or "none"


# The measure of each arm on each fold and language, as observed and on the resamples, which all arms share.


@dataclass(frozen=True, eq=False)
class Figure:
    """An arm's scores on a fold, for L languages and, last, their mean.

    Attributes:
        observed: the measure, `(L + 1,)`; NaN where the fold lacks a language.
        resampled: the measure on each resample of the fold's questions, `(B, L + 1)`; NaN where it is undefined.
        clusters: number of resampled articles, or questions if `one_article`.
    """

    observed: Array
    resampled: Array
    clusters: int
    one_article: bool


def figures(
    runs: Iterable[Runs], languages: Sequence[str], selection: ScoreSelection, resamples: int, seed: int
) -> dict[Runs, Figure]:
    """Return each group's figure; resample b of a fold has the same articles for every arm."""
    folds: dict[int, dict[Runs, Sample]] = {}
    for group in runs:
        own = folds.setdefault(group[0].fold, {})
        if group not in own:
            own[group] = sample(group, selection)
    made: dict[Runs, Figure] = {}
    for fold, samples in folds.items():
        first, *others = samples.values()
        for other in others:  # only for the same questions do all have the same units
            if (first.cells, first.ids) != (other.cells, other.ids):
                raise DataError(
                    f"{first.source} and {other.source} cannot be paired: their test questions or languages differ on "
                    f"fold {fold}"
                )
        blocks: dict[Runs, list[Array]] = {group: [] for group in samples}
        # The same counts for all arms make the bootstrap paired. A fold has a stream of its own, so that its draws
        # do not depend on which other folds there are.
        for weights in bootstrap.draws(first.clusters, resamples, stream(seed, "bootstrap", fold)):
            for group, each in samples.items():
                blocks[group].append(_by_language(each.statistic(weights), each, languages))
        for group, each in samples.items():
            observed = _by_language(each.observed[None], each, languages)[0]
            articles = int(first.clusters.max()) + 1
            made[group] = Figure(observed, np.concatenate(blocks[group]), articles, first.one_article)
    return made


def difference(pairs: Sequence[tuple[Runs, Runs]], resampled: Mapping[Runs, Figure]) -> tuple[Array, Array, Array]:
    """Return means over folds for both arms, `(L + 1,)` each, and resamples of their difference, `(B, L + 1)`.

    NaN where no fold has a language.
    """
    own, other = (np.stack([resampled[each[side]].observed for each in pairs]) for side in (0, 1))
    there = ~np.isnan(own)
    folds = np.where(there.any(axis=0), there.sum(axis=0), np.nan)
    # Resample b of the study is resample b of every fold (strata). A fold that lacks a language adds 0 and is not
    # counted, where its NaN would spoil the others.
    total = np.zeros_like(resampled[pairs[0][0]].resampled)
    for present, (one, two) in zip(there, pairs, strict=True):
        total += np.where(present, resampled[one].resampled - resampled[two].resampled, 0.0)
    return np.nansum(own, axis=0) / folds, np.nansum(other, axis=0) / folds, total / folds


def _by_language(values: Array, each: Sample, languages: Sequence[str]) -> Array:
    """Return cell means per language and, last, over all cells: `(B, C)` → `(B, L + 1)`."""
    spoken = np.array([language for _, language, _ in each.cells])
    made = np.full((len(values), len(languages) + 1), np.nan)
    for i, language in enumerate(languages):
        if (member := spoken == language).any():
            made[:, i] = values[:, member].mean(axis=1)
    made[:, -1] = values.mean(axis=1)
    return made
