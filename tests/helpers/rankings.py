"""Searches of which the scores are given."""

import numpy as np

from metasearch.data.records import RetrievalData
from metasearch.evaluation.ranked import Relevant, ranking_of, search


def search_by(scores, questions, pool, relevant=None):
    """Search a pool by scores `(N, C)`; relevant is what answers each question, or the columns that are given."""
    questions = list(questions)
    languages = sorted({candidate.language for candidate in pool})
    spoken = np.array([languages.index(candidate.language) for candidate in pool])
    wanted = Relevant.to(questions, RetrievalData((), tuple(pool))) if relevant is None else Relevant.of(relevant)
    # The product with one-hot vectors of the candidates is the scores themselves.
    return search(questions, scores, np.eye(len(pool), dtype=np.float32), wanted, spoken)


def ranking_by(scores, questions, pool, relevant=None):
    """Return what is kept of such a search."""
    return ranking_of(questions, pool, search_by(scores, questions, pool, relevant))
