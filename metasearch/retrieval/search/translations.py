"""What distinguishes a page from its translations, in the vectors of an index: which pages show it, and when again."""

import hashlib
import logging
from collections.abc import Sequence

import numpy as np

from metasearch.data.documents.languages import translations
from metasearch.data.documents.read import is_page
from metasearch.encoders.translations import LEAST, translation_map
from metasearch.retrieval.index.base import FilePlaces
from metasearch.retrieval.index.projection import MAP, MAP_PAGES, Arrays, of_arrays
from metasearch.retrieval.index.writer import IndexWriter

log = logging.getLogger(__name__)

_MOST = 1000
"""Pages with translations in the estimate, at most."""
_GROWN = 2
"""Of so many times as many pages, the map is estimated again."""


def with_translations(store: IndexWriter, files: Sequence[FilePlaces], projection: Arrays) -> Arrays:
    """Return the arrays of a projection with the map of its translations, if enough pages are in several languages.

    The stored map stays with the stored projection, unless there are at least twice as many pages in the estimate.
    """
    had = MAP in store.arrays
    before = int(store.arrays[MAP_PAGES][0]) if had and projection is store.arrays else 0
    known = {each.file.path: each for each in files if len(each.keys) and is_page(each.file.path)}
    # By hash, so that the sample depends on the documents alone.
    groups = sorted(translations({path: each.file.language for path, each in known.items()}), key=_hash)[:_MOST]
    if len(groups) < max(LEAST, _GROWN * before):
        return projection
    neutral = of_arrays(projection)
    pages = [known[path] for group in groups for path in group]
    stored = store.stored_of(np.concatenate([each.keys for each in pages]))
    vectors = stored if neutral is None else neutral(stored).astype(np.float32)
    own = iter(np.split(vectors, np.cumsum([len(each.keys) for each in pages])[:-1]))
    matrix = translation_map([[next(own) for _ in group] for group in groups])
    log.info(
        "what distinguishes a page from its translations counts less in queries; estimated%s from %d pages",
        " again" if had else "", len(groups),
    )  # fmt: skip
    return {**projection, MAP: matrix, MAP_PAGES: np.array([len(groups)])}


def _hash(group: Sequence[str]) -> bytes:
    return hashlib.sha256(group[0].encode()).digest()
