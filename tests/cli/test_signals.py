"""Ctrl-C and SIGTERM at any moment of a command: its exit code, and one line that says what there is."""

import os
import shlex
import signal
import subprocess
import sys

import pytest

from helpers.moments import NUMBERS, at_moment
from helpers.tiers import others_slow
from metasearch import signals
from metasearch.errors import Interrupted, Terminated, interrupted, quoted, to_resume

NOTHING = "metasearch: error: stopped; nothing was written\n"
TRAIN = ("train", "--mode=trans", "--encoder=tiny", "--max-steps=2", "--set=budget.eval_every=1")
# As numpy and torch are, where what they are made of is not in Python.
GREEDY = """
import os, signal
try:
    os.kill(os.getpid(), {number})
    sum(range(10**6))
except BaseException:
    {answer}
"""


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_while_the_command_line_is_imported_ends_with_one_line(tmp_path, number):
    ended = at_moment(tmp_path, "import", "click", number, "ls")
    assert (ended.returncode, ended.stderr) == (NUMBERS[number], NOTHING)


@pytest.mark.parametrize(
    "answer", others_slow(["pass", "raise ImportError('numpy is not installed properly')", "raise SystemError"])
)
def test_an_import_that_swallows_or_changes_exceptions_does_not_swallow_the_signal(tmp_path, answer):
    (tmp_path / "torch.py").write_text(GREEDY.format(number=int(signal.SIGINT), answer=answer), encoding="utf-8")
    ended = at_moment(tmp_path, "import", "no module", signal.SIGINT, *TRAIN, "-o", tmp_path / "run")
    assert (ended.returncode, ended.stderr) == (130, NOTHING)
    assert not (tmp_path / "run").exists()


AT_WORK = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from metasearch import signals
signals.listen()
with signals.Raised(), signals.AtWork():
    try:
        import torch
        time.sleep(60)
    except KeyboardInterrupt:
        print("ended properly, with torch" if "torch" in sys.modules else "without")
"""


@pytest.mark.parametrize(("times", "code", "says"), [(1, 0, "ended properly, with torch\n"), (2, 130, "")])
def test_what_is_at_work_is_ended_when_the_import_is_done_and_a_second_signal_does_not_wait(
    tmp_path, times, code, says
):
    pressed = "import os, signal\n" + "os.kill(os.getpid(), signal.SIGINT)\nsum(range(10**6))\n" * times
    (tmp_path / "torch.py").write_text(pressed, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-c", AT_WORK]
    environment = {**os.environ, "PYTHONPATH": path}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=50)
    assert (ended.returncode, ended.stdout) == (code, says), ended.stderr


IMPORTS = (
    "enum",
    "numpy",
    "numpy._core._multiarray_umath",
    "torch",
    "torch._C",
    "transformers",
    "metasearch.jobs.train",
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*IMPORTS, "metasearch.training.trainer", "tokenizers"])
@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_during_any_import_ends_with_one_line(tmp_path, name, number):
    ended = at_moment(tmp_path, "import", name, number, *TRAIN, "-o", tmp_path / "run")
    assert (ended.returncode, ended.stderr) == (NUMBERS[number], NOTHING)
    assert not (tmp_path / "run").exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("event", "name"),
    [
        ("open", ".lock"),
        ("os.rename", "results.jsonl"),
        ("os.rename", "log.jsonl"),
        ("os.rename", "checkpoint"),
        ("open", "modules.json"),
        ("os.rename", "report.md"),
    ],
)
@pytest.mark.parametrize("number", NUMBERS)
def test_as_soon_as_there_is_a_run_the_line_names_the_command_that_goes_on(tmp_path, event, name, number):
    run = tmp_path / "it's a run"
    ended = at_moment(tmp_path, event, name, number, *TRAIN, "-o", run)
    assert ended.returncode == NUMBERS[number], ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("metasearch: error: stopped")
    assert "Traceback" not in ended.stderr
    command = last.partition(". Go on with: ")[2]
    assert shlex.split(command) == ["metasearch", "resume", str(run)]
    resumed = at_moment(tmp_path, "import", "no module", number, *shlex.split(command)[1:])
    assert resumed.returncode == 0, resumed.stderr


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(("event", "name"), [("open", "config.yaml.new"), ("open", "fold-0-seed-0.log")])
def test_a_study_says_how_to_go_on_from_its_first_file_on(tmp_path, event, name, number):
    flags = ("crossval", "--task=demo-sts", "--learner=zero-shot", "--encoder=tiny", "--folds=1", "--threads=1")
    ended = at_moment(tmp_path, event, name, number, *flags, "-o", tmp_path / "a study")
    assert ended.returncode == NUMBERS[number], ended.stderr
    assert f"Go on with: metasearch resume '{tmp_path / 'a study'}'" in ended.stderr


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("runs/one", "metasearch resume runs/one"),
        ("runs/my run", "metasearch resume 'runs/my run'"),
        ("it's", "metasearch resume 'it'\"'\"'s'"),
        ("-run", "metasearch resume ./-run"),
        ("--a b", "metasearch resume './--a b'"),
    ],
)
def test_a_path_stands_in_a_command_as_the_shell_takes_it(folder, words):
    assert to_resume(folder) == words
    assert quoted(folder) == words.removeprefix("metasearch resume ")


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, Interrupted), (signal.SIGTERM, Terminated)])
def test_what_stopped_a_run_decides_the_exit_code(number, kind):
    try:
        signals.note(number)
        assert type(interrupted("stopped")) is kind
        assert kind.exit_code == NUMBERS[number]
    finally:
        signals.note(None)
