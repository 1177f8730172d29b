"""Scoring says what it does before it begins, and how far it is: a bar on a terminal, lines elsewhere."""

import logging
import os
import re
import subprocess
import sys

import pytest

from helpers.configs import nested
from metasearch.cli import _live_table, _progress
from metasearch.config.library import load_recipe
from metasearch.config.run import ScoreConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.pipelines import factory, score
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
    score.begin(nested(ScoreConfig, task="demo-sts", encoder="tiny", device="cpu"), tmp_path / "run", callback)
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


@pytest.mark.parametrize(
    ("negatives", "queries", "roles"),
    [
        ("random", "random", 0),
        ("random", "similar", 1),
        ("mined", "random", 2),
        pytest.param("semi-hard", "random", 0, marks=pytest.mark.slow),
    ],
)
def test_what_is_encoded_once_to_draw_episodes_by_is_shown(negatives, queries, roles):
    few = ["budget.meta_train=4", "budget.meta_valid=4"]
    recipe = load_recipe("fine-tune-tiny", [*few, f"episodes.negatives={negatives}", f"episodes.queries={queries}"])
    encoder, callback = factory.load_encoder("tiny", device="cpu"), Heard()
    benchmark = load_benchmark("demo", "mono-mono")
    factory.trainer_of(factory.make_learner(recipe, encoder), benchmark, recipe, callback=callback)
    assert {what for what, _, _ in callback.texts} == ({"to draw episodes by"} if roles else set())
    # Of the phases, and of the languages of similar questions.
    assert sum(done == total for _, done, total in callback.texts) >= 2 * roles
    assert encoder.on_progress is None


def test_an_encoder_tells_how_many_texts_are_done_after_each_batch():
    encoder: Encoder = factory.load_encoder("tiny", device="cpu")
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
    # 9 seconds after the first batch, 9 batches are done, and 40 are left; then 19 are done, and 30 are left.
    assert capsys.readouterr().err.splitlines() == [
        f"maml: zero-shot on test of demo: {second},000 of 50,000 texts encoded, 0:{50 - second} left"
        for second in (10, 20)
    ]


def test_there_is_no_estimate_of_the_time_left_before_a_step_was_timed(clock, capsys):
    with _progress.ProgressBar("maml") as shown:
        for step in (1, 2, 3):
            clock[0] += 20
            shown.on_step(step, 5, "meta-train", {"loss": 0.5})
    # The first step warms up. Step 2 took 20 seconds, and 3 steps are left; then 2 are.
    assert capsys.readouterr().err.splitlines() == [
        "maml: step 1/5 meta-train loss 0.5",
        "maml: step 2/5 meta-train loss 0.5, 1:00 left",
        "maml: step 3/5 meta-train loss 0.5, 0:40 left",
    ]


def test_after_such_lines_the_last_text_is_said_too(clock, capsys):
    with _progress.ProgressBar("evaluate") as shown:
        for second in range(1, 13):
            clock[0] = 100.0 + second
            shown.on_encode("mini on test of demo", second, 12)
        shown.on_encode("mini on dev of demo", 12, 12)  # which took no time
    assert [line.split(": ", 2)[-1] for line in capsys.readouterr().err.splitlines()] == [
        "10 of 12 texts encoded, 0:02 left",
        "12 of 12 texts encoded, 0:00 left",
    ]


def piped(*args):
    """Run a command in a process of its own whose stderr is a pipe, with a line for each batch; return that."""
    code = "from metasearch.cli import _progress, main; _progress.EVERY_SECONDS = 0; main()"
    ran = subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stderr.splitlines()


@pytest.mark.slow
def test_evaluate_tells_a_pipe_how_many_texts_are_encoded():
    lines = piped("evaluate", "--task=demo-sts", "--encoder=tiny", "--device=cpu")
    assert "metasearch: scoring tiny on test of demo-sts: 48 pairs in 6 language pairs" in lines
    found = [re.fullmatch(r"evaluate: tiny on test of demo-sts: (\d+) of (\d+) texts encoded, 0:0\d left", line)
             for line in lines if "encoded" in line]  # fmt: skip
    assert all(found)
    assert found[-1][1] == found[-1][2]


@pytest.mark.exhaustive
def test_crossval_tells_a_pipe_how_far_its_cells_are(tmp_path):
    small = ["--set=budget.meta_train=24", "--set=budget.meta_valid=0", "--set=budget.eval_every=1"]
    flags = [
        "--learner=zero-shot,fine-tune:mono-bi",
        "--folds=1",
        "--seeds=0",
        *small,
        "--encoder=tiny",
        "--device=cpu",
    ]
    lines = piped("crossval", "--task=demo", *flags, "-o", tmp_path / "study")
    cells = ["zero-shot/fold-0-seed-0", "fine-tune-mono-bi/fold-0-seed-0"]
    for i, cell in enumerate(cells):
        assert f"crossval: {cell} running ({i} of 2 done)" in lines
        assert any(re.match(rf"crossval: {cell} done in 0:\d\d.* \({i + 1} of 2 done\)", line) for line in lines)
        assert any(line.startswith(f"crossval: {i} of 2 done; {cell} ") for line in lines)


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
