"""The evaluator of sentence-transformers: the scores of `metasearch evaluate`, in its trainer's form."""

import csv

import pytest
from sentence_transformers import SentenceTransformer

from metasearch.config.measure import Measure
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.load import load_encoder
from metasearch.errors import DataError
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.study.bias import measure_ranking_bias
from metasearch.sentence_transformers import MultilingualPoolEvaluator


@pytest.mark.slow
def test_the_scores_are_those_of_evaluate_and_are_appended_to_a_file(tmp_path):
    test = load_benchmark("demo").split.dev
    encoder = load_encoder("tiny", device="cpu", prompts={"question": "query: ", "candidate": "passage: "})
    expected = evaluate(encoder, test, [Measure("map", 10)])
    bias = measure_ranking_bias(expected.questions.ranking, 10)
    evaluator = MultilingualPoolEvaluator(test, name="demo", k=10)
    model = encoder.model
    assert isinstance(model, SentenceTransformer)
    for epoch in (0, 1):
        found = evaluator(model, str(tmp_path / "eval"), epoch, 5)
    assert found["demo_map@10"] == pytest.approx(expected.mean("map@10"), abs=2e-3)
    assert found["demo_language_bias"] == pytest.approx(bias, abs=2e-2)
    assert {key for key in found if key.startswith("demo_map@10_")} == {
        f"demo_map@10_{tag}" for tag in test.questions_by_language
    }
    assert evaluator.primary_metric == "demo_map@10"
    with (tmp_path / "eval" / evaluator.csv_file).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["epoch"], row["steps"]) for row in rows] == [("0", "5"), ("1", "5")]
    assert float(rows[1]["map@10"]) == found["demo_map@10"]


def test_rows_are_read_and_a_query_needs_an_answer():
    rows = [{"id": "1", "query": "Where?", "document": "Here.", "language": "en", "relevance": 1}]
    assert MultilingualPoolEvaluator(rows).primary_metric == "map@20"
    with pytest.raises(DataError):
        MultilingualPoolEvaluator([])
