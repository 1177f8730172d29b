"""Ctrl-C and SIGTERM at any moment of a command: its exit code, and one line that says what there is."""

import signal

import pytest
from click.testing import CliRunner

from helpers.moments import NUMBERS, at_moment
from metasearch.cli import main
from metasearch.errors import Interrupted, Terminated, quoted, to_resume
from metasearch.runs import signals
from metasearch.runs.signals import interrupted


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_while_the_command_line_is_imported_ends_with_one_line(tmp_path, number):
    ended = at_moment(tmp_path, "import", "click", number, "ls")
    assert (ended.returncode, ended.stderr) == (NUMBERS[number], "metasearch: error: stopped\n")


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


def test_an_error_that_a_library_makes_of_the_signal_ends_the_command_with_its_code(listening, monkeypatch):
    def greedy(*_):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise ImportError("numpy is not installed properly") from None

    monkeypatch.setattr("metasearch.config.library.Library", greedy)
    ended = CliRunner().invoke(main, ["ls"])
    assert (ended.exit_code, ended.stderr) == (143, "metasearch: error: stopped\n")
