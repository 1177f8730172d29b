"""Languages of the answers in the rankings of finished runs, by the metrics of `evaluation.metrics.languages`."""

from typing import NamedTuple

import numpy as np

from metasearch.evaluation.metrics import languages
from metasearch.evaluation.metrics.base import NOT_FOUND, Ranks, Values
from metasearch.evaluation.study.bias import mean_of_defined
from metasearch.runs.per_query_results import DEPTH, Ranking


class AnswerFigures(NamedTuple):
    """Where the answers in the language of a question rank, and the answers in others.

    Each is a mean (or median) over questions of a language, then a mean over languages; NaN where it is undefined.

    Attributes:
        own_ndcg, others_recall: nDCG@k of answers in the question's language, recall@k of answers in other languages.
        best_own: how often the best answer is in the question's language; `chance` is 1 / L for L languages.
        median_worst, mean_worst: worst rank of the answers.
        relevant_own, relevant_other, irrelevant_own, irrelevant_other: shares of the four kinds of first candidates.
    """

    own_ndcg: float
    others_recall: float
    best_own: float
    chance: float
    median_worst: float
    mean_worst: float
    relevant_own: float
    relevant_other: float
    irrelevant_own: float
    irrelevant_other: float


def measure_answers(ranking: Ranking, k: int = DEPTH) -> AnswerFigures:
    """Return the figures of a ranking; gains are 1, since a ranking has no grades."""
    ranks = _ranks(ranking)
    asked = np.array([question.language for question in ranking.questions])
    groups = [asked == language for language in dict.fromkeys(asked.tolist())]

    def mean(values: Values) -> float:
        return float(mean_of_defined(np.array([mean_of_defined(values[own]) for own in groups])))

    worst = languages.worst_rank(ranks)
    known = (worst[own & ~np.isnan(worst)] for own in groups)
    medians = np.array([np.median(values) if len(values) else np.nan for values in known])
    sides = [(relevant, own) for relevant in (True, False) for own in (True, False)]
    return AnswerFigures(
        mean(languages.own_ndcg(ranks, k)),
        mean(languages.others_recall(ranks, k)),
        mean(languages.best_own(ranks)),
        1 / len(ranking.languages),
        float(mean_of_defined(medians)),
        mean(worst),
        *(mean(languages.first_hit(ranks, relevant=relevant, own=own)) for relevant, own in sides),
    )


def _ranks(ranking: Ranking) -> Ranks:
    """Return the ranks of a ranking; a question without a relevant candidate in the pool has one that nobody finds."""
    spoken = np.array([candidate.language for candidate in ranking.candidates])
    asked = np.array([question.language for question in ranking.questions])
    sizes = np.diff(ranking.offsets)
    own = spoken[ranking.relevant] == np.repeat(asked, sizes)
    empty = ranking.offsets[:-1][sizes == 0]
    return Ranks(
        np.insert(ranking.ranks, empty, NOT_FOUND),
        np.concatenate([[0], np.cumsum(np.maximum(sizes, 1))]),
        own=np.insert(own, empty, False),
        first_own=spoken[ranking.top[:, 0]] == asked,
    )
