"""A search whose best passages are reranked."""

import numpy as np
import pytest

from helpers.indexes import Given, made, queries, write_index
from metasearch.errors import ConfigError
from metasearch.search.index.local import LocalStore
from metasearch.search.query.searcher import Searcher


class LastDigit:
    """A reranker that scores a passage by the last digit of its text."""

    name = "digits"

    def __init__(self):
        self.read = []

    def scores(self, query, texts):
        self.read.append(len(texts))
        return np.array([int(text[-1]) for text in texts], np.float32)


def test_the_best_passages_are_ordered_by_the_reranker(tmp_path):
    reranker = LastDigit()
    searcher = Searcher(LocalStore.open(write_index(tmp_path / "index", made(60))), Given(queries()), reranker)
    first = searcher.search(["0", "1"], top_k=12, languages=["de", "tr"])
    found = searcher.search(["0", "1"], top_k=5, languages=["de", "tr"], rerank=12)
    assert reranker.read == [12, 12]
    for hits, before in zip(found, first, strict=True):
        expected = sorted(before, key=lambda hit: -int(hit.passage.text[-1]))[:5]
        assert [hit.passage for hit in hits] == [hit.passage for hit in expected]
        assert [hit.score for hit in hits] == [float(hit.passage.text[-1]) for hit in expected]


def test_reranking_needs_a_reranker_and_as_many_passages_as_hits(tmp_path):
    store = LocalStore.open(write_index(tmp_path / "index", made(6)))
    with pytest.raises(ConfigError, match="no reranker; name a cross-encoder with --rerank"):
        Searcher(store, Given(queries())).search(["0"], rerank=10)
    with pytest.raises(ConfigError, match="10 hits are asked of 9 reranked passages"):
        Searcher(store, Given(queries()), LastDigit()).search(["0"], top_k=10, rerank=9)
