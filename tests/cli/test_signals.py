"""Ctrl-C and SIGTERM at any moment of a command: its exit code, and one line that says what there is."""

import shlex
import signal

import pytest
from click.testing import CliRunner

from helpers.moments import NUMBERS, at_moment
from metasearch.cli import main
from metasearch.errors import Interrupted, Terminated, quoted, to_resume
from metasearch.runs import signals
from metasearch.runs.signals import interrupted

TRAIN = ("train", "--mode=trans", "--encoder=tiny", "--max-steps=2", "--set=budget.eval_every=1")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_while_the_command_line_is_imported_ends_with_one_line(tmp_path, number):
    ended = at_moment(tmp_path, "import", "click", number, "ls")
    assert (ended.returncode, ended.stderr) == (NUMBERS[number], "metasearch: error: stopped\n")


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


@pytest.fixture
def listening():
    before = {number: signal.getsignal(number) for number in NUMBERS}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have its background jobs ignore Ctrl-C
    signals.listen()
    yield
    signals.note(0)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, Interrupted), (signal.SIGTERM, Terminated)])
def test_either_signal_interrupts_and_decides_the_exit_code(listening, number, kind):
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert type(interrupted("stopped")) is kind
    assert kind.exit_code == NUMBERS[number]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_deferred_signal_waits_and_a_second_one_does_not(listening, number):
    with signals.deferred():
        assert signals.received() == 0
        signal.raise_signal(number)
        assert signals.received() == number
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


def test_an_ignored_signal_stays_ignored(listening):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signals.listen()
    signal.raise_signal(signal.SIGINT)
    assert signals.received() == 0


def test_an_error_that_a_library_makes_of_the_signal_ends_the_command_with_its_code(listening, monkeypatch):
    def greedy(*_):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise ImportError("numpy is not installed properly") from None

    monkeypatch.setattr("metasearch.config.library.Library", greedy)
    ended = CliRunner().invoke(main, ["ls"])
    assert (ended.exit_code, ended.stderr) == (143, "metasearch: error: stopped\n")
