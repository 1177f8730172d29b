"""Searches of which the scores are given."""

import numpy as np

from metasearch.data.records import RetrievalData
from metasearch.evaluation.evaluate import search
from metasearch.evaluation.metrics.base import Ranks
from metasearch.evaluation.scores import Judgements, build_ranking


def ranks_of(*questions):
    """Return the ranks of each question, such as `ranks_of([1, 4], [2])`, as metrics take them."""
    return Ranks(
        np.concatenate([np.asarray(ranks, np.int64) for ranks in questions]), np.cumsum([0, *map(len, questions)])
    )


def ranks_by(scores, relevant):
    """Return the ranks of the relevant candidates of one question, from the scores of all candidates."""
    pool = np.eye(len(scores), dtype=np.float32)
    judgements, languages = Judgements.of([sorted(relevant)]), np.zeros(len(scores), np.int64)
    return search([None], scores[None], pool, judgements, languages).ranks(slice(0, 1))


def search_by(scores, questions, pool, relevant=None):
    """Search a pool by scores `(N, C)`; relevant is what answers each question, or the columns that are given."""
    questions = list(questions)
    languages = sorted({candidate.language for candidate in pool})
    language_of = np.array([languages.index(candidate.language) for candidate in pool])
    if relevant is None:
        judgements = Judgements.from_answers(questions, RetrievalData((), tuple(pool)))
    else:
        judgements = Judgements.of(relevant)
    # The product with one-hot vectors of the candidates is the scores themselves.
    return search(questions, scores, np.eye(len(pool), dtype=np.float32), judgements, language_of)


def ranking_by(scores, questions, pool, relevant=None):
    """Return the ranking that a run stores of such a search."""
    return build_ranking(questions, pool, search_by(scores, questions, pool, relevant))
