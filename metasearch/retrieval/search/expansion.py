"""Document expansion in an index: passages are scored with their nearest ones in other languages.

The score of an expanded passage (`metasearch.encoders.rerank`) is a mean of scores that the index has, weighted and
divided by a length, so that the vectors of the index stay as they are. The weights are computed when they are first
asked for and kept in the index's folder; they can be deleted at any time.
"""

import hashlib
import json
import logging
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from metasearch.config.languages import UNKNOWN
from metasearch.data.formats.arrays import ArraySpec, LoadedArrays
from metasearch.encoders.rerank import ALPHA, neighbours
from metasearch.errors import ConfigError
from metasearch.retrieval.index import derived_arrays
from metasearch.retrieval.index.index import Index
from metasearch.retrieval.index.scan import Best, Rows, Scores

FOLDER = "expansion"
MOST = 2**18
"""Passages of an index that can be expanded, each of which is compared with all of the others."""
_PARTS: ArraySpec = {"data": (np.float32, (-1,)), "indices": (np.int32, (-1,)), "indptr": (np.int64, (-1,))}

log = logging.getLogger(__name__)


class Expansion:
    """The rows of an index, expanded; `of` makes one.

    Args:
        index: whose rows are searched, R of them.
        parts: `data`, `indices` and `indptr` of the weights of all rows in the score of each, a sparse `(R, R)`.
    """

    def __init__(self, index: Index, parts: LoadedArrays) -> None:
        self.index = index
        whole = (len(index), len(index))
        self.weights = sparse.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=whole)

    @classmethod
    def of(cls, index: Index) -> "Expansion":
        """Return the expansion of an index, as it was kept or made anew.

        Raises:
            ConfigError: the index has more than `MOST` rows, or passages of one language alone.
            RunFolderError: a segment is damaged.
        """
        known = require_expandable(index)
        if UNKNOWN in index.languages:
            log.warning("not expanded, as their language is not known: %s passages", f"{index.languages[UNKNOWN]:,}")
        key = hashlib.sha256(json.dumps([1, ALPHA, index.contents_name]).encode()).hexdigest()
        folder = index.folder / FOLDER
        kept = derived_arrays.kept(folder, key, _PARTS)
        if kept is None:
            log.info("comparing %s passages with each other, once", f"{len(index):,}")
            kept = _made(index, known)
            derived_arrays.keep(folder, key, kept, "passages are compared again the next time")
        return cls(index, kept)

    def search(
        self, vectors: NDArray[np.float32], top: int = 10, languages: Collection[str] = ()
    ) -> list[tuple[Rows, Scores]]:
        """Return for each query the best rows and their scores, best first, `(K,)` each; arguments as `Index.search`.

        `languages` selects the rows that are found; the rows that move them may be in any language.

        Raises:
            ConfigError: no row is in one of the languages, or `top` is below 1.
            NonFiniteError: a vector is not finite.
        """
        return self.search_each(vectors, top, [languages])[0]

    def search_each(
        self, vectors: NDArray[np.float32], top: int, groups: Sequence[Collection[str]]
    ) -> list[list[tuple[Rows, Scores]]]:
        """Return what `search` finds in each of some groups of languages; all rows are scored once."""
        if top < 1:
            raise ConfigError(f"top {top}: expected 1 or more")
        scores = self.index.scores(vectors)
        return [self._best(scores, top, languages) for languages in groups]

    def _best(self, plain: Scores, top: int, languages: Collection[str]) -> list[tuple[Rows, Scores]]:
        inside = np.flatnonzero(self.index.rows_in(languages))
        # A choice of rows is a copy, of all of them as large as the whole.
        weights = self.weights[inside] if languages else self.weights
        scores = weights @ plain
        best = Best(plain.shape[1], top)
        best.add(np.ascontiguousarray(scores, np.float32), inside)
        return list(zip(best.rows, best.scores, strict=True))


def require_expandable(index: Index) -> list[str]:
    """Return the languages whose passages are expanded; `ConfigError` where an index is too large, or has only one."""
    if len(index) > MOST:
        raise ConfigError(f"expansion compares all passages with each other, {MOST:,} at most; here are {len(index):,}")
    known = [tag for tag in index.languages if tag != UNKNOWN]
    if len(known) < 2:
        there = f"here all are in {known[0]}" if known else "here none has a known language"
        raise ConfigError(f"expansion looks for passages in other languages; {there}")
    return known


def _made(index: Index, known: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return the weights: of row i one for itself and α-weighted ones of its neighbours, over the length of the sum."""
    vectors, codes = index.vectors(), np.full(len(index), -1, np.int64)
    for code, tag in enumerate(known):
        codes[index.rows_in([tag])] = code
    there = np.flatnonzero(codes >= 0)
    own = np.arange(len(index))
    terms = [(own, own, np.ones(len(index), np.float32))]
    terms += [(there[i], there[n], weights) for i, n, weights in neighbours(vectors[there], codes[there])]
    rows, others, weights = (np.concatenate(part) for part in zip(*terms, strict=True))
    whole = sparse.csr_matrix((weights, (rows, others)), shape=(len(index), len(index)))
    whole.eliminate_zeros()
    lengths = np.linalg.norm(whole @ vectors, axis=1)
    # A vector of zeros stays one, and has the score 0 in any case.
    whole = sparse.diags(1 / np.where(lengths > 0, lengths, 1)) @ whole
    return {
        "data": whole.data.astype(np.float32),
        "indices": whole.indices.astype(np.int32),
        "indptr": whole.indptr.astype(np.int64),
    }
