"""Scoring says what it does before it begins, and how far it is: a bar on a terminal, lines elsewhere."""

import logging

import pytest

from helpers.configs import nested, through
from metasearch.config.run import ScoreConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.pipelines.score import ScoreRun
from metasearch.runs import progress as _progress
from metasearch.runs.callbacks import Callback


def test_every_part_is_announced_with_its_size_before_its_first_text_is_encoded(tmp_path, caplog):
    caplog.set_level(logging.INFO, "metasearch")
    announced, heard = {}, []

    class Listening(Callback):
        def on_encode(self, what, done, total):
            heard.append((what, done, total))
            announced.setdefault(what, [record.getMessage() for record in caplog.records])

    config = nested(ScoreConfig, task="demo-sts", encoder="tiny", device="cpu")
    ScoreRun(config, tmp_path / "run").execute(through(Listening()))
    benchmark = load_benchmark("demo-sts")
    assert list(announced) == ["zero-shot on dev of demo-sts", "zero-shot on test of demo-sts"]
    for part, data in (("dev", benchmark.split.dev), ("test", benchmark.split.test)):
        what = f"zero-shot on {part} of demo-sts"
        assert announced[what][-1] == f"scoring {what}: {data.describe()}"
        # The first texts of all pairs are encoded, then the second ones, each distinct one once.
        sizes = [len({text for text in texts}) for texts in zip(*((p.text1, p.text2) for p in data.pairs), strict=True)]
        assert [(done, total) for of, done, total in heard if of == what and done == total] == [
            (size, size) for size in sizes
        ]


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    return now


def test_without_a_terminal_there_is_a_line_in_ten_seconds_and_the_last(clock, capsys):
    with _progress.ProgressBar("maml") as shown:
        for second in range(25):
            clock[0] = 100.0 + second
            shown.on_encode("zero-shot on test of demo", 2000 * (second + 1), 50000)
    # Each second encodes 2,000 texts; the first ones warm up.
    assert capsys.readouterr().err.splitlines() == [
        f"maml: zero-shot on test of demo: {2000 * (s + 1)}/50000 texts [00:{s:02}<00:{24 - s:02}]"
        for s in (10, 20, 24)
    ]


def test_the_first_step_shows_no_estimate_of_the_time_left(clock, capsys):
    with _progress.ProgressBar("maml") as shown:
        for step, second in ((1, 0), (2, 30), (3, 60)):
            clock[0] = 100.0 + second
            shown.on_step(step, 3, "meta-train", {})
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("<")[2][:5] for line in lines] == ["?], m", "00:30", "00:00"]


def test_on_a_terminal_there_is_a_bar_while_texts_are_encoded(monkeypatch, capsys):
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: True, raising=False)
    with _progress.ProgressBar("maml") as shown:
        for done in (64, 128, 200):
            shown.on_encode("zero-shot on test of demo", done, 200)
    drawn = capsys.readouterr().err
    assert f"maml: zero-shot on test of demo:  {100 * 64 // 200}%" in drawn
    assert drawn.endswith("\r")  # nothing stays
