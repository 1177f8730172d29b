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
from metasearch.evaluation.ranked import Search, joined
from metasearch.evaluation.scores import Evaluation, Pool, Score
from metasearch.metrics import Measure
from metasearch.metrics.average_precision import average_precision
from metasearch.results.kept import Cell, Kept

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
    units: dict[Cell, tuple[str, ...]] = {}
    columns: dict[tuple[str, *Cell], NDArray[np.float64]] = {}
    multilingual: list[Search] = []
    for asked, questions in sorted(data.questions_by_language.items()):
        vectors = encoder.encode([q.text for q in questions], "question")
        for pool, inside in _pools(pools, asked, sorted(data.languages)):
            member = np.ones(len(languages), bool) if inside == "all" else languages == inside
            search = _search(data, questions, vectors @ candidates[member].T, np.flatnonzero(member))
            units[pool, asked, inside] = tuple(q.id for q in questions)
            if pool == "multilingual":
                multilingual.append(search)
            for measure in measures:
                values = np.array([average_precision(r, measure.k) for r in search.ranks])
                columns[str(measure), pool, asked, inside] = values
                scores.append(Score(str(measure), pool, asked, inside, float(values.mean()), len(values)))
    ranking = joined(data.candidates, multilingual) if multilingual else None
    return Evaluation(tuple(scores), Kept(units, columns, ranking))


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


def _search(
    data: RetrievalData, questions: Sequence[Question], scores: NDArray[np.float32], members: NDArray[np.int64]
) -> Search:
    """Return what ranks where for some questions.

    Args:
        data: says what answers what.
        questions: in the order of the rows.
        scores: of questions and the pool's candidates, `(Q, C)`.
        members: index of each of the pool's candidates in the data, `(C,)`.
    """
    columns: dict[str, list[int]] = {}
    for column, member in enumerate(members):
        for question in data.candidates[member].answers:
            columns.setdefault(question, []).append(column)
    relevant = []
    for question, row in zip(questions, scores, strict=True):
        if question.id not in columns:
            raise DataError(f"question '{question.id}' ({question.language}) has no relevant candidate in the pool")
        if not np.isfinite(row).all():
            raise NonFiniteError(
                f"the encoder's scores for question '{question.id}' ({question.language}) are not finite"
            )
        relevant.append(np.array(columns[question.id]))
    return Search(tuple(questions), scores, relevant)
