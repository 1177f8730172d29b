"""Scores of an evaluation: one row for each measure, pool and language, and their means."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from metasearch.config.measure import Pool
from metasearch.errors import ConfigError, nearest
from metasearch.runs.per_query_results import QueryResults
from metasearch.runs.rows import MEAN


@dataclass(frozen=True)
class Score:
    """A measure, such as `map@20`, over the questions of one language, or over one language pair.

    Attributes:
        measure: name of the measure.
        pool: what was ranked.
        language: language of the questions; for similarity the pair, `ar-en`; for translations not the pivot.
        candidates: language of the candidates; `all` in the multilingual pool, empty for similarity and for `both`.
        value: value of the measure, 0 to 1 (-1 to 1 for correlations).
        count: number of questions, or of pairs (for `both`, too, where each is asked twice).
    """

    measure: str
    pool: Pool
    language: str
    candidates: str
    value: float
    count: int


@dataclass(frozen=True)
class Evaluation:
    """All scores of an encoder on one split; `groups` are language groups with their own means."""

    scores: tuple[Score, ...]
    questions: QueryResults = field(default_factory=QueryResults)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def mean(self, measure: str, pool: Pool | None = None) -> float:
        """Return the unweighted mean over languages, in the first pool that was evaluated unless one is named."""
        pool = pool or self.scores[0].pool
        values = [score.value for score in self.scores if (score.measure, score.pool) == (measure, pool)]
        if not values:
            known = {score.measure for score in self.scores if score.pool == pool}
            raise ConfigError(f"'{measure}' was not evaluated in pool '{pool}'.{nearest(measure, known)}")
        return fmean(values)

    def rows(self) -> Iterable[dict[str, Any]]:
        """Yield all scores, means per measure and pool, and group means, as dictionaries.

        The row of a group has `group NAME` for a language, the number of languages it is the mean of (`found`) and
        how many belong to the group (`listed`). A group without scores has no row.
        """
        yield from map(asdict, self.scores)
        by_measure: dict[tuple[str, Pool], list[Score]] = {}
        for score in self.scores:
            by_measure.setdefault((score.measure, score.pool), []).append(score)
        for (_, pool), scores in by_measure.items():
            yield asdict(_mean(scores, MEAN, "all" if pool == "multilingual" else ""))
        for name, languages in self.groups.items():
            for scores in by_measure.values():
                if members := [score for score in scores if score.language in languages]:
                    row = asdict(_mean(members, f"group {name}", ""))
                    yield row | {"found": len(members), "listed": len(languages)}


def _mean(scores: Sequence[Score], language: str, candidates: str) -> Score:
    """Return the unweighted mean score for one measure and pool."""
    value, count = fmean(score.value for score in scores), sum(score.count for score in scores)
    return Score(scores[0].measure, scores[0].pool, language, candidates, value, count)
