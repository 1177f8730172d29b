"""Scoring says what it does before it begins, and how far it is: a bar on a terminal, lines elsewhere."""

import logging
import os

import pytest

from helpers.configs import nested, through
from metasearch.cli import _live_table, _progress
from metasearch.config.run import ScoreConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.pipelines.score import ScoreRun
from metasearch.pipelines.study.plan import Cell
from metasearch.pipelines.study.status import CellStatus
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
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_there_is_a_line_in_ten_seconds(clock, capsys):
    with _progress.ProgressBar("maml") as shown:
        for second in range(1, 25):
            clock[0] = 100.0 + second
            shown.on_encode("zero-shot on test of demo", 1000 * second, 50000)
    # 9 seconds after the first batch, 9 batches are done, and 40 are left; then 19 are done, and 30 are left.
    assert capsys.readouterr().err.splitlines() == [
        f"maml: zero-shot on test of demo: {second},000 of 50,000 texts encoded, 0:{50 - second} left"
        for second in (10, 20)
    ]


@pytest.mark.parametrize(
    ("said", "steps", "expected"),
    [
        ("metasearch: scoring zero-shot on test of demo\n", False, "begins"),
        (
            "zero-shot: zero-shot on test of demo: 3,000 of 12,000 texts encoded, 0:30 left\n",
            False,
            "3,000 of 12,000 texts",
        ),
        ("maml: zero-shot on test of demo: 12,000 of 12,000 texts encoded, 0:00 left\n", True, "step 2/9"),
    ],
)
def test_a_cell_is_as_far_as_its_process_last_said(tmp_path, said, steps, expected):
    (tmp_path / "cell").mkdir()
    (tmp_path / "cell.log").write_text(said, encoding="utf-8")
    if steps:
        (tmp_path / "cell" / "log.jsonl").write_text('{"step": 2, "total": 9}\n', encoding="utf-8")
        os.utime(tmp_path / "cell.log", (1, 1))
    status = CellStatus(Cell("cell", "score", nested(ScoreConfig, task="demo", encoder="tiny"), "cell"), "running")
    status.follow(tmp_path / "cell")
    status.hear(tmp_path / "cell.log", tmp_path / "cell")
    assert _live_table.progress(status) == expected


def test_on_a_terminal_there_is_a_bar_while_texts_are_encoded(monkeypatch):
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: True, raising=False)
    shown = _progress.ProgressBar("maml")
    for done in (64, 128):
        shown.on_encode("zero-shot on test of demo", done, 200)
        (task,) = shown._bar.tasks
        assert (task.completed, task.total, task.fields["label"]) == (done, 200, "zero-shot on test of demo")
    shown.on_encode("zero-shot on test of demo", 200, 200)
    assert shown._bar.tasks == []
