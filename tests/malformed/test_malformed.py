"""Whatever malformed input a command is given, it says so in one clear line, with the documented exit code."""

import re
import shutil
from collections import Counter

import pytest
from click.testing import CliRunner

from malformed import corpora, declarations, folders, options, readers
from malformed.bases import BASES
from metasearch.cli import main

TABLES = (readers, corpora, declarations, options, folders)
ROWS = [row for table in TABLES for row in table.ROWS]


def files_of(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*") if path.name != ".lock"}


def error_of(stderr):
    """Return the lines of the error at the end of what a command says, without its mark."""
    for before in ("metasearch: error: ", "Error: "):  # of a command, or of click for its options
        _, mark, error = f"\n{stderr}".rpartition(f"\n{before}")
        if mark:
            return error.removesuffix("\n").split("\n")
    raise AssertionError(stderr)


@pytest.fixture(scope="session")
def bases(tmp_path_factory):
    """Return a function that copies a sound folder, made when it is first asked for."""
    place = tmp_path_factory.mktemp("bases")

    def copied(name, to):
        if not (place / name).exists():
            BASES[name](place / name)
        shutil.copytree(place / name, to / name)

    return copied


# What needs a run, a study or an encoder loads weights.
MARKED = [pytest.param(row, id=row.name, marks=[pytest.mark.exhaustive] if row.base else []) for row in ROWS]


@pytest.mark.parametrize("row", MARKED)
def test_malformed_input_is_refused_in_one_clear_line(row, bases, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if row.base:
        bases(row.base, tmp_path)
    row.write(tmp_path)
    before = files_of(tmp_path)
    result = CliRunner().invoke(main, row.args(tmp_path))
    assert result.exit_code == row.code, (result.output, result.exception)
    error = error_of(result.stderr)
    assert re.search(row.says, "\n".join(error)), error
    assert len(error) == row.lines, error
    assert "Traceback" not in result.output
    assert "a bug in metasearch" not in result.output
    assert files_of(tmp_path) == before


def test_the_table_has_no_row_twice():
    assert [name for name, count in Counter(row.name for row in ROWS).items() if count > 1] == []
