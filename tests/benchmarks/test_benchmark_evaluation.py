"""The benchmark of the evaluation runs, and its loops find what ours finds. No time is asserted here."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from metasearch.errors import MetasearchError

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """Return the benchmark as a module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("_evaluation")


def test_the_smallest_run_gives_every_figure_of_every_way(script):
    rows = script.evaluation_rows("small", 2, None)
    ways = ("authors", "authors@20", "lareqa", "pytrec_eval")
    expected = [f"seconds, {way}" for way in ("multilingual", "all pools", *ways)] + [f"times {way}" for way in ways]
    assert [row["metric"] for row in rows] == expected
    for row in rows:
        assert (row["case"], row["shape"]) == ("evaluation", "D 8")
        assert 0 < row["low"] <= row["value"] <= row["high"]
        aim = row["metric"] == "times authors"
        assert (row["target"], row["holds"]) == ((">= 100", row["value"] >= 100) if aim else (None, None))


def test_the_loops_find_what_ours_finds_for_each_question(script):
    data = script.made("small")
    given = script.Given(data, 8)
    values = script._ours(given, data, script.POOLS)
    asked = [35, 0, 7]
    for loop, measure in script.LOOPS.values():
        assert loop(given, data, asked) == pytest.approx(values[str(measure)][asked])
    assert 0 < values["map@20"].mean() < 1  # neither all right nor all wrong, which any loop could find


def test_a_loop_that_finds_something_else_ends_the_run(script, monkeypatch):
    wrong = {"authors": (lambda given, data, asked: list(np.full(len(asked), 2.0)), script.MEASURES[1])}
    monkeypatch.setattr(script, "LOOPS", wrong)
    with pytest.raises(MetasearchError, match=r"authors finds map 2\.0+ on 3 questions, we find 0\."):
        script.evaluation_rows("small", 1, None)
