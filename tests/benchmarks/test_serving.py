"""The load test of the server runs at its smallest, without an error, and has a row of each kind of request."""

import pytest
from click.testing import CliRunner

from benchmarks.common.rows import read_rows
from benchmarks.speed import serving


@pytest.mark.slow
def test_the_smallest_load_has_no_error_and_a_row_of_each_kind_of_request(tmp_path):
    path = tmp_path / "rows.jsonl"
    words = ["--encoder", "tiny", "--clients", "2", "--seconds", "0.3", "--rounds", "2", "--results", str(path)]
    result = CliRunner().invoke(serving.main, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    rows = read_rows(path)
    assert [row["case"] for row in rows] == [case.name for case in serving.CASES]
    for row in rows:
        assert row["errors"] == 0
        assert row["requests"] >= 2 * 2  # one of each client in each round
        assert 0 < row["p50_ms"] <= row["p95_ms"]
        for name in ("ratio", "cpu_ratio"):
            middle, low, high = row[name]
            assert 0 < low <= middle <= high
        assert row["case"] in result.output
