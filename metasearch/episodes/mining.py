"""Mines hard negatives: the candidates nearest to a question, less those that may well answer it.

A candidate n is no negative of question q with answer p where cos(q, n) > cos(q, p) − m |cos(q, p)|: so near, it may be
an answer that nobody labelled (Moreira et al. 2024, "NV-Retriever: Improving text embedding models with effective
hard-negative mining", TopK-PercPos, which is m = 0.05).
"""

import logging
from collections.abc import Collection, Sequence

import numpy as np

from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.episodes.episode import Embed

log = logging.getLogger(__name__)


class NearestCandidates:
    """The candidates and questions of some languages, embedded once: nearness stays that of the starting encoder.

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
        """Return the negatives of a question with this answer, the nearest first; of equal texts one.

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
