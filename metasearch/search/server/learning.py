"""Learns the centre of queries of an index from the queries of its users (`serve --learn-queries`)."""

import logging
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import MetasearchError
from metasearch.search.index.base import Store
from metasearch.search.indexes import LEAST_QUERIES, add_queries, require_centre

log = logging.getLogger(__name__)

_MOST = 1024
"""Queries that wait for the next writing at most."""


class QueryCounter:
    """Collects the vectors of a server's queries, and adds their number and sum to the index now and then.

    It writes when there are as many as the index has learned from, so that its centre moves by half of the way that is
    left, and a server writes few times.

    Args:
        folder: of the index.
        store: the index.

    Raises:
        DataError: the index has no centre of queries.
    """

    def __init__(self, folder: Path, store: Store) -> None:
        require_centre(store)
        self._folder, self._store = folder, store
        self._total = store.plan.learned.count if store.plan.learned else 0
        self._waiting: list[NDArray[np.float32]] = []

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Count queries by their vectors from the encoder, `(n, D)`."""
        self._waiting.append(vectors)
        if sum(map(len, self._waiting)) >= min(max(self._total, LEAST_QUERIES), _MOST):
            self.write()

    def write(self) -> None:
        """Add the queries that wait to the index; a warning says if it cannot be written, and they wait on."""
        if not self._waiting:
            return
        try:
            self._total = add_queries(self._folder, self._store, np.concatenate(self._waiting)).count
        except MetasearchError as error:
            log.warning("queries are not learned from yet: %s", error)
            return
        log.info("%s: queries learned from: %d", self._folder, self._total)
        self._waiting = []
