"""Document expansion in an index: passages are searched by second vectors, moved towards other languages.

The vectors (`metasearch.encoders.pool_scores`) are computed at the first search that needs them and cached in the
index's folder.
"""

import hashlib
import json
import logging

import numpy as np

from metasearch.config.languages import UNKNOWN
from metasearch.data.formats.arrays import derive
from metasearch.encoders.pool_scores import ALPHA, expanded
from metasearch.errors import ConfigError
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.index.quantise import Quantised, to_int8

FOLDER = "expansion"
MOST = 2**18
"""Passages of an index that can be expanded, each of which is compared with all of the others."""

log = logging.getLogger(__name__)


def expand(store: LocalStore) -> None:
    """Give a store the second vectors of its passages, from their cache if possible.

    Raises:
        ConfigError: the index has more than `MOST` passages, or passages of one language alone.
    """
    if store.expanded:
        return
    known = require_expandable(store)
    if UNKNOWN in store.languages:
        log.warning("not expanded, language unknown: %s passages", f"{store.languages[UNKNOWN]:,}")
    key = hashlib.sha256(json.dumps([3, ALPHA, store.contents]).encode()).hexdigest()
    store.expanded = Quantised(**derive(store.folder / FOLDER, key, lambda: _expanded(store, known)._asdict()))


def require_expandable(store: LocalStore) -> list[str]:
    """Return the languages whose passages are expanded; `ConfigError` where an index is too large, or has only one."""
    if len(store) > MOST:
        raise ConfigError(
            f"expansion compares all passages with each other, at most {MOST:,}; the index has {len(store):,}"
        )
    known = [tag for tag in store.languages if tag != UNKNOWN]
    if len(known) < 2:
        there = f"here all are in {known[0]}" if known else "here none has a known language"
        raise ConfigError(f"expansion needs passages in several languages; {there}")
    return known


def _expanded(store: LocalStore, known: list[str]) -> Quantised:
    """Return all passages' vectors, expanded if their language is known."""
    log.info("comparing %s passages with each other, once", f"{len(store):,}")
    vectors, languages = store.vectors(), np.full(len(store), -1, np.int64)
    for number, tag in enumerate(known):
        languages[store.rows_in([tag])] = number
    there = languages >= 0
    vectors[there] = expanded(vectors[there], languages[there])
    return to_int8(vectors)
