"""BM25 (Robertson et al. 1994, as Lucene has it) over the texts of an index.

BM25 finds names, numbers and rare words. Its weights are cached in the index's folder.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config.extras import import_extra
from metasearch.search.index.arrays import derive
from metasearch.search.index.base import Ranking, Words
from metasearch.search.index.exact_search import Best

FOLDER = "bm25"


class Bm25:
    """BM25 over the texts of an index, from its cache if possible.

    Args:
        folder: of the index.
        contents: names the texts and the function that splits them.
        texts: of all rows, in parts; read only where there is no cache.
        words: splits texts.
    """

    def __init__(self, folder: Path, contents: Sequence[str], texts: Iterable[Sequence[str]], words: Words) -> None:
        key = hashlib.sha256(json.dumps([3, *contents]).encode()).hexdigest()
        parts = derive(folder / FOLDER, key, lambda: _count(texts, words))
        self.words = words
        self._numbers = {word: i for i, word in enumerate(parts["words"].tolist())}
        self._weights = {name: parts[name] for name in ("data", "indices", "indptr")}

    def search(self, queries: Sequence[str], top: int, inside: NDArray[np.bool_]) -> list[Ranking]:
        """Return each query's best rows with any of its words, and their scores, best first, `(K,)` each.

        Of equal scores the lower row comes first. `inside` are the rows to rank, `(R,)`.
        """
        model = _empty_model()
        model.scores = {**self._weights, "num_docs": len(inside)}
        # Its own `load` sets this for the method.
        model.nonoccurrence_array = None
        found = []
        for ids in self.words(list(queries)):
            known = [self._numbers[word] for word in ids if word in self._numbers]
            best = Best(1, top)
            if known and len(inside):
                scores = np.asarray(model.get_scores_from_ids(known), np.float32)
                rows = np.flatnonzero((scores > 0) & inside)
                best.of_query(0, scores[rows], rows)
            found.append((best.rows[0], best.scores[0]))
        return found


def _empty_model() -> Any:
    return import_extra("bm25s", "search", "--hybrid").BM25(method="lucene")


def _count(texts: Iterable[Sequence[str]], words: Words) -> dict[str, NDArray[Any]]:
    numbers: dict[int, int] = {}
    ids = [[numbers.setdefault(int(word), len(numbers)) for word in row] for some in texts for row in words(list(some))]
    found: dict[str, NDArray[Any]] = {
        "data": np.zeros(0, np.float32),
        "indices": np.zeros(0, np.int32),
        "indptr": np.zeros(1, np.int64),
    }
    if numbers:
        model = _empty_model()
        model.index((ids, {str(word): i for word, i in numbers.items()}), show_progress=False)
        found = {name: np.asarray(model.scores[name]).astype(found[name].dtype) for name in found}
    return {**found, "words": np.array(list(numbers), np.int64)}
