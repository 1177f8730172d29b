"""Ways to ask whether two learners differ, each on the per-question differences of a study, `(F, S, A, Q, L)`.

Each returns whether a true null would be rejected at 5 %. `over_training` and `papers` call what `metasearch compare`
calls, and `these_models` the formulas that it uses; `hierarchical` is a bootstrap on whole arrays.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from metasearch.evaluation.statistics.folds import FoldDifference, training_interval
from metasearch.evaluation.statistics.jackknife import LEVEL, Stratum, spread
from metasearch.evaluation.statistics.paired import paired_test

Array = NDArray[np.float64]
_RESAMPLES = 400


def over_training(study: Array, random: np.random.Generator) -> bool:
    """Return whether the main interval of `metasearch compare` excludes 0: Student's over folds."""
    by_seed = study.mean(axis=(2, 3, 4))
    articles = study.mean(axis=(1, 3, 4))  # of equal size, so that the variance of their mean is known in closed form
    count = articles.shape[1]
    folds = [
        FoldDifference(tuple(seeds), float(own.var(ddof=1) / count), count - 1)
        for seeds, own in zip(by_seed, articles, strict=True)
    ]
    found = training_interval(folds, LEVEL)
    return found is not None and found.excludes(0.0)


def these_models(study: Array, random: np.random.Generator) -> bool:
    """Return whether the interval of fixed models excludes 0: Student's over articles, each left out in turn."""
    articles = study.mean(axis=(1, 3, 4))
    strata = [fold_of(own, np.full(len(own), study.shape[3])) for own in articles]
    (found,) = spread(strata).intervals(np.mean([each.values for each in strata], axis=0))
    return found.excludes(0.0)


def fold_of(means: Array, sizes: NDArray[np.int64]) -> Stratum:
    """Return the mean over the questions of a fold, from the mean and the number of questions of each article."""
    sums, total = means * sizes, sizes.sum()
    without = (sums.sum() - sums) / (total - sizes)
    return Stratum(np.array([sums.sum() / total]), without[:, None], (sizes / total)[:, None], int(total))


def hierarchical(study: Array, random: np.random.Generator) -> bool:
    """Return whether percentiles of a hierarchical bootstrap exclude 0: folds, seeds, articles, questions."""
    values = study.mean(axis=4)
    f, s, a, q = values.shape
    b = _RESAMPLES
    fold = random.integers(0, f, (b, f, 1, 1, 1))
    seed = random.integers(0, s, (b, f, s, 1, 1))
    article = random.integers(0, a, (b, f, 1, a, 1))
    question = random.integers(0, q, (b, f, 1, a, q))
    low, high = np.quantile(values[fold, seed, article, question].mean(axis=(1, 2, 3, 4)), [0.025, 0.975])
    return not low <= 0 <= high


def papers(study: Array, random: np.random.Generator) -> bool:
    """Return whether the paired t-test over fold × language means rejects."""
    means = study.mean(axis=(1, 2, 3)).ravel()
    found = paired_test(means.tolist(), [0.0] * len(means))
    return found.p is not None and found.p < 1 - LEVEL


METHODS: Mapping[str, Callable[[Array, np.random.Generator], bool]] = {
    "main": over_training,
    "these models": these_models,
    "hierarchical bootstrap": hierarchical,
    "t-test over fold × language": papers,
}
