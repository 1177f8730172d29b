"""Document expansion in an index: passages are searched by second vectors, moved towards other languages.

The vectors (`metasearch.encoders.pool_scores`) are computed at the first search that needs them and kept in the index's
folder; they can be deleted at any time.
"""

import hashlib
import json
import logging

import numpy as np

from metasearch.config.languages import UNKNOWN
from metasearch.data.formats.arrays import ArraySpec
from metasearch.encoders.pool_scores import ALPHA, expanded
from metasearch.errors import ConfigError
from metasearch.retrieval.index import derived_arrays
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.index.quantise import Quantised, to_int8

FOLDER = "expansion"
MOST = 2**18
"""Passages of an index that can be expanded, each of which is compared with all of the others."""

log = logging.getLogger(__name__)


def expand(store: LocalStore) -> None:
    """Give a store the second vectors of its passages, as they were kept or made anew.

    Raises:
        ConfigError: the index has more than `MOST` passages, or passages of one language alone.
    """
    if store.expanded:
        return
    known = require_expandable(store)
    if UNKNOWN in store.languages:
        log.warning("not expanded, language unknown: %s passages", f"{store.languages[UNKNOWN]:,}")
    shape: ArraySpec = {"codes": (np.int8, (len(store), store.kind.dimension)), "steps": (np.float32, (len(store),))}
    key = hashlib.sha256(json.dumps([2, ALPHA, store.contents]).encode()).hexdigest()
    kept = derived_arrays.kept(store.folder / FOLDER, key, shape)
    if kept is None:
        log.info("comparing %s passages with each other, once", f"{len(store):,}")
        kept = _expanded(store, known)._asdict()
        derived_arrays.keep(store.folder / FOLDER, key, kept, "passages are compared again the next time")
    store.expanded = Quantised(kept["codes"], kept["steps"])


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
    vectors, languages = store.vectors(), np.full(len(store), -1, np.int64)
    for number, tag in enumerate(known):
        languages[store.rows_in([tag])] = number
    there = languages >= 0
    vectors[there] = expanded(vectors[there], languages[there])
    return to_int8(vectors)
