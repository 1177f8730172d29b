"""Scores of evaluations and rankings: relevant candidates, their ranks, and measures per language.

The rankings come from a search with vectors (`metasearch.evaluation.evaluate`). Nothing here loads torch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from metasearch.config.measure import MULTILINGUAL, REORDERED, RERANKED, Measure, Pool
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.errors import ConfigError, DataError, nearest
from metasearch.evaluation.metrics.base import NOT_FOUND, Ranks, load_function
from metasearch.runs.per_query_results import Cell, QueryResults, Ranking, Text
from metasearch.runs.rows import MEAN

Indices = NDArray[np.int64]
Gains = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """A measure, such as `map@20`, over the questions of one language, or over one language pair.

    Attributes:
        measure: name of the measure.
        pool: what was ranked.
        language: language of the questions; for similarity the pair, `ar-en`; for translations not the pivot.
        candidates: language of the candidates; `all` in the multilingual pool, empty for similarity and for `both`.
        value: value of the measure, 0 to 1 (-1 to 1 for correlations).
        count: number of questions or pairs (for `both`, too, where each is asked twice).
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

        A group's row has `group NAME` for a language, the number of languages it averages (`found`) and
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


# Scores of rankings.


@dataclass(frozen=True)
class Judgements:
    """Which candidates are relevant to each of N questions, M in all.

    Attributes:
        columns: indices of the relevant candidates, ascending within a question, `(M,)`.
        offsets: question i has entries `offsets[i]` to `offsets[i + 1]`, `(N + 1,)`.
        gains: relevance of each, above 0, `(M,)`; None where all have 1.
        missing: number of a question → relevance of its relevant documents that are not among the candidates.
    """

    columns: Indices
    offsets: Indices
    gains: Gains | None = None
    missing: Mapping[int, Sequence[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, relevant: Sequence[Sequence[int]]) -> "Judgements":
        """Return the judgements of the relevant indices of each question; a repeated index counts once."""
        distinct = [sorted(set(columns)) for columns in relevant]
        offsets = np.cumsum([0, *map(len, distinct)], dtype=np.int64)
        return cls(np.array([column for columns in distinct for column in columns], np.int64), offsets)

    @classmethod
    def from_answers(cls, questions: Sequence[Question], data: RetrievalData) -> "Judgements":
        """Return the judgements by which the candidates that answer a question, with a grade above 0, are relevant."""
        # Translations of a question share its id, and with it the relevant candidates of all languages.
        answers: dict[str, list[int]] = {question.id: [] for question in questions}
        for column, candidate in enumerate(data.candidates):
            for answered in _answered(candidate, data):
                if answered in answers:
                    answers[answered].append(column)
        missing: dict[str, list[float]] = {}
        for (uid, _), grade in data.missing.items():
            missing.setdefault(uid, []).append(grade)
        numbered = {i: missing[question.id] for i, question in enumerate(questions) if question.id in missing}
        found = replace(cls.of([answers[question.id] for question in questions]), missing=numbered)
        if not data.grades:
            return found
        pairs = zip((questions[owner].id for owner in found.owners), found.columns, strict=True)
        gains = [data.grades.get((uid, data.candidates[column].id), 1.0) for uid, column in pairs]
        return replace(found, gains=np.array(gains))

    @property
    def owners(self) -> Indices:
        """Question index per relevant candidate, `(M,)`."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


@dataclass(frozen=True)
class SearchResult:
    """Result of a search for N questions among C candidates in L languages.

    Attributes:
        judgements: relevant candidates per question, M in all.
        languages: language index per candidate, `(C,)`.
        above: how many candidates in each language rank above each relevant one, `(M, L)`.
        top: indices of the best candidates, `(N, K)`.
        scores: their scores, `(N, K)`.
    """

    judgements: Judgements
    languages: Indices
    above: Indices
    top: Indices
    scores: NDArray[np.float32]

    def ranks(self, questions: slice, language: int | None = None, asked: int | None = None) -> Ranks:
        """Return the ranks of some questions' relevant candidates, in one language or all; `DataError` without any.

        `asked` is the language of the questions, -1 if no candidate is in it, for metrics of the pool of all languages.
        Missing documents have no language: they count in the pool of all languages, and in that of the only one.
        """
        owners, gains = self.judgements.owners, self.judgements.gains
        chosen = (owners >= questions.start) & (owners < questions.stop)
        spoken = self.languages[self.judgements.columns]
        if language is not None:
            chosen &= spoken == language
        above, owners = self.above[chosen], owners[chosen] - questions.start
        ranks = (above.sum(1) if language is None else above[:, language]) + 1
        gains = None if gains is None else gains[chosen]
        if self.judgements.missing and (language is None or self.above.shape[1] == 1):
            owners, ranks, gains = self._with_missing(questions, owners, ranks, gains)
        own = first = None
        if asked is not None:
            first = self.languages[self.top[questions, 0]] == asked
            own = np.concatenate([spoken[chosen] == asked, np.zeros(len(ranks) - np.count_nonzero(chosen), bool)])
        # Relevant candidates are stored by index; `Ranks` wants them by rank within each question.
        order = np.lexsort((ranks, owners))
        sizes = np.bincount(owners, minlength=questions.stop - questions.start)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        own = None if own is None else own[order]
        return Ranks(ranks[order], offsets, None if gains is None else gains[order], own, first)

    def _with_missing(
        self, questions: slice, owners: Indices, ranks: Indices, gains: Gains | None
    ) -> tuple[Indices, Indices, Gains | None]:
        """Return owners, ranks and gains, and after them the missing relevant documents, which nobody finds."""
        own = [
            (number - questions.start, gain)
            for number, found in self.judgements.missing.items()
            if questions.start <= number < questions.stop
            for gain in found
        ]
        added = np.array([gain for _, gain in own])
        if gains is not None or (added != 1).any():
            gains = np.concatenate([np.ones(len(owners)) if gains is None else gains, added])
        owners = np.concatenate([owners, np.array([number for number, _ in own], np.int64)])
        return owners, np.concatenate([ranks, np.full(len(own), NOT_FOUND)]), gains


def _answered(candidate: Candidate, data: RetrievalData) -> Iterable[str]:
    """Return the ids of the questions with this candidate as an answer, by a grade above 0."""
    return (uid for uid in candidate.answers if data.grades.get((uid, candidate.id), 1.0) > 0)


def questions_in_order(data: RetrievalData) -> list[Question]:
    """Return the questions in the order of every search: language by language, in alphabetical order."""
    return [question for _, asked in sorted(data.questions_by_language.items()) for question in asked]


def score_rankings(
    data: RetrievalData, results: Mapping[Pool, SearchResult], measures: Sequence[Measure], pools: Sequence[Pool]
) -> Evaluation:
    """Return the scores of every question language in every pool; the first multilingual pool gives the ranking.

    Measures of languages have no scores in pools of one language. `DataError` where none of their values is defined.
    """
    functions = {measure: load_function(measure, "retrieval") for measure in measures}
    languages = sorted({candidate.language for candidate in data.candidates})
    number = {language: i for i, language in enumerate(languages)}
    scores: list[Score] = []
    units: dict[Cell, tuple[str, ...]] = {}
    columns: dict[tuple[str, *Cell], NDArray[np.float64]] = {}
    start = 0
    for language, asked in sorted(data.questions_by_language.items()):
        # The search has the questions language by language, so that one language is a slice.
        rows, start = slice(start, start + len(asked)), start + len(asked)
        for pool, inside in _pools(pools, language, languages):
            several = inside == "all"
            chosen = (None, number.get(language, -1)) if several else (number[inside], None)
            ranks = results[ranking_pool(pool)].ranks(rows, *chosen)
            units[pool, language, inside] = tuple(q.id for q in asked)
            for measure, function in functions.items():
                if several or not measure.load().languages:
                    values = function(ranks, measure.k)
                    columns[str(measure), pool, language, inside] = values
                    scores += _mean_of_questions(str(measure), (pool, language, inside), values)
    _require_defined(scores, columns)
    whole = next((pool for pool in pools if ranking_pool(pool) == pool), None)
    ranking = build_ranking(questions_in_order(data), data.candidates, results[whole]) if whole else None
    articles = {question.id: question.group for question in data.questions}
    return Evaluation(tuple(scores), QueryResults(units, columns, ranking, articles))


def _mean_of_questions(measure: str, cell: Cell, values: NDArray[np.float64]) -> Iterable[Score]:
    """Yield the mean over the questions that have a value; nothing where none has."""
    defined = values[~np.isnan(values)]
    if len(defined):
        pool, language, inside = cell
        yield Score(measure, cast(Pool, pool), language, inside, float(defined.mean()), len(defined))


def _require_defined(scores: Sequence[Score], columns: Iterable[tuple[str, *Cell]]) -> None:
    """Raise `DataError` for a measure without a value in any language of a pool."""
    known = {(score.measure, score.pool) for score in scores}
    for measure, pool, *_ in columns:
        if (measure, pool) not in known:
            raise DataError(f"measure '{measure}', pool '{pool}': no question has a value; remove it from the task")


def ranking_pool(pool: Pool) -> Pool:
    """Return the multilingual pool whose ranking contains a pool's ranking."""
    return pool if pool in (*REORDERED, RERANKED) else MULTILINGUAL


def _pools(pools: Sequence[Pool], language: str, languages: Sequence[str]) -> list[tuple[Pool, str]]:
    """Return each pool and the language of its candidates, `all` for several."""
    others = [other for other in languages if other != language]
    inside = {"monolingual": [language], "bilingual": others}
    return [(pool, name) for pool in pools for name in inside.get(pool, ["all"])]


def require_answers(data: RetrievalData, pools: Sequence[Pool]) -> None:
    """Raise `DataError` naming a question that nothing in a pool answers."""
    for pool, problem in unanswered(data, pools).items():
        raise DataError(f"pool '{pool}': {problem}")


def unanswered(data: RetrievalData, pools: Sequence[Pool]) -> dict[Pool, str]:
    """Return pool → its first question without an answer, in words, for the pools that have one."""
    answered: dict[str, set[str]] = {}
    for candidate in data.candidates:
        for inside in ("all", candidate.language):
            answered.setdefault(inside, set()).update(_answered(candidate, data))
    missing = {uid for uid, _ in data.missing}
    for inside in answered if len(answered) == 2 else ("all",):  # as `SearchResult.ranks` counts them
        answered[inside] |= missing
    found: dict[Pool, str] = {}
    for language, questions in data.questions_by_language.items():
        for pool, inside in _pools(pools, language, sorted(data.languages)):
            ids = answered.get(inside, set())
            if lacking := next((question for question in questions if question.id not in ids), None):
                found.setdefault(pool, f"question '{lacking.id}' ({language}) has no relevant candidate in it")
    return found


def build_ranking(questions: Sequence[Question], candidates: Sequence[Candidate], result: SearchResult) -> Ranking:
    """Return a search result in the form that a run stores; languages are numbered in alphabetical order."""
    ranks = result.above.sum(1) + 1
    order = np.lexsort((ranks, result.judgements.owners))
    return Ranking(
        tuple(Text(q.id, q.language, q.text) for q in questions),
        tuple(Text(c.id, c.language, c.shown or c.text) for c in candidates),
        tuple(sorted({candidate.language for candidate in candidates})),
        result.judgements.offsets,
        result.judgements.columns[order],
        ranks[order],
        result.top,
        result.scores.astype(np.float32),
    )
