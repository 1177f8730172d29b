"""Scoring says what it does before it begins, and how far it is: a bar on a terminal, lines elsewhere."""

import io
import logging
import re

import pytest
from rich.console import Console
from rich.live import Live

from helpers.configs import nested, through
from metasearch.cli import _progress
from metasearch.config.run import ScoreConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.pipelines.score import ScoreRun
from metasearch.pipelines.study.plan import Cell
from metasearch.pipelines.study.status import StatusBoard
from metasearch.runs.callbacks import Callback


class Heard(Callback):
    """Keeps what it hears of texts."""

    def __init__(self):
        self.texts = []

    def on_encode(self, what, done, total):
        self.texts.append((what, done, total))


def test_every_part_is_announced_with_its_size_before_its_first_text_is_encoded(tmp_path, caplog):
    caplog.set_level(logging.INFO, "metasearch")
    announced = {}

    class Listening(Heard):
        def on_encode(self, what, done, total):
            super().on_encode(what, done, total)
            announced.setdefault(what, [record.getMessage() for record in caplog.records])

    callback = Listening()
    ScoreRun(nested(ScoreConfig, task="demo-sts", encoder="tiny", device="cpu"), tmp_path / "run").execute(
        through(callback)
    )
    benchmark = load_benchmark("demo-sts")
    assert list(announced) == ["zero-shot on dev of demo-sts", "zero-shot on test of demo-sts"]
    for part, data in (("dev", benchmark.split.dev), ("test", benchmark.split.test)):
        what = f"zero-shot on {part} of demo-sts"
        assert announced[what][-1] == f"scoring {what}: {data.describe()}"
        # The first texts of all pairs are encoded, then the second ones, each distinct one once.
        sizes = [len({text for text in texts}) for texts in zip(*((p.text1, p.text2) for p in data.pairs), strict=True)]
        assert [(done, total) for of, done, total in callback.texts if of == what and done == total] == [
            (size, size) for size in sizes
        ]


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands until it is set."""
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


def board(count, **states):
    """Return a board of cells `c0`, `c1`, ..., those that are named in another state."""
    config = nested(ScoreConfig, task="demo", encoder="tiny")
    found = StatusBoard.of([Cell(f"c{i}", "score", f"c{i}", {f"c{i}": config}) for i in range(count)], ())
    for name, state in states.items():
        found.cells[name].state = state
    return found


def drawn(shown, height):
    """Return the lines of a study on a terminal of so many lines."""
    console = Console(file=io.StringIO(), width=80, height=height, force_terminal=True, color_system=None)
    with Live(console=console, auto_refresh=False) as live:
        begun = console.file.tell()
        _progress.LiveTable(live).ticked(shown)
        text = console.file.getvalue()[begun:]
        live.update("")
    return re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", text).splitlines()


@pytest.mark.parametrize("stopping", [False, True])
@pytest.mark.parametrize("height", [8, 24])
def test_a_study_is_never_taller_than_the_terminal_and_shows_what_is_urgent(height, stopping):
    shown = board(100, c50="running", c98="failed")
    shown.stopping = stopping
    title, *rows = drawn(shown, height)
    assert title.startswith("0 of 100 done, 1 failed, 00:00")
    assert ("Ctrl-C again stops at once" in rows[0]) == stopping
    assert len(rows) + 1 <= height
    assert [row.split()[:2] for row in rows[1 + stopping :][:3]] == [
        ["c50", "running"],
        ["c98", "failed"],
        ["c0", "waiting"],
    ]
