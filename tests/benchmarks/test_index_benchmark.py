"""The benchmarks of the index count as they say. No time is asserted."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.speed import index, index_recall, index_tables
from metasearch.config.measure import Measure
from metasearch.data.benchmark import load_benchmark
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines.factory import load_encoder


def test_a_row_has_the_median_and_the_median_of_the_ratios(monkeypatch):
    # Each call takes the next two readings: warm-up, then int8 takes 1, 2, 3 ms and other 4, 4, 9 ms.
    seconds = [0, 9, 0, 9, 0, 1, 0, 4, 0, 2, 0, 4, 0, 3, 0, 9]
    readings = iter([s / 1e3 for s in seconds])
    monkeypatch.setattr(index.time, "perf_counter", lambda: next(readings))
    ways = {"int8": lambda asked: None, "other": lambda asked: None}
    rows = index.race(ways, 2, np.zeros((8, 3), np.float32), rounds=3)
    assert [(row["way"], row["value"], row["low"], row["high"], row["ratio"]) for row in rows] == [
        ("int8", 2, 1, 3, 1),
        ("other", 4, 4, 9, sorted([4 / 1, 4 / 2, 9 / 3])[1]),
    ]


@pytest.mark.slow
def test_the_script_keeps_what_it_measured(tmp_path):
    out = tmp_path / "rows.jsonl"
    done = CliRunner().invoke(index.main, ["--scale=small", "--rounds=1", "-o", str(out)])
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["case"] for row in rows} == {"size", "recall", "search"}
    vectors = [row["value"] for row in rows if row["metric"] == "vectors, MB"]
    # 20,000 vectors of 32 codes and a step of four bytes; of bits four bytes more.
    assert vectors == [round(20_000 * 36 / 1e6, 1), round(20_000 * 40 / 1e6, 1)]
    assert index_tables.time_table(rows).startswith("| 20,000 × 32")


@pytest.mark.slow
def test_map_is_that_of_an_evaluation(tmp_path):
    benchmark = load_benchmark("demo", fold=0)
    encoder = load_encoder("mini", benchmark.task.max_length, device="cpu")
    rows = index_recall.measure(benchmark.split.test, encoder, tmp_path)
    found = {(row["way"], row["metric"]): row["value"] for row in rows}
    wanted = evaluate(encoder, benchmark.split.test, [Measure("map", 20)]).mean("map@20")
    assert found["float64", "mAP@20"] == pytest.approx(wanted, abs=0.0002)
    assert found["int8", "recall@20"] > 0.98
    assert found["bits", "recall@20"] > 0.95
