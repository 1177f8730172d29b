"""Ranks candidates for questions (LAReQA, section 4; MAML-Align paper, section 5).

- multilingual: one pool of the candidates of all languages; every translation of the answer is relevant.
- bilingual, monolingual: the candidates of one language; a matrix of question language by candidate language, whose
  diagonal is monolingual.
- expanded: the multilingual pool after document expansion across languages (`metasearch.encoders.expansion`). It uses
  what else is in the pool, so that its scores are not those of other papers' pools.
- balanced: the multilingual pool, its scores balanced between languages (`metasearch.encoders.balance`).

Texts are encoded once, whatever the number of pools.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from metasearch.data.records import Question, RetrievalData
from metasearch.encoders.expansion import expanded
from metasearch.encoders.vectors import EncodesTexts
from metasearch.errors import DataError, require_known
from metasearch.evaluation.metrics.base import function_of
from metasearch.evaluation.scores import Evaluation, Score
from metasearch.evaluation.search import Judgements, SearchResult, ranking_of, search
from metasearch.runs.questions import Cell, QuestionResults
from metasearch.spec.measure import BALANCED, EXPANDED, MULTILINGUAL, RERANKED, RETRIEVAL_POOLS, Measure, Pool


def evaluate_retrieval(
    encoder: EncodesTexts, data: RetrievalData, measures: Sequence[Measure], pools: Sequence[Pool] = ("multilingual",)
) -> Evaluation:
    """Return the scores of every question language in every pool; candidates rank by their dot product."""
    for pool in pools:
        require_known("pool", pool, RETRIEVAL_POOLS)
    if not data.questions:
        raise DataError("there are no questions to evaluate on")
    functions = {measure: function_of(measure, "retrieval") for measure in measures}
    by_language = dict(sorted(data.questions_by_language.items()))
    # Checked before texts are encoded, which is what takes the time.
    _require_answers(data, by_language, pools)
    questions, languages, results = _search(encoder, data, by_language, pools)
    scores: list[Score] = []
    units: dict[Cell, tuple[str, ...]] = {}
    columns: dict[tuple[str, *Cell], NDArray[np.float64]] = {}
    start = 0
    for language, asked in by_language.items():
        # The search has the questions language by language, so that one language is a slice.
        rows, start = slice(start, start + len(asked)), start + len(asked)
        for pool, inside in _pools(pools, language, languages):
            ranks = results[_ranked_as(pool)].ranks(rows, None if inside == "all" else languages.index(inside))
            units[pool, language, inside] = tuple(q.id for q in asked)
            for measure, function in functions.items():
                values = function(ranks, measure.k)
                columns[str(measure), pool, language, inside] = values
                scores.append(Score(str(measure), pool, language, inside, float(values.mean()), len(values)))
    ranking = ranking_of(questions, data.candidates, results[MULTILINGUAL]) if MULTILINGUAL in pools else None
    articles = {question.id: question.group for question in questions}
    return Evaluation(tuple(scores), QuestionResults(units, columns, ranking, articles))


def _search(
    encoder: EncodesTexts, data: RetrievalData, by_language: Mapping[str, Sequence[Question]], pools: Sequence[Pool]
) -> tuple[list[Question], list[str], dict[Pool, SearchResult]]:
    """Return the questions in the order of the search, the languages of the candidates, and the results.

    The results are those by which the pools are ranked (`_ranked_as`).
    """
    questions = [question for asked in by_language.values() for question in asked]
    languages = sorted({candidate.language for candidate in data.candidates})
    language_of = np.array([languages.index(candidate.language) for candidate in data.candidates])
    candidates = encoder.encode([c.text for c in data.candidates], "candidate")
    vectors = np.concatenate([encoder.encode([q.text for q in asked], "question") for asked in by_language.values()])
    judgements = Judgements.from_answers(questions, data)
    results: dict[Pool, SearchResult] = {}
    for pool in sorted({_ranked_as(pool) for pool in pools}):
        ranked = expanded(candidates, language_of) if pool == EXPANDED else candidates
        results[pool] = search(questions, vectors, ranked, judgements, language_of, balanced=pool == BALANCED)
    return questions, languages, results


def _ranked_as(pool: Pool) -> Pool:
    """Return the pool of all languages whose ranking has that of a pool in it."""
    return pool if pool in RERANKED else MULTILINGUAL


def _pools(pools: Sequence[Pool], language: str, languages: Sequence[str]) -> list[tuple[Pool, str]]:
    """Return each pool and the language of its candidates, `all` where they are of all languages."""
    others = [other for other in languages if other != language]
    inside = {"monolingual": [language], "bilingual": others}
    return [(pool, name) for pool in pools for name in inside.get(pool, ["all"])]


def _require_answers(data: RetrievalData, by_language: Mapping[str, Sequence[Question]], pools: Sequence[Pool]) -> None:
    """Raise `DataError` naming the first question that nothing in a pool answers."""
    answered: dict[str, set[str]] = {"all": set()}
    for candidate in data.candidates:
        answered["all"].update(candidate.answers)
        answered.setdefault(candidate.language, set()).update(candidate.answers)
    for language, questions in by_language.items():
        for _, inside in _pools(pools, language, sorted(data.languages)):
            ids = answered.get(inside, set())
            lacking = next((question for question in questions if question.id not in ids), None)
            if lacking:
                raise DataError(f"question '{lacking.id}' ({language}) has no relevant candidate in the pool")
