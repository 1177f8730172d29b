"""The benchmarks of memory and of GPUs run whole, on small encoders on a CPU. No time is asserted."""

import pytest
from click.testing import CliRunner

from benchmarks.common.rows import read_rows
from benchmarks.speed import checkpointing, gpu


@pytest.fixture(autouse=True)
def _without_published_data(monkeypatch):
    monkeypatch.delenv("METASEARCH_DATA", raising=False)


def run(script, *words):
    result = CliRunner().invoke(script.main, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.exhaustive
def test_layers_computed_again_have_the_same_bits(tmp_path):
    run(checkpointing, "--scale=small", "--rounds=1", "--shape=mini", "-o", tmp_path / "rows.jsonl")
    rows = {row["way"]: row for row in read_rows(tmp_path / "rows.jsonl")}
    assert list(rows) == list(checkpointing.WAYS)
    assert rows["checkpointing"]["gradient_error"] == rows["fast"]["gradient_error"] == 0
    assert 0 < rows["bf16"]["gradient_error"] == rows["bf16 checkpointing"]["gradient_error"] < 0.1
    assert rows["texts"]["gradient_error"] < 1e-5
    assert rows["fast"]["times"] == rows["fast"]["cpu"] == 1


@pytest.mark.slow
def test_on_a_gpu_there_is_a_row_for_each_way_of_each_case(tmp_path):
    words = ["--scale=small", "--device=cpu", "--encoder=tiny", "--rounds=1", "-o", tmp_path / "rows.jsonl"]
    shown = run(gpu, *words)
    rows = read_rows(tmp_path / "rows.jsonl")
    assert [(row["case"], row["way"]) for row in rows] == [
        (case, way) for case, ways in gpu.CASES.items() for way in ways
    ]
    assert all(row["way"] in shown and row["seconds"] > 0 for row in rows)
