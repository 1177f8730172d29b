"""The measure of arms on the questions of a fold, whole and without each article, and paired runs of two arms."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from metasearch.config.measure import Measure
from metasearch.errors import ConfigError, DataError
from metasearch.evaluation.statistics.jackknife import Array, Stratum
from metasearch.evaluation.statistics.paired import subtract
from metasearch.evaluation.study.study import Arm, Scored, ScoreSelection, Study
from metasearch.runs.per_query_results import Cell, QueryResults

Runs = tuple[Scored, ...]
"""Runs of one arm on one fold, one for each seed."""

_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Sample:
    """An arm's measure on the C cells of a fold, and without each of its A articles; seeds are averaged.

    `figures` has languages in place of cells: one value for each, and last their mean; NaN where the fold lacks one.

    Attributes:
        cells: pool, language and candidates; `ids` are their questions.
        values: the measure on each cell, `(C,)`.
        without: the measure without each article, `(A, C)`; NaN where it is undefined.
        sums: what each article adds to each cell, `(A, C)`, by which two arms are equal on it or differ.
        shares: share of each article in the questions of each cell, `(A, C)`.
        questions: number of distinct questions.
        one_article: whether all are of one article; then each question counts as an article.
        source: path of a run, for errors.
    """

    cells: tuple[Cell, ...]
    ids: tuple[tuple[str, ...], ...]
    values: Array
    without: Array
    sums: Array
    shares: Array
    questions: int
    one_article: bool
    source: str


def sample(runs: Runs, selection: ScoreSelection) -> Sample:
    """Return the sample of an arm on a fold, from one run for each seed; `DataError` if their questions differ."""
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
    if not correlated:
        results = [_with_values(own, cells, measure) for own in results]
        cells = tuple(cell for cell in cells if results[0].units[cell])
        ids = tuple(results[0].units[cell] for cell in cells)
    articles, one_article = _articles(ids, results[0].articles)
    made = Sample(
        cells, ids, *omitted(results, cells, measure, articles), len(articles), one_article, str(first.run.path)
    )
    _require_reported(runs, made, selection)
    return made


def _with_values(results: QueryResults, cells: Sequence[Cell], measure: str) -> QueryResults:
    """Return the questions of cells that have a value of a measure; the data alone decides which."""
    there = {cell: ~np.isnan(results.columns[measure, *cell]) for cell in cells}
    units = {cell: tuple(compress(results.units[cell], own)) for cell, own in there.items()}
    return QueryResults(
        units, {(measure, *cell): results.columns[measure, *cell][own] for cell, own in there.items()},
        articles=results.articles,
    )  # fmt: skip


def omitted(
    results: Sequence[QueryResults], cells: Sequence[Cell], measure: str, articles: Mapping[str, int]
) -> tuple[Array, Array, Array, Array]:
    """Return `values`, `without`, `sums` and `shares` as in `Sample`.

    Args:
        results: what was kept of each question, for each seed.
        cells: C cells of them.
        measure: the measure.
        articles: question → number of its article, 0 to A - 1.
    """
    size = max(articles.values()) + 1
    rows = [np.array([articles[unit] for unit in results[0].units[cell]]) for cell in cells]
    counts = np.stack([np.bincount(row, minlength=size) for row in rows], axis=1)
    shares = counts / counts.sum(axis=0)
    name = measure if (measure, *cells[0]) in results[0].columns else "predicted"
    columns = [np.mean([own.columns[name, *cell] for own in results], axis=0) for cell in cells]
    sums: Array = np.stack([np.bincount(*each, size) for each in zip(rows, columns, strict=True)], axis=1)
    if name == measure:
        with np.errstate(invalid="ignore"):
            without = (sums.sum(axis=0) - sums) / (counts.sum(axis=0) - counts)
        return sums.sum(axis=0) / counts.sum(axis=0), without, sums, shares
    # A correlation has no value of a single question, so that of each seed is computed anew, and averaged.
    found = np.mean([_correlations(measure, own, cells, rows, size) for own in results], axis=0)
    return found[0], found[1:], sums, shares


def _articles(ids: Sequence[Sequence[str]], articles: Mapping[str, str]) -> tuple[dict[str, int], bool]:
    """Return question → number of its article; of the question itself, and True, if all share one article."""
    units = sorted({unit for asked in ids for unit in asked})
    # A question and an article may have the same name.
    names = [("article", articles[unit]) if unit in articles else ("question", unit) for unit in units]
    number = {name: i for i, name in enumerate(sorted(set(names)))}
    if len(number) < 2:
        return {unit: i for i, unit in enumerate(units)}, True
    return {unit: number[name] for unit, name in zip(units, names, strict=True)}, False


def _correlations(
    measure: str, results: QueryResults, cells: Sequence[Cell], rows: Sequence[NDArray[np.int64]], size: int
) -> Array:
    """Return the measure on each cell, and below it without each article, `(1 + A, C)`; NaN where it is undefined."""
    # A pair is left out as often as there are pairs, and the checks of scipy take most of its time.
    function = {"pearson": _pearson, "spearman": _spearman}.get(measure) or Measure(measure).load().function
    made = np.full((1 + size, len(cells)), np.nan)
    for column, (cell, row) in enumerate(zip(cells, rows, strict=True)):
        predicted, gold = (results.columns[side, *cell] for side in ("predicted", "gold"))
        for article in range(-1, size):
            kept = row != article
            with suppress(DataError):
                made[1 + article, column] = function(predicted[kept], gold[kept])
    return made


def _pearson(x: Array, y: Array) -> float:
    """Return Pearson's r; NaN where a side is constant."""
    if min(len(x), np.ptp(x), np.ptp(y)) == 0:
        return np.nan
    return float(np.corrcoef(x, y)[0, 1])


def _spearman(x: Array, y: Array) -> float:
    """Return Spearman's ρ; NaN where a side is constant."""
    from scipy.stats import rankdata  # takes half a second, which rankings need not wait for

    return _pearson(rankdata(x), rankdata(y))


def _require_reported(runs: Runs, made: Sample, selection: ScoreSelection) -> None:
    """Raise `DataError` unless per-query results give the reported scores."""
    reported = [run.values(*selection) for run in runs]
    for (_, language, inside), value in zip(made.cells, made.values, strict=True):
        score = np.mean([values.get((language, inside), np.nan) for values in reported])
        # Not `>=`: a score that is missing is NaN, and must be refused, too.
        if not abs(value - score) < _TOLERANCE:
            raise DataError(
                f"{made.source}: the kept questions give {selection.measure} {value:.6f} on {selection.pool} "
                f"{language}, but results.jsonl has {score:.6f}: they belong to different evaluations"
            )


@dataclass(frozen=True, eq=False)
class Pairing:
    """Runs of an arm and its baseline per fold and seed; `notes` name unpaired ones."""

    arm: Arm
    baseline: Arm
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
    return Pairing(arm, baseline, runs, tuple(notes))


def _have(names: tuple[str, str], what: str, own: Collection[int], other: Collection[int]) -> str:
    (one, two), plural = names, [what + ("s" if len(each) != 1 else "") for each in (own, other)]
    return f"{one} has {plural[0]} {join_numbers(own)} and {two} {plural[1]} {join_numbers(other)}"


def join_numbers(numbers: Collection[int]) -> str:
    """Return numbers in order as text, such as `0, 2`."""
    return ", ".join(map(str, sorted(numbers))) or "none"


def figures(runs: Iterable[Runs], languages: Sequence[str], selection: ScoreSelection) -> dict[Runs, Sample]:
    """Return each group's measure by language; `DataError` where two on a fold have different questions."""
    folds: dict[int, Sample] = {}
    made: dict[Runs, Sample] = {}
    for group in dict.fromkeys(runs):
        own = sample(group, selection)
        first = folds.setdefault(group[0].fold, own)
        if (first.cells, first.ids) != (own.cells, own.ids):
            raise DataError(
                f"{first.source} and {own.source} cannot be paired: their test questions or languages differ on "
                f"fold {group[0].fold}"
            )
        values, without, shares = (
            _by_language(part, own.cells, languages) for part in (own.values, own.without, own.shares)
        )
        made[group] = replace(own, values=values, without=without, shares=shares)
    return made


def difference(one: Sample, other: Sample) -> Stratum:
    """Return the difference of two arms on a fold, whole and without each article."""
    values, without = subtract(one.values, other.values), subtract(one.without, other.without)
    return Stratum(values, without, one.shares, one.questions)


def _by_language(values: Array, cells: Sequence[Cell], languages: Sequence[str]) -> Array:
    """Return the mean over the cells of each language and, last, over all cells: `(..., C)` → `(..., L + 1)`."""
    spoken = np.array([language for _, language, _ in cells])
    made = np.full((*values.shape[:-1], len(languages) + 1), np.nan)
    for i, language in enumerate(languages):
        if (member := spoken == language).any():
            made[..., i] = values[..., member].mean(axis=-1)
    made[..., -1] = values.mean(axis=-1)
    return made
