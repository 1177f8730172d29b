"""Ways to ask whether two learners differ, each on the per-question differences of a study, `(F, S, A, Q, L)`.

Each returns whether a true null would be rejected at 5 %. `over_training` and `papers` call what `metasearch compare`
calls, and `these_models` the formulas that it uses; `hierarchical` is a bootstrap on whole arrays.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from metasearch.evaluation.statistics.folds import FoldDifference, training_interval
from metasearch.evaluation.statistics.jackknife import LEVEL, Interval, Stratum, spread
from metasearch.evaluation.statistics.paired import student

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
    return omitted(articles, np.full(articles.shape, study.shape[3])).excludes(0.0)


def omitted(means: Array, sizes: NDArray[np.int64]) -> Interval:
    """Return the interval of the mean over folds and questions with each article left out.

    `means` is the mean of each article's questions, and `sizes` the number of them, `(F, A)`.
    """
    strata = []
    for own, questions in zip(means * sizes, sizes, strict=True):
        total = questions.sum()
        without = (own.sum() - own) / (total - questions)
        shares = questions / total
        strata.append(Stratum(own.sum(keepdims=True) / total, without[:, None], shares[:, None], int(total)))
    return spread(strata).intervals(np.mean([each.values for each in strata], axis=0))[0]


def bootstrapped(means: Array, sizes: NDArray[np.int64], random: np.random.Generator) -> Interval:
    """Return the percentiles of a bootstrap over articles within folds, likewise."""
    folds, count = means.shape
    drawn = random.integers(0, count, (_RESAMPLES, folds, count))
    own, rows = np.arange(folds)[:, None], sizes.astype(np.float64)
    figures = ((means * rows)[own, drawn].sum(axis=2) / rows[own, drawn].sum(axis=2)).mean(axis=1)
    return Interval(*np.quantile(figures, [0.025, 0.975]).tolist())


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
    found = student(means, float(np.abs(means).max()))
    return found.p is not None and found.p < 1 - LEVEL


METHODS: Mapping[str, Callable[[Array, np.random.Generator], bool]] = {
    "main": over_training,
    "these models": these_models,
    "hierarchical bootstrap": hierarchical,
    "t-test over fold × language": papers,
}
