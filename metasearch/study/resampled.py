"""The measure of each arm on each fold and language, as observed and on the resamples, which all arms share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import DataError
from metasearch.spec.seeding import stream
from metasearch.study.paired import Runs, Sample, sample
from metasearch.study.statistics import bootstrap
from metasearch.study.study import ScoreSelection

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Figure:
    """Scores of an arm on a fold, for L languages and, last, their mean.

    Attributes:
        observed: the measure, `(L + 1,)`; NaN where the fold lacks a language.
        resampled: the measure on each resample of the fold's questions, `(B, L + 1)`; NaN where it is undefined.
        clusters: number of articles that are resampled, or of questions where these stand for articles.
        unknown: why they do; empty where they do not.
    """

    observed: Array
    resampled: Array
    clusters: int
    unknown: str


def figures(
    runs: Iterable[Runs], languages: Sequence[str], selection: ScoreSelection, resamples: int, seed: int
) -> dict[Runs, Figure]:
    """Return the figure of each group of runs: one arm, one fold, its seeds.

    Resample b of a fold has the same articles for every arm, with all questions in all their languages, L of them; each
    fold has B.

    Raises:
        RunFolderError: a run has no results of its questions.
        DataError: the results are damaged, or two runs of a fold have other questions.
    """
    folds: dict[int, dict[Runs, Sample]] = {}
    for group in runs:
        own = folds.setdefault(group[0].fold, {})
        if group not in own:
            own[group] = sample(group, selection)
    made: dict[Runs, Figure] = {}
    for fold, samples in folds.items():
        first, *others = samples.values()
        for other in others:  # the counts of the first's units are those of the others only for the same questions
            if (first.cells, first.ids) != (other.cells, other.ids):
                raise DataError(
                    f"{first.source} and {other.source} cannot be paired: they have other test questions or languages "
                    f"on fold {fold}"
                )
        # Where one of several runs knows the articles of the fold's questions, all are resampled by them.
        known = min(samples.values(), key=lambda each: bool(each.unknown))
        blocks: dict[Runs, list[Array]] = {group: [] for group in samples}
        # The same counts for all arms make the bootstrap paired. A fold has a stream of its own, so that its draws
        # do not depend on which other folds there are.
        for weights in bootstrap.draws(known.clusters, resamples, stream(seed, "bootstrap", fold)):
            for group, each in samples.items():
                blocks[group].append(_by_language(each.statistic(weights), each, languages))
        for group, each in samples.items():
            observed = _by_language(each.observed()[None], each, languages)[0]
            articles = int(known.clusters.max()) + 1
            made[group] = Figure(observed, np.concatenate(blocks[group]), articles, known.unknown)
    return made


def difference(pairs: Sequence[tuple[Runs, Runs]], resampled: Mapping[Runs, Figure]) -> tuple[Array, Array, Array]:
    """Return the mean over folds of one arm, of the other and of the resamples of their difference.

    `pairs` are the runs of both arms on each fold. Shapes are `(L + 1,)`, `(L + 1,)` and `(B, L + 1)`; NaN where no
    fold has a language.
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
    """Return the mean of the cells of each language and, last, of all cells: `(B, C)` → `(B, L + 1)`."""
    spoken = np.array([language for _, language, _ in each.cells])
    made = np.full((len(values), len(languages) + 1), np.nan)
    for i, language in enumerate(languages):
        if (member := spoken == language).any():
            made[:, i] = values[:, member].mean(axis=1)
    made[:, -1] = values.mean(axis=1)
    return made
