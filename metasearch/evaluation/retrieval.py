"""Ranks candidates for questions (LAReQA, section 4; MAML-Align paper, section 5).

- multilingual: one pool of the candidates of all languages; every translation of the answer is relevant.
- bilingual, monolingual: the candidates of one language; a matrix of question language by candidate language, whose
  diagonal is monolingual.

Texts are encoded once, whatever the number of pools.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from metasearch.data.records import Question, RetrievalData
from metasearch.encoders.base import Encoder
from metasearch.errors import ConfigError, DataError, NonFiniteError, nearest
from metasearch.evaluation.scores import Evaluation, Pool, Score
from metasearch.metrics import Measure
from metasearch.metrics.average_precision import average_precision, ranks

POOLS: tuple[Pool, ...] = ("multilingual", "bilingual", "monolingual")


def evaluate_retrieval(
    encoder: Encoder, data: RetrievalData, measures: Sequence[Measure], pools: Sequence[Pool] = ("multilingual",)
) -> Evaluation:
    """Return the scores of every question language in every pool.

    Args:
        encoder: gives the vectors; candidates rank by their dot product with the question.
        data: questions and the pool of candidates.
        measures: such as `map@20`.
        pools: what to rank.

    Raises:
        ConfigError: there is no such pool.
        DataError: a question has no relevant candidate in a pool, or there are no questions.
        NonFiniteError: the encoder gives vectors that are not finite.
    """
    for pool in pools:
        if pool not in POOLS:
            raise ConfigError(f"unknown pool '{pool}'.{nearest(pool, POOLS)}")
    if not data.questions:
        raise DataError("there are no questions to evaluate on")
    candidates = encoder.encode([c.text for c in data.candidates], "candidate")
    languages = np.array([c.language for c in data.candidates])
    scores: list[Score] = []
    per_query: dict[tuple[str, Pool, str, str], NDArray[np.float64]] = {}
    for asked, questions in sorted(data.questions_by_language.items()):
        vectors = encoder.encode([q.text for q in questions], "question")
        for pool, inside in _pools(pools, asked, sorted(data.languages)):
            member = np.ones(len(languages), bool) if inside == "all" else languages == inside
            found = _ranks(data, questions, vectors @ candidates[member].T, np.flatnonzero(member))
            for measure in measures:
                values = np.array([average_precision(r, measure.k) for r in found])
                per_query[str(measure), pool, asked, inside] = values
                scores.append(Score(str(measure), pool, asked, inside, float(values.mean()), len(values)))
    return Evaluation(tuple(scores), per_query)


def _pools(pools: Sequence[Pool], asked: str, languages: Sequence[str]) -> list[tuple[Pool, str]]:
    """Return each pool and the language of its candidates, `all` for the multilingual one."""
    listed: list[tuple[Pool, str]] = []
    for pool in pools:
        if pool == "multilingual":
            listed.append((pool, "all"))
        elif pool == "monolingual":
            listed.append((pool, asked))
        else:
            listed += [(pool, language) for language in languages if language != asked]
    return listed


def _ranks(
    data: RetrievalData, questions: Sequence[Question], scores: NDArray[np.float32], members: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Return the ranks of what is relevant to each question.

    Args:
        data: says what answers what.
        questions: in the order of the rows.
        scores: of questions and the pool's candidates, `(Q, C)`.
        members: index of each of the pool's candidates in the data, `(C,)`.
    """
    relevant: dict[str, list[int]] = {}
    for column, member in enumerate(members):
        for question in data.candidates[member].answers:
            relevant.setdefault(question, []).append(column)
    found = []
    for question, row in zip(questions, scores, strict=True):
        if question.id not in relevant:
            raise DataError(f"question '{question.id}' ({question.language}) has no relevant candidate in the pool")
        if not np.isfinite(row).all():
            raise NonFiniteError(
                f"the encoder's scores for question '{question.id}' ({question.language}) are not finite"
            )
        found.append(ranks(row, relevant[question.id]))
    return found
