"""Bad input: one clear line, a documented exit code, no traceback, and nothing lost."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from helpers.commands import metasearch
from metasearch.cli import main
from metasearch.errors import DataError

TRAIN = ["train", "--mode", "trans", "--encoder", "tiny"]


def failing(*args, code):
    result = metasearch(*args, code=code)
    assert result.stdout == ""
    return result.stderr


def test_a_device_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert "--device cuda: not available" in failing(*TRAIN, "--device", "cuda", code=2)


@pytest.mark.parametrize("command", main.list_commands(None))
def test_a_misspelt_choice_of_any_option_is_answered_with_the_nearest_one(command):
    for option in main.get_command(click.Context(main), command).params:
        for choice in option.type.choices if isinstance(option.type, click.Choice) else ():
            name = option.opts[0]
            words, shown = ([name], name) if name.startswith("-") else ([], f"[{name.upper()}]")
            (line,) = failing(command, *words, f"{choice}x", code=2).splitlines()
            assert line.startswith(f"metasearch: error: Invalid value for '{shown}'")
            assert f"unknown choice '{choice}x'. Did you mean '{choice}'? Known: " in line
            assert line.endswith(f"; see metasearch {command} --help")


@pytest.mark.parametrize(
    "args", [["--jsn"], ["--jsn", "train"], ["train", "--fold", "x"], ["train", "--jsn"], ["train", "--mode"], ["show"]]
)
def test_a_usage_error_is_one_line_that_names_the_help(args):
    (line,) = failing(*args, code=2).splitlines()
    command = "metasearch" if args[0] == "--jsn" else f"metasearch {args[0]}"
    assert line.startswith("metasearch: error: ")
    assert line.endswith(f"; see {command} --help")


def test_missing_data_says_where_to_get_it_its_licence_and_the_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("METASEARCH_DATA", raising=False)
    for args in ([], ["--data", tmp_path]):
        error = failing(*TRAIN, "--task", "lareqa", *args, code=3)
        for part in ("github.com/google-research-datasets/lareqa", "CC BY-SA 4.0", "ar.json, de.json, el.json"):
            assert part in error


def test_debug_shows_the_traceback_and_keeps_the_code(monkeypatch):
    arguments = ["train", "--mode", "transs", "--debug"]
    monkeypatch.setattr(sys, "argv", ["metasearch", *arguments])
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert "Did you mean 'trans'?" in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "traced"),
    [(DataError("a.tsv:3: no tab"), DataError.exit_code, False), (KeyError("a.tsv"), 1, True)],
)
def test_a_cell_of_a_study_traces_a_bug_and_says_what_a_user_can_mend_in_one_line(monkeypatch, error, code, traced):
    arguments = ["resume", "cell", "--until-eof"]  # as the runner of a study calls it

    def raising(folder):
        raise error

    monkeypatch.setattr(sys, "argv", ["metasearch", *arguments])
    monkeypatch.setattr("metasearch.pipelines.folders.kind_of", raising)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code
    assert ("Traceback" in result.stderr) == traced
    assert len(result.stderr.splitlines()) == 1 or traced


def test_a_reader_that_has_seen_enough_ends_the_command_quietly():
    script = f'{{ "{sys.executable}" -m metasearch ls; echo "$?" >&2; }} | true'
    assert subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False).stderr == "1\n"
