"""Measures an encoder on retrieval, similarity and translation data, and searches a pool for it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.config.measure import BALANCED, EXPANDED, RERANKED, RETRIEVAL_POOLS, Measure, Pool
from metasearch.config.precision import ALIASES, Precision
from metasearch.config.rerank import RerankSettings
from metasearch.data.records import Data, Question, RetrievalData, SimilarityData, TranslationData
from metasearch.encoders.pool_scores import balance, expanded
from metasearch.encoders.protocols import TextEncoder, TextReranker
from metasearch.errors import ConfigError, DataError, MetasearchError, NonFiniteError, require_known
from metasearch.evaluation.metrics.base import load_function
from metasearch.evaluation.metrics.pairs import first_equal, text_numbers
from metasearch.evaluation.scores import (
    Evaluation,
    Indices,
    Judgements,
    Score,
    SearchResult,
    questions_in_order,
    ranking_pool,
    require_answers,
    score_rankings,
)
from metasearch.runs.per_query_results import DEPTH, Cell, QueryResults

_CELLS = 2**22
"""Scores in a block, 16 MiB. Smaller blocks slow the matrix product down."""
_LOWEST = np.finfo(np.float32).min / 4
"""Below every score, and still finite after the balance between languages."""

Scores = NDArray[np.float32]


class Ranker(Protocol):
    """Ranks other things than the texts that are encoded, such as pages by the scores of their passages.

    Notation used for tensor shapes: Q questions of a block, V texts, C things that are ranked.
    """

    @property
    def data(self) -> RetrievalData:
        """The candidates, which are ranked and judged."""

    def joined(self, scores: Scores) -> Scores:
        """Return scores `(Q, C)` from the scores of texts `(Q, V)`."""

    def change(self, scores: Scores, start: int) -> None:
        """Change scores `(Q, C)` of the questions from number `start` on, in place; languages are balanced by then."""


# Retrieval (LAReQA, section 4; MAML-Align paper, section 5). In the multilingual pools every translation of the answer
# is relevant. Scores of the expanded pool depend on other candidates: do not compare them with papers. Texts are
# encoded once for all pools.


def evaluate_retrieval(
    encoder: TextEncoder,
    data: RetrievalData,
    measures: Sequence[Measure],
    pools: Sequence[Pool] = ("multilingual",),
    reranker: TextReranker | None = None,
    rerank_top: int = RerankSettings().top,
    depth: int = DEPTH,
    ranker: Ranker | None = None,
) -> Evaluation:
    """Return the scores of every question language in every pool; candidates rank by their dot product."""
    for pool in pools:
        require_known("pool", pool, (*RETRIEVAL_POOLS, RERANKED))
    if RERANKED in pools and reranker is None:
        raise ConfigError("pool 'reranked' needs a cross-encoder; name one with --rerank MODEL")
    if not data.questions:
        raise DataError("there are no questions to evaluate on")
    # Checked before texts are encoded, which takes the time.
    for measure in measures:
        load_function(measure, "retrieval")
    require_answers(data, pools)
    questions, language_of = questions_in_order(data), _candidate_languages(data)
    candidates = encoder.encode([c.text for c in data.candidates], "candidate")
    vectors = np.concatenate(
        [encoder.encode([q.text for q in own], "question") for _, own in sorted(data.questions_by_language.items())]
    )
    data = ranker.data if ranker else data
    judgements = Judgements.from_answers(questions, data)

    def rerank(row: Scores, number: int) -> None:
        assert reranker is not None
        highest = _highest(row, min(rerank_top, len(row)))
        texts = [data.candidates[column].text for column in highest]
        _put_first(row, highest, reranker.scores(questions[number].text, texts))

    results: dict[Pool, SearchResult] = {}
    for pool in sorted({ranking_pool(pool) for pool in pools}):
        ranked = expanded(candidates, language_of) if pool == EXPANDED else candidates
        rescore = rerank if pool == RERANKED else None
        results[pool] = search(
            questions, vectors, ranked, judgements, _candidate_languages(data), pool == BALANCED, rescore, depth,
            data.identical, ranker,
        )  # fmt: skip
    return score_rankings(data, results, measures, pools)


# Correlates cosine similarity with gold on each language pair (SemEval-2017 task 1; MAML-Align paper, section 5).


def evaluate_similarity(encoder: TextEncoder, data: SimilarityData, measures: Sequence[Measure]) -> Evaluation:
    """Return the scores for every language pair."""
    if not data.pairs:
        raise DataError("there are no pairs to evaluate on")
    first = encoder.encode([pair.text1 for pair in data.pairs], "text")
    second = encoder.encode([pair.text2 for pair in data.pairs], "text")
    return correlate(data, first, second, measures)


def correlate(
    data: SimilarityData, first: NDArray[np.float32], second: NDArray[np.float32], measures: Sequence[Measure]
) -> Evaluation:
    """Return the scores for every language pair, from unit vectors for both texts in each pair, `(N, D)`."""
    functions = {measure: load_function(measure, "similarity") for measure in measures}
    # Of unit vectors. Summed in float64, so that rounding does not reorder pairs of nearly equal cosine.
    cosines = np.einsum("nd,nd->n", first, second, dtype=np.float64)
    gold = np.array([pair.score for pair in data.pairs])
    names = np.array([pair.pair for pair in data.pairs])
    groups = np.array([pair.group for pair in data.pairs])
    scores: list[Score] = []
    units: dict[Cell, tuple[str, ...]] = {}
    columns: dict[tuple[str, *Cell], NDArray[np.float64]] = {}
    for name in map(str, dict.fromkeys(names)):
        member = names == name
        cell = ("pairs", name, "")
        units[cell] = tuple(map(str, groups[member]))
        columns |= {("predicted", *cell): cosines[member], ("gold", *cell): gold[member]}
        for measure, function in functions.items():
            try:
                value = function(cosines[member], gold[member])
            except MetasearchError as error:
                # Of the same class, which decides the exit code; only the place is added.
                raise type(error)(f"pairs {name}: {error}") from None
            scores.append(Score(str(measure), "pairs", name, "", value, int(member.sum())))
    return Evaluation(tuple(scores), QueryResults(units, columns, articles={}))


# Looks for the translation of each text in the other language (Tatoeba as LASER and XTREME score it).
#
# Both directions are scored, since papers differ or do not say: XTREME takes `xx-en` alone. `both` is their mean.


def evaluate_translation(encoder: TextEncoder, data: TranslationData, measures: Sequence[Measure]) -> Evaluation:
    """Return the scores of every language in both directions and their mean, the default pool `both`."""
    if not data.pairs:
        raise DataError("there are no translations to evaluate on")
    functions = {measure: load_function(measure, "translation") for measure in measures}
    # The files share many of their texts in the pivot language; each is encoded once.
    pivots = {text: i for i, text in enumerate(dict.fromkeys(pair.source for pair in data.pairs))}
    pivot_vectors = encoder.encode(list(pivots), "text")
    scores: list[Score] = []
    units: dict[Cell, tuple[str, ...]] = {}
    columns: dict[tuple[str, *Cell], NDArray[np.float64]] = {}
    for language, pairs in data.by_language.items():
        asked = np.array([pivots[pair.source] for pair in pairs])
        answers = text_numbers(pair.target for pair in pairs)
        sources, targets = pivot_vectors[asked], encoder.encode([pair.target for pair in pairs], "text")
        for measure, function in functions.items():
            try:
                # `xx-en` asks with the translations and searches the pivot texts; `en-xx` is the reverse.
                into = function(targets, sources, answers, asked)
                out = function(sources, targets, asked, answers)
            except MetasearchError as error:
                raise type(error)(f"language {language}: {error}") from None
            directions: list[tuple[Pool, str, NDArray[np.float64]]] = [
                ("both", "", (into + out) / 2),
                ("xx-en", pairs[0].languages[0], into),
                ("en-xx", language, out),
            ]
            for pool, candidates, values in directions:
                # The languages share most of their texts in the pivot language, and are resampled together by it.
                units[pool, language, candidates] = tuple(pair.source for pair in pairs)
                columns[str(measure), pool, language, candidates] = values
                scores.append(Score(str(measure), pool, language, candidates, float(values.mean()), len(values)))
    return Evaluation(tuple(scores), QueryResults(units, columns, articles={}), data.named)


def evaluate(
    encoder: TextEncoder,
    data: Data,
    measures: Sequence[Measure],
    pools: Sequence[Pool] = ("multilingual",),
    precision: Precision = "float32",
    reranker: TextReranker | None = None,
    rerank_top: int = RerankSettings().top,
    depth: int = DEPTH,
    ranker: Ranker | None = None,
) -> Evaluation:
    """Return all scores; `pools` and the reranker matter to retrieval only.

    With `bfloat16` the encoder runs in bfloat16 where that is safe (torch autocast); vectors are compared in float32.

    Args:
        encoder: encoder to score.
        data: data to score it on.
        measures: measures for this kind of data.
        pools: candidates to rank.
        precision: precision of forward passes.
        reranker: cross-encoder of the pool `reranked`.
        rerank_top: candidates of each question that it reads.
        depth: candidates of each question in the ranking that is kept.
        ranker: ranks other things than candidates, such as pages.

    Raises:
        ConfigError: there is no such pool, it needs a reranker, or a measure is for another kind of task.
        DataError: there is nothing to evaluate on, a question has no relevant candidate in a pool, or the scores of a
            language pair are constant.
        NonFiniteError: the encoder gives vectors that are not finite.
    """
    with (
        torch.autocast(encoder.device.type, torch.bfloat16)
        if ALIASES.get(precision, precision) == "bfloat16"
        else nullcontext()
    ):
        if isinstance(data, RetrievalData):
            return evaluate_retrieval(encoder, data, measures, pools, reranker, rerank_top, depth, ranker)
        if isinstance(data, SimilarityData):
            return evaluate_similarity(encoder, data, measures)
        return evaluate_translation(encoder, data, measures)


# The search scores all candidates for all questions and returns where the relevant ones rank, and what ranks highest.
#
# One matrix product scores the multilingual pool and each language's pool: a rank is 1 more than the number of
# candidates with a higher score, counted by language. Only the scores for a block of questions are in memory.


def search(
    questions: Sequence[Question],
    vectors: NDArray[np.float32],
    candidates: NDArray[np.float32],
    judgements: Judgements,
    languages: Indices,
    balanced: bool = False,
    rescore: Callable[[Scores, int], None] | None = None,
    depth: int = DEPTH,
    identical: Mapping[str, int] | None = None,
    ranker: Ranker | None = None,
) -> SearchResult:
    """Rank all candidates for each question by dot product; ties by index.

    N questions have vectors `(N, D)`, C candidates `(C, D)`, and `languages` is the index of the language of each
    candidate, `(C,)`; each of 0 to L - 1 occurs. With `balanced`, scores are normalised per language
    (`metasearch.encoders.pool_scores`). `rescore` changes the scores `(C,)` of a question, by its number, in place.
    `depth` candidates of each question are kept. `identical` has the index of the candidate that is not ranked for the
    question with an id: it comes last, with the score -inf. With a `ranker`, the C vectors are of its texts.
    """
    # Before `first_equal`: vectors that are equal in float32 must tie.
    vectors, candidates = (np.asarray(side, np.float32) for side in (vectors, candidates))
    size, depth = len(candidates), min(depth, len(languages))
    first = first_equal(candidates)
    copies = np.flatnonzero(first != np.arange(size))
    by_language = np.argsort(languages, kind="stable")
    starts = np.flatnonzero(np.diff(languages[by_language], prepend=-1))
    counts = np.zeros((len(judgements.columns), len(starts)), np.int64)
    top, best = np.zeros((len(vectors), depth), np.int64), np.zeros((len(vectors), depth), np.float32)
    blocks = min(len(vectors), -(-len(vectors) * size // _CELLS))
    for start, end in pairwise(len(vectors) * i // blocks for i in range(blocks + 1)):
        scores = np.empty((end - start, size), np.float32)
        # With `out`, autocast leaves the product in float32.
        torch.matmul(torch.from_numpy(vectors[start:end]), torch.from_numpy(candidates).T, out=torch.from_numpy(scores))
        # Equal candidates tie exactly, however the product rounded them, so that the lower index ranks first.
        scores[:, copies] = scores[:, first[copies]]
        # A NaN is neither higher nor equal: unchecked, a relevant candidate with such a score would rank first.
        _require_finite(scores, questions[start:end])
        if ranker:
            scores = ranker.joined(scores)
        left_out = _list_identical(questions[start:end], identical or {})
        scores[left_out] = _LOWEST
        if balanced:
            balance(scores, np.split(by_language, starts[1:]))
        if ranker:
            ranker.change(scores, start)
        for number, row in enumerate(scores, start):
            if rescore is not None:
                rescore(row, number)
            row[left_out[1][left_out[0] == number - start]] = -np.inf
            mine = slice(judgements.offsets[number], judgements.offsets[number + 1])
            counts[mine] = _count_above(row, judgements.columns[mine, None], by_language, starts)
            top[number] = _highest(row, depth)
            best[number] = row[top[number]]
    return SearchResult(judgements, languages, counts, top, best)


def _candidate_languages(data: RetrievalData) -> Indices:
    """Return each candidate's language number, `(C,)`; languages are in alphabetical order."""
    number = {tag: i for i, tag in enumerate(sorted({candidate.language for candidate in data.candidates}))}
    return np.array([number[candidate.language] for candidate in data.candidates], np.int64)


def _list_identical(questions: Sequence[Question], identical: Mapping[str, int]) -> tuple[Indices, Indices]:
    """Return the questions that are among the candidates, and their columns."""
    rows = [row for row, each in enumerate(questions) if identical and each.id in identical]
    columns = [identical[questions[row].id] for row in rows]
    return np.array(rows, np.int64), np.array(columns, np.int64)


def _count_above(row: NDArray[np.float32], columns: Indices, by_language: Indices, starts: Indices) -> Indices:
    """Return how many candidates of each language rank above each relevant one, `(C,)` and `(R, 1)` → `(R, L)`."""
    sorted_row = row[by_language]
    above, equal = sorted_row > row[columns], sorted_row == row[columns]
    if np.count_nonzero(equal) > len(columns):  # each equals itself; further ties are rare
        above |= equal & (by_language < columns)
    counts: Indices = np.add.reduceat(above, starts, axis=1, dtype=np.int64)
    return counts


def _put_first(row: Scores, highest: Indices, new: Scores) -> None:
    """Replace the highest scores of a row in place; all others stay in their order below them."""
    others = np.ones(len(row), bool)
    others[highest] = False
    # Whole numbers below the lowest new score, which float32 holds exactly, so that no tie appears or disappears.
    distinct, places = np.unique(row[others], return_inverse=True)
    row[others] = np.floor(new.min()) + (places - len(distinct))
    row[highest] = new


def _highest(row: NDArray[np.float32], count: int) -> Indices:
    """Return the indices of the highest scores in a row, in order; ties by index."""
    reaching = np.flatnonzero(row >= np.partition(row, len(row) - count)[len(row) - count])
    return reaching[np.argsort(-row[reaching], kind="stable")[:count]]


def _require_finite(scores: NDArray[np.float32], questions: Sequence[Question]) -> None:
    """Raise `NonFiniteError` naming the first question with a score that is NaN or infinite."""
    finite = np.isfinite(scores).all(axis=1)
    if not finite.all():
        wrong = questions[int(np.argmin(finite))]
        raise NonFiniteError(f"the encoder's scores for question '{wrong.id}' ({wrong.language}) are not finite")
