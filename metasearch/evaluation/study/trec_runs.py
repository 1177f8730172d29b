"""TREC run files of other systems as runs of a study: scores, intervals and language bias of any retriever.

A line is `query Q0 document rank score system`. A run ranks the documents of all languages in the test part of one
fold, which follows from its queries. A query is `LANGUAGE:ID`. The name of the system names the arm.

Documents that a run lacks rank below, the relevant ones last. So a measure with a cut-off is exact down to the depth of
the run, and others are never too high. Shares of languages need 20 documents.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metasearch.config.measure import MULTILINGUAL
from metasearch.config.run import DataConfig
from metasearch.data.benchmark import Benchmark, load_benchmark, on_folds
from metasearch.data.formats.text_files import text_lines
from metasearch.data.records import RetrievalData
from metasearch.errors import ConfigError, DataError
from metasearch.evaluation.scores import (
    Indices,
    Judgements,
    SearchResult,
    candidate_languages,
    questions_in_order,
    require_answers,
    score_rankings,
)
from metasearch.evaluation.study.study import Run
from metasearch.io import atomic_write
from metasearch.runs.per_query_results import DEPTH, Ranking

log = logging.getLogger(__name__)


class RunLine(NamedTuple):
    """A document that a system found for a query."""

    document: str
    rank: int
    score: float
    place: str


def read_run(path: Path) -> tuple[str, dict[str, list[RunLine]]]:
    """Return the system, and query → lines, the highest score first; equal ones are by rank, then as in the file."""
    found: dict[str, list[RunLine]] = {}
    seen: dict[tuple[str, str], str] = {}
    system = ""
    for number, text in text_lines(path):
        place, cells = f"{path}:{number}", text.split()
        if not cells:
            continue
        if len(cells) != 6:
            raise DataError(f"{place}: expected 'query Q0 document rank score system', got {text.strip()[:60]!r}")
        query, _, document, rank, score, own = cells
        line = RunLine(document, *_parse_numbers(rank, score, place), place)
        system = system or own
        if own != system:
            raise DataError(f"{place}: system '{own}', but '{system}' above; write a file for each system")
        first = seen.setdefault((query, document), place)
        if first != place:
            raise DataError(f"{place}: duplicate document '{document}' for this query, first in {first}")
        found.setdefault(query, []).append(line)
    if not found:
        raise DataError(f"{path}: the file has no lines")
    return system, {query: sorted(lines, key=lambda line: (-line.score, line.rank)) for query, lines in found.items()}


def _parse_numbers(rank: str, score: str, place: str) -> tuple[int, float]:
    try:
        numbers = int(rank), float(score)
    except ValueError:
        raise DataError(f"{place}: rank '{rank}' and score '{score}': expected a whole number and a number") from None
    if not math.isfinite(numbers[1]):
        raise DataError(f"{place}: score '{score}' is not finite")
    return numbers


def read_trec_runs(paths: Sequence[Path], data: DataConfig) -> list[Run]:
    """Return the scores of run files on a retrieval task."""
    benchmark = load_benchmark(data)
    if benchmark.task.kind != "retrieval":
        raise ConfigError(f"{paths[0]}: task '{data.task}' is a {benchmark.task.kind} task; a TREC run is a ranking")
    folds = range(benchmark.task.folds.k if benchmark.task.folds.method == "kfold" else 1)
    parts = on_folds(benchmark, folds)
    return [_read(path, data, parts) for path in paths]


def write_ranking(path: Path, ranking: Ranking, system: str) -> None:
    """Write a ranking as a run file, whole or not at all; `DataError` for a name with white space."""
    name, lines = "_".join(system.split()), list[str]()
    for question, columns, scores in zip(ranking.questions, ranking.top, ranking.scores, strict=True):
        query = f"{question.language}:{question.id}"
        # The question itself, where it is not ranked, comes last in a pool that is no deeper.
        ranked = [pair for pair in zip(columns, scores, strict=True) if np.isfinite(pair[1])]
        for rank, (column, score) in enumerate(ranked, 1):
            document = ranking.candidates[column].id
            for written in (query, document, name):
                if not written or written.split() != [written]:
                    raise DataError(
                        f"{path}: '{written}' cannot be a name in a TREC run file, which has no white space"
                    )
            # `repr` has all digits of a score, so that reading it back changes no order.
            lines.append(f"{query} Q0 {document} {rank} {float(score)!r} {name}\n")
    atomic_write(path, "".join(lines).encode())


def _read(path: Path, data: DataConfig, parts: Sequence[Benchmark]) -> Run:
    system, lines = read_run(path)
    asked_in = [questions_in_order(part.split.test) for part in parts]  # type: ignore[arg-type]
    names = [{f"{each.language}:{each.id}": i for i, each in enumerate(questions)} for questions in asked_in]
    fold = _fold(lines, names, data.task)
    benchmark, test = parts[fold], parts[fold].split.test
    assert isinstance(test, RetrievalData)
    require_answers(test, [MULTILINGUAL])
    asked = {names[fold][query]: own for query, own in lines.items()}
    if test.ignore_identical_ids:
        ids = [each.id for each in questions_in_order(test)]
        asked = {n: [line for line in own if line.document != ids[n]] for n, own in asked.items()}
    result, depth = _rank(path, asked, test)
    scores = score_rankings(test, {MULTILINGUAL: result}, benchmark.measures, [MULTILINGUAL])
    kept = scores.questions
    if depth < min(DEPTH, len(test.candidates)):
        log.warning("%s: no language bias, which needs %d documents for each question; one has %d", path, DEPTH, depth)
        kept = type(kept)(kept.units, kept.columns, None, kept.articles)
    facts: dict[str, Any] = {
        "task": data.task, "encoder": system, "learner": system, "fold": fold, "fold_seed": data.fold_seed, "seed": 0,
        "split": "test", "mode": None, "recipe": None, "data": benchmark.data.fingerprint, "versions": {},
    }  # fmt: skip
    return Run(path, "", {}, tuple({**facts, **row} for row in scores.rows()), {}, kept)


def _fold(lines: Mapping[str, Sequence[RunLine]], names: Sequence[Mapping[str, int]], task: str) -> int:
    """Return the fold whose test part has all queries; `DataError` names a query that is in no fold or in another."""
    found: dict[int, str] = {}
    for query, own in lines.items():
        fold = next((n for n, known in enumerate(names) if query in known), None)
        if fold is None:
            example = next(iter(names[0]), "")
            raise DataError(
                f"{own[0].place}: no test question of task '{task}' is named '{query}'; names are LANGUAGE:ID, such as "
                f"'{example}'"
            )
        found.setdefault(fold, own[0].place)
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        raise DataError(
            f"{first} is a test question of fold {one}, and {second} of fold {other}; write a file for each fold"
        )
    return next(iter(found))


def _rank(path: Path, asked: Mapping[int, Sequence[RunLine]], test: RetrievalData) -> tuple[SearchResult, int]:
    """Return the ranking of a run, and how many documents the question with the fewest has."""
    questions, languages = questions_in_order(test), candidate_languages(test)
    judgements = Judgements.from_answers(questions, test)
    columns = {candidate.id: i for i, candidate in enumerate(test.candidates)}
    totals = np.bincount(languages)
    above = np.zeros((len(judgements.columns), len(totals)), np.int64)
    found = [_columns(asked.get(number, ()), columns) for number in range(len(questions))]
    if lacking := sum(not len(own) for own in found):
        log.warning(
            "%s: %d of %d questions have no documents; their relevant ones rank last", path, lacking, len(found)
        )
    for number, own in enumerate(found):
        rows = slice(judgements.offsets[number], judgements.offsets[number + 1])
        above[rows] = _count_above(judgements.columns[rows], own, languages, totals)
    depth = min(map(len, found))
    depth = min(depth, DEPTH) if depth else 0
    top = np.stack([own[:depth] for own in found])
    scores = np.array([[line.score for line in asked.get(n, ())[:depth]] for n in range(len(questions))], np.float32)
    return SearchResult(judgements, languages, above, top, scores.reshape(top.shape)), depth


def _columns(lines: Sequence[RunLine], columns: Mapping[str, int]) -> Indices:
    for line in lines:
        if line.document not in columns:
            raise DataError(
                f"{line.place}: document '{line.document}' is not among the {len(columns):,} test documents of the fold"
            )
    return np.array([columns[line.document] for line in lines], np.int64)


def _count_above(relevant: Indices, ranked: Indices, languages: Indices, totals: Indices) -> Indices:
    """Return how many candidates of each language rank above each relevant one, `(R, L)`; unranked ones come last."""
    found = np.isin(relevant, ranked)
    # Only these need a place: sorting the whole pool for each question takes seconds in a pool of a million.
    order = np.concatenate([ranked, relevant[~found]])
    counted = np.zeros((len(order) + 1, len(totals)), np.int64)
    counted[1 + np.arange(len(order)), languages[order]] = 1
    counted = counted.cumsum(axis=0)
    by_column = np.argsort(order)
    above: Indices = counted[by_column[np.searchsorted(order, relevant, sorter=by_column)]]
    # Between the ranked candidates and the unranked relevant ones are all others.
    above[~found] += totals - counted[-1]
    return above
