"""Measures read as they are written, and a wrong one is answered with the right ones."""

import pytest

from metasearch.config.measure import Measure

RIGHT = [
    ("map@20", "retrieval", Measure("map", 20)),
    ("map", "retrieval", Measure("map")),
    ("map@1", "retrieval", Measure("map", 1)),
    ("mrr@10", "retrieval", Measure("mrr", 10)),
    ("ndcg", "retrieval", Measure("ndcg")),
    ("complete@10", "retrieval", Measure("complete", 10)),
    ("pearson", "similarity", Measure("pearson")),
    ("spearman", "similarity", Measure("spearman")),
    ("accuracy", "translation", Measure("accuracy")),
]


@pytest.mark.parametrize(("text", "kind", "expected"), RIGHT)
def test_a_measure_reads_as_it_is_written(text, kind, expected):
    assert Measure.parse(text, kind) == expected
    assert str(expected) == text
