"""Ranks candidates for questions (LAReQA, section 4; MAML-Align paper, section 5).

- multilingual: one pool of the candidates of all languages; every translation of the answer is relevant.
- bilingual, monolingual: the candidates of one language; a matrix of question language by candidate language, whose
  diagonal is monolingual.

Texts are encoded and scored once, whatever the number of pools.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from metasearch.data.records import Question, RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError, DataError, nearest
from metasearch.evaluation.metrics.average_precision import average_precisions
from metasearch.evaluation.ranked import Relevant, ranking_of, search
from metasearch.evaluation.scores import Evaluation, Score
from metasearch.runs.questions import Cell, Kept
from metasearch.spec.measure import Measure, Pool

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
    asked = {language: data.questions_by_language[language] for language in sorted(data.questions_by_language)}
    questions = [question for listed in asked.values() for question in listed]
    relevant = Relevant.to(questions, data)
    _require_answers(data, asked, pools)
    languages = sorted({candidate.language for candidate in data.candidates})
    spoken = np.array([languages.index(candidate.language) for candidate in data.candidates])
    candidates = encoder.encode([c.text for c in data.candidates], "candidate")
    vectors = [encoder.encode([q.text for q in listed], "question") for listed in asked.values()]
    found = search(questions, np.concatenate(vectors), candidates, relevant, spoken)
    scores: list[Score] = []
    units: dict[Cell, tuple[str, ...]] = {}
    columns: dict[tuple[str, *Cell], NDArray[np.float64]] = {}
    start = 0
    for language, listed in asked.items():
        rows, start = slice(start, start + len(listed)), start + len(listed)
        for pool, inside in _pools(pools, language, languages):
            ranks, offsets = found.ranks(rows, None if inside == "all" else languages.index(inside))
            units[pool, language, inside] = tuple(q.id for q in listed)
            for measure in measures:
                values = average_precisions(ranks, offsets, measure.k)
                columns[str(measure), pool, language, inside] = values
                scores.append(Score(str(measure), pool, language, inside, float(values.mean()), len(values)))
    ranking = ranking_of(questions, data.candidates, found) if "multilingual" in pools else None
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


def _require_answers(data: RetrievalData, asked: Mapping[str, Sequence[Question]], pools: Sequence[Pool]) -> None:
    """Raise `DataError` naming the first question that nothing in a pool answers."""
    answered: dict[str, set[str]] = {"all": set()}
    for candidate in data.candidates:
        answered["all"].update(candidate.answers)
        answered.setdefault(candidate.language, set()).update(candidate.answers)
    for language, questions in asked.items():
        for _, inside in _pools(pools, language, sorted(data.languages)):
            known = answered.get(inside, set())
            lacking = next((question for question in questions if question.id not in known), None)
            if lacking:
                raise DataError(f"question '{lacking.id}' ({language}) has no relevant candidate in the pool")
