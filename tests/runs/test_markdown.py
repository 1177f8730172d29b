"""Rows and tables of scores, as they are written to files and pasted."""

from metasearch.evaluation.scores import Evaluation, Score
from metasearch.runs.markdown import by_language, matrix, pool_means


def row(measure, language, value, count=2, pool="multilingual", candidates="all", **more):
    cell = {"measure": measure, "pool": pool, "language": language, "candidates": candidates}
    return {**cell, "value": value, "count": count, **more}


REPORTED = [
    row("map@20", "ar", 0.12346, learner="maml", split="test"),
    row("map@20", "el", 1.0, learner="maml", split="test"),
    row("map@20", "mean", 0.561725, learner="maml", split="test"),
    row("map@20", "ar", 0.0, learner="maml-align", split="test"),
    row("map", "ar", 0.5, learner="maml", split="test"),
    row("map@20", "ar", 0.9, learner="maml", split="dev"),
    row("map@20", "ar", 0.7, learner="maml", split="test", pool="monolingual", candidates="ar"),
]


def test_a_table_by_language_reads_as_it_is():
    assert by_language(REPORTED, "test").split("\n") == [
        "| map@20 (test) |    ar |     el |  mean |",
        "| ------------- | ----: | -----: | ----: |",
        "| maml          | 12.35 | 100.00 | 56.17 |",
        "| maml-align    |  0.00 |        |       |",
        "",
        "| map (test) |    ar | mean |",
        "| ---------- | ----: | ---: |",
        "| maml       | 50.00 |      |",
    ]


def test_a_matrix_has_questions_down_and_candidates_across():
    scores = (
        Score("map", "monolingual", "ar", "ar", 0.75, 2),
        Score("map", "bilingual", "ar", "el", 0.5, 2),
        Score("map", "bilingual", "el", "ar", 0.25, 2),
        Score("map", "monolingual", "el", "el", 1.0, 2),
        Score("map", "multilingual", "el", "all", 0.1, 2),
        Score("map@20", "bilingual", "ar", "el", 0.2, 2),
    )
    assert matrix(list(Evaluation(scores).rows()), "map").split("\n") == [
        "| map: question \\ candidates |    ar |     el |",
        "| -------------------------- | ----: | -----: |",
        "| ar                         | 75.00 |  50.00 |",
        "| el                         | 25.00 | 100.00 |",
    ]


def test_ranks_are_shown_as_they_are_and_shares_times_100():
    rows = [
        row(measure, language, value, learner="maml", split="test")
        for measure, value in (("worst-rank", 5.25), ("own-ndcg@20", 0.5))
        for language in ("ar", "mean")
    ]
    assert "| maml              | 5.25 | 5.25 |" in by_language(rows, "test")
    assert "| maml               | 50.00 | 50.00 |" in by_language(rows, "test")
    assert pool_means(rows).split("\n")[2:] == ["| worst-rank  |         5.25 |", "| own-ndcg@20 |        50.00 |"]
