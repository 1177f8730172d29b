"""Metrics for pairs of texts: correlations of predicted and gold similarity, and accuracy in translation retrieval."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import DataError, NonFiniteError
from metasearch.evaluation.metrics.base import Metric, Values

_CELLS = 2**24
"""Similarities that are held at once, 64 MiB of them; 100,000 texts on each side have 600 times as many."""


def pearson(predicted: NDArray[np.floating], gold: NDArray[np.floating]) -> float:
    """Return r for `(N,)` and `(N,)`; errors as `require_defined`."""
    from scipy import stats  # takes half a second, which commands that only read declarations need not wait for

    require_defined(predicted, gold)
    return float(stats.pearsonr(*map(_scaled, (predicted, gold))).statistic)


def _scaled(values: NDArray[np.floating]) -> Values:
    """Return values times a power of two, the largest near 1: no digit changes, and no square overflows."""
    wide = np.asarray(values, np.float64)
    scaled: Values = np.ldexp(wide, -np.frexp(np.abs(wide).max())[1])
    return scaled


def require_defined(predicted: NDArray[np.floating], gold: NDArray[np.floating]) -> None:
    """Check predicted and gold scores, `(N,)` each, for any correlation."""
    for name, values in (("predicted", predicted), ("gold", gold)):
        if not np.isfinite(values).all():
            raise NonFiniteError(f"correlation is undefined: a {name} score is not finite")
        # scipy only warns of a constant side and returns NaN.
        if len(values) < 2 or (values == values[0]).all():
            raise DataError(f"correlation is undefined: the {len(values)} {name} scores are constant")


METRIC_PEARSON = Metric("similarity", pearson)
"""Pearson's r of predicted with gold similarity, the measure of SemEval-2017 task 1 (Cer et al. 2017).

r = Σ (p − p̄)(g − ḡ) / √(Σ (p − p̄)² · Σ (g − ḡ)²)
"""


def spearman(predicted: NDArray[np.floating], gold: NDArray[np.floating]) -> float:
    """Return ρ for `(N,)` and `(N,)`; errors as `require_defined`."""
    from scipy import stats  # takes half a second, which commands that only read declarations need not wait for

    require_defined(predicted, gold)
    return float(stats.spearmanr(predicted, gold).statistic)


METRIC_SPEARMAN = Metric("similarity", spearman)
"""Spearman's ρ of predicted with gold similarity: Pearson's r of their ranks, ties at the middle of their ranks.

Spearman 1904; recommended for sentence similarity by Reimers, Beyer & Gurevych 2016.
"""


def first_equal(vectors: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return the index of the first equal vector for each vector, `(N, D)` → `(N,)`.

    A matrix product may round two equal columns differently, so that ties between equal vectors must be made.
    """
    # Keyed by bytes, one pass finds all equal rows; rows that differ in the sign of a zero count as different.
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(vector.tobytes(), i) for i, vector in enumerate(vectors)], np.int64)


def text_numbers(texts: Iterable[str]) -> NDArray[np.int64]:
    """Return a number for each text, `(N,)`; equal texts have equal numbers."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)


def nearest_neighbours(queries: NDArray[np.floating], candidates: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return the index of the candidate with the highest cosine to each query, `(Q, D)` and `(C, D)` → `(Q,)`.

    Of equal candidates the first one is taken: an encoder that gives all texts the same vector finds the first text
    for each. Only a block of rows of the cosine matrix is held at once.
    """
    if not (np.isfinite(queries).all() and np.isfinite(candidates).all()):
        raise NonFiniteError("accuracy is undefined: the encoder's vectors are not finite")
    # The length of a query changes nothing in the order of its candidates.
    lengths = np.linalg.norm(candidates, axis=1, keepdims=True)
    # A vector of length 0 stays 0, so that its cosine counts as 0 and is not NaN.
    pool = candidates / np.where(lengths > 0, lengths, 1)
    rows = max(1, _CELLS // len(pool))
    nearest = [np.argmax(queries[start : start + rows] @ pool.T, axis=1) for start in range(0, len(queries), rows)]
    # A product may round equal columns differently: each is replaced by the first of its equals.
    found: NDArray[np.int64] = first_equal(pool)[np.concatenate(nearest)]
    return found


def accuracy(
    queries: NDArray[np.floating],
    translations: NDArray[np.floating],
    asked: NDArray[np.int64] | None = None,
    answers: NDArray[np.int64] | None = None,
) -> Values:
    """Return 1 for each query whose nearest neighbour is one of its translations, else 0, twice `(N, D)` → `(N,)`.

    Args:
        queries: vectors of the texts that are asked, `(N, D)`.
        translations: vectors of their translations, `(N, D)`.
        asked: number of each asked text, `(N,)`; a text that is asked twice has several right translations.
        answers: number of the text of each translation, `(N,)`. By default all texts differ.

    Raises:
        NonFiniteError: as `nearest_neighbours`.

    Example:
        >>> accuracy(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[2.0, 1.0], [9.0, 1.0]]))   # each finds the other
        array([0., 0.])
        >>> accuracy(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[2.0, 1.0], [1.0, 1.0]]))
        array([1., 1.])
    """
    asked, answers = (np.arange(len(queries)) if numbers is None else numbers for numbers in (asked, answers))
    found = answers[nearest_neighbours(queries, translations)]
    # A question and an answer as one number; those of the pairs are right.
    size = answers.max() + 1
    return np.where(np.isin(asked * size + found, asked * size + answers), 1.0, 0.0)


METRIC_ACCURACY = Metric("translation", accuracy)
"""Accuracy in translation retrieval: is a text's nearest neighbour on the other side a translation of it?

As Tatoeba is scored (Artetxe & Schwenk, 2019; XTREME; EMA teacher, section 3.2): one nearest neighbour by cosine.
"""
