"""Chooses negatives by how hard they are (Schroff et al., 2015; MAML-Align paper, appendix B).

With d the Euclidean distance between unit vectors and m the margin of the triplet loss:

- easy: d(q, p) + m < d(q, n)
- semi-hard: d(q, p) < d(q, n) < d(q, p) + m   (the paper's line repeats a term)
- hard: d(q, n) < d(q, p)
"""

import logging
from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.episodes.episode import Embed

Class = Literal["easy", "semi-hard", "hard"]
log = logging.getLogger(__name__)


def distances(anchor: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the Euclidean distances from a vector `(D,)` to vectors `(n, D)`, shape `(n,)`."""
    away: NDArray[np.float32] = np.linalg.norm(others - anchor, axis=1)
    return away


def choose(
    kind: Class,
    to_positive: float,
    to_negatives: NDArray[np.float32],
    margin: float,
    count: int,
    rng: np.random.Generator,
) -> list[int]:
    """Return the indices of `count` negatives in a class, drawn at random without replacement.

    Where the class has too few members, the ones nearest to the class follow, and a warning says so. `to_positive` is
    d(q, p), and `to_negatives` are d(q, n) of N ≥ count candidates n, `(N,)`.
    """
    lower, upper = {
        "easy": (to_positive + margin, np.inf),
        "semi-hard": (to_positive, to_positive + margin),
        "hard": (-np.inf, to_positive),
    }[kind]
    members = np.flatnonzero((lower < to_negatives) & (to_negatives < upper))
    chosen = [int(i) for i in rng.permutation(members)[:count]]
    if len(chosen) < count:
        log.warning("%d of %d negatives are %s; the closest others fill the rest", len(chosen), count, kind)
        # The distance to the interval: outside of it one of the two differences is not negative.
        outside = np.maximum(lower - to_negatives, to_negatives - upper)
        # They are chosen already.
        outside[members] = np.inf
        chosen += [int(i) for i in np.argsort(outside, kind="stable")[: count - len(chosen)]]
    return chosen


# Mines hard negatives: the candidates nearest to a question, less those that may well answer it.
#
# A candidate n is no negative of question q with answer p where cos(q, n) > cos(q, p) − m |cos(q, p)|: so near, it may
# be an answer that nobody labelled (Moreira et al. 2024, "NV-Retriever: Improving text embedding models with effective
# hard-negative mining", TopK-PercPos, which is m = 0.05).


class NearestCandidates:
    """Candidates and questions in some languages, embedded once by the starting encoder.

    Args:
        data: data of the split to draw from.
        languages: that are asked in and searched.
        embed: vectors on the starting encoder.
    """

    def __init__(self, data: RetrievalData, languages: Collection[str], embed: Embed) -> None:
        self._candidates = [each for each in data.candidates if each.language in languages]
        questions = [each for code in sorted(languages) for each in data.questions_by_language.get(code, ())]
        self._language = np.array([each.language for each in self._candidates])
        # A text is encoded once, however many candidates have it.
        texts = list(dict.fromkeys(each.text for each in self._candidates))
        number = {text: i for i, text in enumerate(texts)}
        self._vector_of = [number[each.text] for each in self._candidates]
        self._vectors = embed(texts, "candidate")
        self._row_of = {question: i for i, question in enumerate(questions)}
        self._questions = embed([question.text for question in questions], "question")

    def near(
        self, question: Question, positive: Candidate, own: Collection[str], languages: Sequence[str], margin: float
    ) -> list[Candidate]:
        """Return negatives for a question with this answer, nearest first, without duplicates.

        Args:
            question: of the data.
            positive: its answer p.
            own: texts of all its answers, which are no negatives.
            languages: of the negatives.
            margin: m.
        """
        cosine = (self._vectors @ self._questions[self._row_of[question]])[self._vector_of]
        right = cosine[self._candidates.index(positive)]
        far_enough = cosine <= right - margin * abs(right)
        rows = np.flatnonzero(far_enough & np.isin(self._language, languages))
        nearest = (self._candidates[i] for i in rows[np.argsort(-cosine[rows], kind="stable")])
        return list({each.text: each for each in nearest if each.text not in own}.values())
