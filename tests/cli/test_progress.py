"""Scoring says what it does before it begins, and how far it is: a bar on a terminal, lines elsewhere."""

import logging

import pytest

from metasearch.cli import _progress
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.jobs import compose, score
from metasearch.runs.listener import Listener
from metasearch.spec.run import ScoreConfig


class Heard(Listener):
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

    listener = Listening()
    score.begin(ScoreConfig(task="demo-sts", encoder="tiny", device="cpu"), tmp_path / "run", listener)
    benchmark = load_benchmark("demo-sts")
    assert list(announced) == ["zero-shot on dev of demo-sts", "zero-shot on test of demo-sts"]
    for part, data in (("dev", benchmark.split.dev), ("test", benchmark.split.test)):
        what = f"zero-shot on {part} of demo-sts"
        assert announced[what][-1] == f"scoring {what}: {data.describe()}"
        # The first texts of all pairs are encoded, then the second ones, each distinct one once.
        sizes = [len({text for text in texts}) for texts in zip(*((p.text1, p.text2) for p in data.pairs), strict=True)]
        assert [(done, total) for of, done, total in listener.texts if of == what and done == total] == [
            (size, size) for size in sizes
        ]


def test_an_encoder_tells_how_many_texts_are_done_after_each_batch():
    encoder: Encoder = compose.load_encoder("tiny", device="cpu")
    told = []
    encoder.on_progress = lambda done, total: told.append((done, total))
    encoder.encode(["a", "b", "a", "c", "d", "e"], "text", batch_size=2)
    assert told == [(2, 5), (4, 5), (5, 5)]


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
    assert capsys.readouterr().err.splitlines() == [
        f"maml: zero-shot on test of demo: {second},000 of 50,000 texts encoded" for second in (10, 20)
    ]


def test_on_a_terminal_there_is_a_bar_while_texts_are_encoded(monkeypatch):
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: True, raising=False)
    shown = _progress.ProgressBar("maml")
    for done in (64, 128):
        shown.on_encode("zero-shot on test of demo", done, 200)
        (task,) = shown._bar.tasks
        assert (task.completed, task.total, task.fields["label"]) == (done, 200, "zero-shot on test of demo")
    shown.on_encode("zero-shot on test of demo", 200, 200)
    assert shown._bar.tasks == []
