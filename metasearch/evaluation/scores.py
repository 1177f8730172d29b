"""Scores of an evaluation: one row for each measure, pool and language, and their means."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Pool = Literal["multilingual", "bilingual", "monolingual", "pairs"]
"""What is ranked: candidates of all languages together, of one other language, or of the question's own; or, for
similarity, no ranking."""

MEAN = "mean"


@dataclass(frozen=True)
class Score:
    """A measure over the queries of one language, or over one language pair.

    Attributes:
        measure: such as `map@20`.
        pool: what was ranked.
        language: of the questions; for similarity the pair, `ar-en`.
        candidates: language of the candidates; `all` in the multilingual pool, empty for similarity.
        value: of the measure, 0 to 1 (-1 to 1 for correlations).
        count: queries, or pairs.
    """

    measure: str
    pool: Pool
    language: str
    candidates: str
    value: float
    count: int


@dataclass(frozen=True)
class Evaluation:
    """All scores of an encoder on one split.

    Attributes:
        scores: one for each measure, pool and language.
        per_query: `(measure, pool, language, candidates)` → value of each query, in the order of the data.
    """

    scores: tuple[Score, ...]
    per_query: Mapping[tuple[str, Pool, str, str], NDArray[np.float64]]

    def mean(self, measure: str, pool: Pool | None = None) -> float:
        """Return the unweighted mean over languages, in the first pool that was evaluated unless one is named."""
        pool = pool or self.scores[0].pool
        return fmean(score.value for score in self.scores if (score.measure, score.pool) == (measure, pool))

    def rows(self) -> Iterable[dict[str, Any]]:
        """Yield all scores, and the mean of each measure and pool, as plain dictionaries."""
        yield from (asdict(score) for score in self.scores)
        for measure, pool in dict.fromkeys((score.measure, score.pool) for score in self.scores):
            count = sum(score.count for score in self.scores if (score.measure, score.pool) == (measure, pool))
            candidates = "all" if pool == "multilingual" else ""
            yield asdict(Score(measure, pool, MEAN, candidates, self.mean(measure, pool), count))
