"""Learns the centre of queries of an index from real queries without labels.

The index keeps their number and the sum of their vectors from the encoder, and no text. So they still count after the
projection of the index is estimated again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from metasearch.errors import ConfigError, DataError
from metasearch.search.index.base import Store
from metasearch.search.index.local import LocalStore
from metasearch.search.index.plan import mean_of
from metasearch.search.index.writer import writing
from metasearch.search.query.searcher import QUERY, Searcher

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
    store = _require_centre(searcher.store)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    more = mean_of(searcher.encoder.encode(queries, QUERY), now)
    with writing(store.folder, store.kind) as writer:
        plan = writer.plan.plus_queries(more)
        writer.write_plan(plan)
    assert plan.learned is not None
    return LearnedQueries(more.count, plan.learned.count, more.date)


def forget_queries(store: LocalStore) -> None:
    """Return the centre of queries of an index to that without real queries."""
    with writing(store.folder, store.kind) as writer:
        writer.write_plan(writer.plan.without_queries())


def _require_centre(store: Store) -> LocalStore:
    """Return a local index that has a centre of queries; errors as `learn_queries`."""
    if not isinstance(store, LocalStore):
        raise ConfigError(f"{store.name}: queries are learned in the folder of an index, and copied from there")
    if store.plan.centre is None:
        why = "it was made with --no-neutral, has too few passages, or is of an earlier release"
        raise DataError(f"{store.name}: no centre of queries: {why}; run metasearch index with its documents again")
    return store
