"""Labelled queries that an index remembers: a query close to one of them finds its pages.

Scores between queries and scores of passages have different scales, so both count in standard deviations. Let μ and
σ_q be the mean and the standard deviation of scores between labelled queries about different pages. A query q is as
close to the labelled query m_j as

    z_j = (q · m_j - μ) / σ_q

The nearest labelled query has z. Let z' be the highest z_j among labelled queries that share no page with it. Each page
of the nearest query then gains

    2 σ max(0, z - max(3, z' + 1))

with the standard deviation σ of passage scores (`metasearch.search.index.page_scores`). All other pages keep their
scores, and an unlike query changes nothing. Search engines know this as query-to-page boosts.

Notation used for array shapes: M labelled queries, D dimensions, P pages, E pairs of a query and its page.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]

GAIN, LEAST, AHEAD = 2.0, 3.0, 1.0
"""Standard deviations that a page gains for one of z; z from which it gains; lead over other pages' labelled queries.
Chosen on the Debian FAQ and the Developer's Reference: docs/results/adaptation.md."""
MOST = 4096
"""Labelled queries that an index remembers at most; of more, evenly spaced ones."""
_DIGITS = 9
_SAMPLED = 1024
"""Queries in the estimate of mean and standard deviation."""


@dataclass(frozen=True, eq=False)
class LabelledQueries:
    """M labelled queries and their pages.

    Attributes:
        vectors: queries through the plan of the index without its adapter, `(M, D)`.
        queries: number of the query of each pair, `(E,)`.
        pages: number of the page of each pair, `(E,)`.
        keys: key of a passage that stands on the page alone, `(P, 16)`.
        mean: μ.
        spread: σ_q, above 0.
    """

    vectors: NDArray[np.float32]
    queries: Rows
    pages: Rows
    keys: NDArray[np.uint8]
    mean: float
    spread: float

    @classmethod
    def of(cls, vectors: NDArray[np.float32], pages: Sequence[Collection[int]], keys: NDArray[np.uint8]) -> Self | None:
        """Return labelled queries with the numbers of their pages; None where no two of them are about other pages."""
        chosen = np.unique(np.linspace(0, len(vectors) - 1, min(len(vectors), MOST)).astype(np.int64))
        # As they are stored.
        vectors = vectors[chosen].astype(np.float16).astype(np.float32)
        own = [sorted(pages[i]) for i in chosen.tolist()]
        some = np.unique(np.linspace(0, len(vectors) - 1, min(len(vectors), _SAMPLED)).astype(np.int64))
        has = np.zeros((len(some), len(keys)), np.float32)
        for row, i in enumerate(some.tolist()):
            has[row, own[i]] = 1
        scores = (vectors[some] @ vectors[some].T)[has @ has.T == 0].astype(np.float64)
        spread = float(scores.std()) if len(scores) else 0.0
        if not spread > 0:
            return None
        queries = np.repeat(np.arange(len(own)), [len(each) for each in own])
        numbers = np.array([page for each in own for page in each], np.int64)
        return cls(vectors, queries, numbers, keys, float(scores.mean()), spread)

    def __len__(self) -> int:
        """Return M."""
        return len(self.vectors)

    def recall(self, vectors: NDArray[np.float32]) -> list[tuple[Rows, float]]:
        """Return for each query `(n, D)` the numbers of pages that gain, and the gain in σ; no pages for no gain."""
        # Rounded sums of float64, so that order and batches of queries change no bits.
        scores, found = np.round(vectors.astype(np.float64) @ self._exact, _DIGITS), []
        for own in (scores - self.mean) / self.spread:
            nearest = int(own.argmax())
            pages = self.pages[self.queries == nearest]
            rivals = np.ones(len(own), np.bool_)
            rivals[self.queries[np.isin(self.pages, pages)]] = False
            ahead = own[nearest] - max(LEAST, float(own[rivals].max(initial=-np.inf)) + AHEAD)
            found.append((pages, GAIN * float(ahead)) if ahead > 0 else (pages[:0], 0.0))
        return found

    @cached_property
    def _exact(self) -> NDArray[np.float64]:
        return self.vectors.T.astype(np.float64)

    # The record.

    @property
    def record(self) -> dict[str, NDArray[Any]]:
        """The labelled queries as arrays, with vectors in float16."""
        return {
            "labelled_vectors": self.vectors.astype(np.float16), "labelled_queries": self.queries,
            "labelled_pages": self.pages, "labelled_keys": self.keys,
            "labelled_scale": np.array([self.mean, self.spread]),
        }  # fmt: skip

    @classmethod
    def read(cls, record: Mapping[str, NDArray[Any]]) -> Self:
        """Return the labelled queries of a record."""
        vectors, queries, pages, keys = (record[f"labelled_{each}"] for each in ("vectors", "queries", "pages", "keys"))
        mean, spread = record["labelled_scale"].tolist()
        return cls(vectors.astype(np.float32), queries, pages, keys, mean, spread)
