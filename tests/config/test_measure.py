"""Measures read as they are written, and a wrong one is answered with the right ones."""

import pytest

from metasearch.config.measure import Measure
from metasearch.errors import ConfigError

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


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("mpa", "retrieval", "unknown retrieval measure 'mpa'. Did you mean 'map'?"),
        ("map20", "retrieval", "Did you mean 'map@20'?"),
        ("ndgc@10", "retrieval", "unknown retrieval measure 'ndgc@10'. Did you mean 'ndcg@10'?"),
        ("recal@5", "retrieval", "Did you mean 'recall@5'?"),
        ("recall", "retrieval", "measure 'recall' needs a cut-off; write 'recall@10'"),
        ("complete", "retrieval", "measure 'complete' needs a cut-off; write 'complete@10'"),
        ("map@0", "retrieval", "unknown retrieval measure 'map@0'"),
        ("map@-1", "retrieval", "unknown retrieval measure 'map@-1'"),
        ("map@", "retrieval", "unknown retrieval measure 'map@'"),
        ("map@@3", "retrieval", "unknown retrieval measure 'map@@3'"),
        (f"map@{10**20}", "retrieval", f"measure 'map@{10**20}': a cut-off is at most 1,000,000,000"),
        ("MAP@20", "retrieval", "unknown retrieval measure 'MAP@20'"),
        (
            "accuracy",
            "retrieval",
            "unknown retrieval measure 'accuracy'. "
            "Known: complete@10, map, map@10, mrr, mrr@10, ndcg, ndcg@10, precision-at-full-recall, precision@10, "
            "recall@10.",
        ),
        ("pearsn", "similarity", "Did you mean 'pearson'? Known: pearson, spearman."),
        ("map@20", "similarity", "unknown similarity measure 'map@20'. Known: pearson, spearman."),
        ("pearson@20", "similarity", "measure 'pearson@20': only rankings have a cut-off; write 'pearson'"),
        ("acuracy", "translation", "unknown translation measure 'acuracy'. Did you mean 'accuracy'?"),
        ("accuracy@1", "translation", "measure 'accuracy@1': only rankings have a cut-off; write 'accuracy'"),
        ("map", "translation", "unknown translation measure 'map'. Known: accuracy."),
    ],
)
def test_a_wrong_measure_is_answered_with_the_right_ones(text, kind, says):
    with pytest.raises(ConfigError) as caught:
        Measure.parse(text, kind)
    assert says in str(caught.value)
