"""The interface of metrics, and the ranks used by retrieval metrics.

A metric is a module with `METRIC`, a `Metric`; its name is its file's, or its entry point's in the group
`metasearch.metrics`. Higher values are better: early stopping keeps the highest, and reports rank by it. Only a `rank`
is better if it is lower; neither training nor comparisons use one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from metasearch.config.measure import Measure
from metasearch.config.task import TaskKind
from metasearch.errors import ConfigError, DataError, NonFiniteError

Values = NDArray[np.float64]
NOT_FOUND = 2**62
"""Rank of a relevant document that is not in the pool. It is in no top k, nor in the whole ranking."""


@dataclass(frozen=True)
class Metric:
    """A metric for one kind of task.

    Attributes:
        kind: kind of the tasks; it decides what the function takes and returns.

            - `retrieval`: `(ranks: Ranks, k: int | None) -> (N,)`, the value of each of N questions;
            - `similarity`: `(predicted (N,), gold (N,)) -> float`;
            - `translation`: `(queries (N, D), translations (N, D), asked (N,), answers (N,)) -> (N,)`, the value of
              each query. Equal texts have equal numbers in `asked` and in `answers`: a repeated text has several right
              translations.
        function: the definition.
        cutoff: whether a measure may have a cut-off, as in `name@10`; `required` where the value for the whole ranking
            says nothing. Retrieval only.
        languages: whether it is about the languages of candidates, which `Ranks.own` and `Ranks.first_own` have. It is
            computed only in pools of several languages, and may return NaN for questions without a value.
        unit: `share` for values that are shown times 100; `rank` for ranks, which count from 1.
    """

    kind: TaskKind
    function: Callable[..., Any]
    cutoff: Literal["none", "optional", "required"] = "none"
    languages: bool = False
    unit: Literal["share", "rank"] = "share"


def load_function(measure: Measure, kind: TaskKind) -> Callable[..., Any]:
    """Return the function of a measure; it raises `NonFiniteError` where a value is NaN or infinite."""
    metric: Metric = measure.load()
    if metric.kind != kind:
        raise ConfigError(f"measure '{measure}' is for {metric.kind} tasks, the data is of a {kind} task")

    def finite(*args: Any) -> Any:
        values = metric.function(*args)
        # Of a metric from outside; it would stop no training and spoil the results.
        if not (np.isfinite(values) | (metric.languages & np.isnan(values))).all():
            raise NonFiniteError(f"measure '{measure}' has a value that is not finite")
        return values

    return finite


@dataclass(frozen=True)
class Ranks:
    """Ranks of the M relevant candidates for N questions.

    Attributes:
        ranks: ranks from 1, ascending within each question, `(M,)`; two candidates share none but `NOT_FOUND`, that of
            a document outside the pool.
        offsets: question i has the ranks from `offsets[i]` to `offsets[i + 1]`, `(N + 1,)`.
        gains: relevance of each, above 0 and finite, `(M,)`; None where all have 1.
        own: whether each is in the language of its question, `(M,)`; False for `NOT_FOUND`. None in a pool of one
            language.
        first_own: whether the candidate of rank 1 is in the language of the question, `(N,)`; None as `own`.

    Raises:
        DataError: a question has no relevant candidate, so that no metric is defined; or a rank is repeated, below 1 or
            out of order; or a gain is not a finite number above 0.
    """

    ranks: NDArray[np.int64]
    offsets: NDArray[np.int64]
    gains: Values | None = None
    own: NDArray[np.bool_] | None = None
    first_own: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if not self.sizes.all():
            raise DataError(f"question {int(np.argmin(self.sizes))} has no relevant candidate: no metric is defined")
        above = np.concatenate([[0], self.ranks[:-1]])
        above[self.offsets[:-1]] = 0
        if (wrong := (self.ranks <= above) & ((self.ranks < NOT_FOUND) | (above > NOT_FOUND))).any():
            raise DataError(f"rank {self.ranks[wrong][0]} of a relevant candidate is repeated, below 1 or out of order")
        if self.gains is not None and (wrong := ~((self.gains > 0) & (self.gains < np.inf))).any():
            raise DataError(f"relevance {self.gains[wrong][0]} of a candidate: expected a finite number above 0")

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of relevant candidates per question, R, `(N,)`."""
        return np.diff(self.offsets)

    @property
    def ideal(self) -> NDArray[np.int64]:
        """Ranks in a perfect ranking: 1 to R per question, `(M,)`."""
        return np.arange(1, len(self.ranks) + 1) - np.repeat(self.offsets[:-1], self.sizes)

    @property
    def first(self) -> NDArray[np.int64]:
        """Rank of the best relevant candidate per question, `(N,)`."""
        # Ranks ascend within a question and none is empty.
        return self.ranks[self.offsets[:-1]]

    def hits(self, k: int | None) -> NDArray[np.int64]:
        """Return how many relevant candidates each question has in its top k, `(N,)`; None is the whole ranking."""
        # `reduceat` gives an empty segment its neighbour's value; `__post_init__` has refused such questions.
        return np.add.reduceat(self.within(k).astype(np.int64), self.offsets[:-1])

    def within(self, k: int | None) -> NDArray[np.bool_]:
        """Return which relevant candidates are in the top k, `(M,)`; None is the whole ranking."""
        return self.ranks < NOT_FOUND if k is None else self.ranks <= k

    def part(self, chosen: NDArray[np.bool_]) -> tuple["Ranks", NDArray[np.int64]]:
        """Return the chosen among M relevant candidates at their ranks, and the questions that have any, `(P,)`."""
        counts = np.add.reduceat(chosen.astype(np.int64), self.offsets[:-1])
        questions = np.flatnonzero(counts)
        offsets = np.concatenate([[0], np.cumsum(counts[questions])])
        return Ranks(self.ranks[chosen], offsets, None if self.gains is None else self.gains[chosen]), questions
