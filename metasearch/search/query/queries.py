"""Learns the centre of queries of an index from real queries without labels.

The index keeps their number and the sum of their vectors from the encoder, and no text. So they still count after the
projection of the index is estimated again.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import ConfigError, DataError, MetasearchError
from metasearch.search.index.base import Store
from metasearch.search.index.local import LocalStore
from metasearch.search.index.plan import Learned, mean_of
from metasearch.search.index.writer import writing
from metasearch.search.query.searcher import QUERY, Searcher

log = logging.getLogger(__name__)

LEAST_QUERIES = 5
"""Queries below which nothing is learned: the mean of fewer says more about their subject."""


@dataclass(frozen=True)
class LearnedQueries:
    """Queries that were learned from: how many now, and how many in all."""

    queries: int
    total: int
    date: str

    def __str__(self) -> str:
        return f"queries learned from: {self.queries:,} now, {self.total:,} in all"


def learn_queries(searcher: Searcher, queries: Sequence[str]) -> LearnedQueries:
    """Move the centre of queries of an index towards the mean of real queries, given as distinct texts.

    Raises:
        ConfigError: the index is a copy in a database.
        DataError: there are fewer than 5 queries, or the index has no centre of queries.
        RunFolderError: the index cannot be written.
    """
    if len(queries) < LEAST_QUERIES:
        raise DataError(f"{len(queries)} different queries; the mean of queries needs {LEAST_QUERIES} or more")
    store = require_centre(searcher.store)
    return add_queries(store, mean_of(searcher.encoder.encode(queries, QUERY), _now()))


def add_queries(store: LocalStore, more: Learned) -> LearnedQueries:
    """Write more learned queries into an index; errors as `learn_queries`."""
    with writing(store.folder, store.kind) as writer:
        require_centre(writer)
        plan = writer.plan.plus_queries(more)
        writer.write_plan(plan)
    assert plan.learned is not None
    return LearnedQueries(more.count, plan.learned.count, more.date)


def forget_queries(store: LocalStore) -> None:
    """Return the centre of queries of an index to that without real queries."""
    with writing(store.folder, store.kind) as writer:
        writer.write_plan(writer.plan.without_queries())


def require_centre(store: Store) -> LocalStore:
    """Return a local index that has a centre of queries; errors as `learn_queries`."""
    if not isinstance(store, LocalStore):
        raise ConfigError(f"{store.name}: queries are learned in the folder of an index, and copied from there")
    if store.plan.centre is None:
        why = "it was made with --no-neutral, has too few passages, or is of an earlier release"
        raise DataError(f"{store.name}: no centre of queries: {why}; run metasearch index with its documents again")
    return store


class QueryCounter:
    """Collects the vectors of a server's queries, and adds their number and sum to the index now and then.

    It writes when there are as many as the index has learned from, so that its centre moves by half of the way that is
    left, and a server writes few times.

    Args:
        folder: of the index.
    """

    def __init__(self, folder: Path) -> None:
        self._store = require_centre(LocalStore.open(folder))
        learned = self._store.plan.learned
        self._total = learned.count if learned else 0
        self._waiting: Learned | None = None

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Count queries by their vectors from the encoder, `(n, D)`."""
        found = mean_of(vectors, _now())
        self._waiting = self._waiting.plus(found) if self._waiting else found
        if self._waiting.count >= max(self._total, LEAST_QUERIES):
            self.write()

    def write(self) -> None:
        """Add the queries that wait to the index; a warning says if it cannot be written, and they wait on."""
        if self._waiting is None:
            return
        try:
            self._total = add_queries(self._store, self._waiting).total
        except MetasearchError as error:
            log.warning("queries are not learned from yet: %s", error)
            return
        log.info("%s: queries learned from: %d", self._store.name, self._total)
        self._waiting = None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
