"""Scoring says what it does before it begins, and how far it is: a bar on a terminal, lines elsewhere."""

import io
import logging
import os
import re

import pytest
from rich.console import Console
from rich.live import Live

from helpers.configs import nested, through
from metasearch.cli import _progress
from metasearch.config.run import ScoreConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.pipelines.score import ScoreRun
from metasearch.pipelines.study.folder import StudyFolder
from metasearch.pipelines.study.plan import Cell
from metasearch.pipelines.study.status import CellStatus, StatusBoard
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


def test_a_part_that_takes_less_than_ten_seconds_has_no_line(clock, capsys):
    with _progress.ProgressBar("evaluate") as shown:
        for second in range(1, 10):
            clock[0] = 100.0 + second
            shown.on_encode("mini on test of demo", second, 9)
        shown.on_encode("mini on dev of demo", 12, 12)
    assert capsys.readouterr().err == ""


def test_there_is_no_estimate_of_the_time_left_before_a_step_was_timed(clock, capsys):
    with _progress.ProgressBar("maml") as shown:
        for step in (1, 2, 3):
            clock[0] += 20
            shown.on_step(step, 5, "meta-train", {"loss": 0.5})
    # The first step warms up. Steps 2 and 3 took 20 seconds each; 3 steps are left, then 2.
    assert capsys.readouterr().err.splitlines()[:3] == [
        "maml: 1/5 steps [00:00<?], meta-train loss 0.5",
        "maml: 2/5 steps [00:20<01:00], meta-train loss 0.5",
        "maml: 3/5 steps [00:40<00:40], meta-train loss 0.5",
    ]


def test_a_count_without_a_known_total_has_no_estimate(clock, capsys):
    with _progress.ProgressBar("prepare") as shown:
        for lines in (0, 1000, 2000):
            clock[0] += 20
            shown.on_prepare("lines read", lines, 0)
    assert capsys.readouterr().err.splitlines()[0] == "prepare: 1000 lines read [00:20]"


def test_dev_scores_are_lines(capsys):
    shown = _progress.ProgressBar("maml")
    for step, best in ((0, True), (5, True), (10, False)):
        shown.on_dev(step, 0.25, best)
    assert capsys.readouterr().err.splitlines() == [
        "maml: step 0 dev 25.00 (before)", "maml: step 5 dev 25.00 (best so far)", "maml: step 10 dev 25.00",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "steps", "expected"),
    [
        ("metasearch: scoring zero-shot on test of demo\n", False, "begins"),
        ("zero-shot: zero-shot on test of demo: 3000/12000 texts [00:10<00:30]\n", False, "3000/12000 texts"),
        ("maml: zero-shot on test of demo: 12000/12000 texts [00:40<00:00]\n", True, "step 2/9"),
    ],
)
def test_a_cell_is_as_far_as_its_process_last_said(tmp_path, said, steps, expected):
    study = StudyFolder(tmp_path)
    study.at("cell").mkdir(parents=True)
    study.log("cell").write_text(said, encoding="utf-8")
    if steps:
        (study.at("cell") / "log.jsonl").write_text('{"step": 2, "total": 9}\n', encoding="utf-8")
        os.utime(study.log("cell"), (1, 1))
    config = nested(ScoreConfig, task="demo", encoder="tiny")
    status = CellStatus(Cell("cell", "score", "cell", {"cell": config}), "running")
    status.follow(study)
    assert _progress.progress(status) == expected


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


def test_that_a_study_is_stopping_is_said_once(capsys):
    shown, lines = board(2, c0="running"), _progress.Lines()
    lines.ticked(shown)
    assert capsys.readouterr().err == ""
    shown.stopping = True
    lines.ticked(shown)
    lines.ticked(shown)
    assert capsys.readouterr().err.count("Ctrl-C again stops at once") == 1
