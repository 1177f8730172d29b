"""Ways to ask whether two learners differ, each on the per-question differences of a study, `(F, S, A, Q, L)`.

Each returns whether a true null would be rejected at 5 %. `over_training` and `papers` call what `metasearch compare`
calls; `these_models` and `hierarchical` are the bootstraps on whole arrays.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from metasearch.evaluation.statistics.bootstrap import LEVEL, interval
from metasearch.evaluation.statistics.folds import FoldDifference, training_interval
from metasearch.evaluation.statistics.paired import paired_test

Array = NDArray[np.float64]
_RESAMPLES = 400


def over_training(study: Array, random: np.random.Generator) -> bool:
    """Return whether the main interval of `metasearch compare` excludes 0: Student's over folds."""
    by_seed = study.mean(axis=(2, 3, 4))
    articles = study.mean(axis=(1, 3, 4))  # of equal size, so that the variance of their mean is known in closed form
    count = articles.shape[1]
    folds = [
        FoldDifference(tuple(seeds), float(own.var(ddof=1) / count), count)
        for seeds, own in zip(by_seed, articles, strict=True)
    ]
    found = training_interval(folds, LEVEL)
    return found is not None and found.excludes(0.0)


def these_models(study: Array, random: np.random.Generator) -> bool:
    """Return whether the interval of these models excludes 0: articles resampled within folds, percentiles."""
    articles = study.mean(axis=(1, 3, 4))
    folds, count = articles.shape
    drawn = random.integers(0, count, (_RESAMPLES, folds, count))
    return interval(articles[np.arange(folds)[:, None], drawn].mean(axis=(1, 2))).excludes(0.0)


def hierarchical(study: Array, random: np.random.Generator) -> bool:
    """Return whether percentiles of a hierarchical bootstrap exclude 0: folds, seeds, articles, questions."""
    values = study.mean(axis=4)
    f, s, a, q = values.shape
    b = _RESAMPLES
    fold = random.integers(0, f, (b, f, 1, 1, 1))
    seed = random.integers(0, s, (b, f, s, 1, 1))
    article = random.integers(0, a, (b, f, 1, a, 1))
    question = random.integers(0, q, (b, f, 1, a, q))
    return interval(values[fold, seed, article, question].mean(axis=(1, 2, 3, 4))).excludes(0.0)


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
