"""Between a command and the system: empty values, impossible names, and an output that is closed."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from metasearch.cli import main

LONG = "x" * 5_000


def failing(*args, code):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, (result.output, result.exception)
    assert result.stdout == ""
    return result.stderr


@pytest.mark.parametrize("args", [["resume", LONG], ["report", LONG, "-o", "x"], ["ls", "--include", LONG]])
def test_a_name_that_is_too_long_is_an_error_of_one_line(args):
    assert "File name too long" in failing(*args, code=5)


def test_a_reader_that_has_seen_enough_ends_the_command_quietly():
    script = f'{{ "{sys.executable}" -m metasearch ls; echo "$?" >&2; }} | true'
    assert subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False).stderr == "1\n"
