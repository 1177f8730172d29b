"""Whatever malformed input a command is given, it says so in one clear line, with the documented exit code."""

import re
import shutil

import pytest
from click.testing import CliRunner

from malformed import corpora, declarations, folders, options, readers
from malformed.bases import BASES
from metasearch.cli import main

TABLES = (readers, corpora, declarations, options, folders)


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


def check(row, folder):
    """Run the command of a row in a folder, which is the current one."""
    row.write(folder)
    before = files_of(folder)
    result = CliRunner().invoke(main, row.args(folder))
    assert result.exit_code == row.code, (row.name, result.output, result.exception)
    error = error_of(result.stderr)
    assert re.search(row.says, "\n".join(error)), (row.name, error)
    assert len(error) == row.lines, (row.name, error)
    assert "Traceback" not in result.output, row.name
    assert "a bug in metasearch" not in result.output, row.name
    assert files_of(folder) == before, row.name


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_malformed_input_is_refused_in_one_clear_line(table, tmp_path, monkeypatch):
    for number, row in enumerate(row for row in table.ROWS if not row.base):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        check(row, folder)


@pytest.mark.exhaustive  # a run, a study or an encoder has weights to load
@pytest.mark.parametrize("row", [row for row in folders.ROWS if row.base], ids=lambda row: row.name)
def test_malformed_folders_are_refused_in_one_clear_line(row, bases, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bases(row.base, tmp_path)
    check(row, tmp_path)
