"""Queries and documents of a set, which documents are right, and how good a ranking is."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metasearch.data.records import RetrievalData
from metasearch.encoders.pool_scores import balance
from metasearch.errors import DataError
from metasearch.evaluation.metrics.base import Ranks
from metasearch.evaluation.metrics.retrieval import average_precision

TOP = 20
_ABSENT = np.float32(-4)
"""Score of a document that is taken away: below all others, also after balancing, where a language has no other."""
Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]
Names = NDArray[np.str_]
Values = NDArray[np.float64]


class Query(NamedTuple):
    """A query, which is a page's title in one language."""

    page: str
    language: str
    text: str


@dataclass(frozen=True, eq=False)
class Pool:
    """Q queries and D documents.

    Attributes:
        texts: the queries.
        asked: language of each query, `(Q,)`.
        groups: page or article of each query, `(Q,)`; queries of a group do not vary independently.
        languages: language of each document, `(D,)`.
        relevant: which documents are right, in any language, `(Q, D)`.
    """

    texts: Sequence[str]
    asked: Names
    groups: Names
    languages: Names
    relevant: Mask

    def columns(self) -> list[NDArray[np.int64]]:
        """Return the numbers of the documents in each language."""
        return [np.flatnonzero(self.languages == tag) for tag in np.unique(self.languages)]

    def others(self) -> Names:
        """Return for each query another language in which it has a right document, drawn by the hash of the query."""
        found = []
        for query, own, row in zip(self.texts, self.asked, self.relevant, strict=True):
            there = sorted(set(self.languages[row].tolist()) - {own})
            number = int.from_bytes(hashlib.sha256(f"{own} {query}".encode()).digest()[:8])
            found.append(there[number % len(there)] if there else "")
        return np.array(found)


def read_queries(path: Path, count: int | None = None) -> list[Query]:
    """Return the queries of a set, or those of `count` pages that are drawn by the hash of their names."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; build the pages with python -m benchmarks.pages.build") from error
    queries = [Query(row["page"], row["language"], row["query"]) for row in map(json.loads, lines)]
    names = sorted({query.page for query in queries}, key=lambda name: hashlib.sha256(name.encode()).digest())
    drawn = set(names[:count])
    return [query for query in queries if query.page in drawn]


def pool_of(queries: Sequence[Query]) -> Pool:
    """Return the pool in which the documents are the pages that queries ask for, in their order."""
    pages = np.array([query.page for query in queries])
    languages = np.array([query.language for query in queries])
    return Pool([query.text for query in queries], languages, pages, languages, pages[:, None] == pages[None, :])


def pool_of_task(data: RetrievalData) -> Pool:
    """Return the questions and candidates of a retrieval task."""
    place: dict[str, list[int]] = {question.id: [] for question in data.questions}
    for number, question in enumerate(data.questions):
        place[question.id].append(number)
    relevant = np.zeros((len(data.questions), len(data.candidates)), bool)
    for column, candidate in enumerate(data.candidates):
        for answer in candidate.answers:
            relevant[place.get(answer, []), column] = True
    return Pool(
        [question.text for question in data.questions],
        np.array([question.language for question in data.questions]),
        np.array([question.group for question in data.questions]),
        np.array([candidate.language for candidate in data.candidates]),
        relevant,
    )


def measure(scores: Scores, pool: Pool, balanced: bool) -> dict[str, Values]:
    """Return each figure's value for each query, `(Q,)`; NaN where a query has no document that it needs.

    - `map@20`: documents in all languages are right.
    - `own`: share of the query's language among the first 20.
    - `own first`: reciprocal rank of a right document in the query's language.
    - `own alone`, `other alone`: the same if the right document exists in one language alone, the query's or another.
    - `other first`: reciprocal rank of a right document in that other language, with all translations in the pool.
    """
    own = pool.languages[None, :] == pool.asked[:, None]
    other = pool.languages[None, :] == pool.others()[:, None]
    ranked = _balanced(scores, pool) if balanced else scores
    order = np.argsort(-ranked, axis=1, kind="stable")
    values = {
        f"map@{TOP}": average_precision(_ranks(order, pool.relevant), TOP),
        "own": np.take_along_axis(own, order[:, :TOP], axis=1).mean(1),
    }
    for name, language in (("own", own), ("other", other)):
        target = pool.relevant & language
        values[f"{name} first"] = _reciprocal(order, target)
        alone = np.where(pool.relevant & ~language, _ABSENT, scores)
        lonely = np.argsort(-(_balanced(alone, pool) if balanced else alone), axis=1, kind="stable")
        values[f"{name} alone"] = _reciprocal(lonely, target)
    return values


def _balanced(scores: Scores, pool: Pool) -> Scores:
    changed = scores.copy()
    balance(changed, pool.columns())
    return changed


def _ranks(order: NDArray[np.int64], relevant: Mask) -> Ranks:
    hits = np.take_along_axis(relevant, order, axis=1)
    return Ranks(np.nonzero(hits)[1] + 1, np.concatenate([[0], np.cumsum(hits.sum(1))]))


def _reciprocal(order: NDArray[np.int64], target: Mask) -> Values:
    hits = np.take_along_axis(target, order, axis=1)
    return np.where(hits.any(1), 1 / (hits.argmax(1) + 1), np.nan)
