"""Where a task's files are looked for, and what is said when they are not there."""

import pytest

from helpers.formats import task
from metasearch.data.locate import VARIABLE, locate
from metasearch.errors import DataError

EXPECTED = ("de.csv", "el.csv")
TASK = task("csv", "de el")
BESIDE = task("csv", "de el", data="texts")


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    """Take `METASEARCH_DATA` out of the environment, whatever it is where the tests run."""
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def declared_in(tmp_path):
    path = tmp_path / "tasks" / "small.yaml"
    path.parent.mkdir()
    return path


def fill(folder, names=EXPECTED):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("text")
    return folder


def said(declared_in, data=None, of=TASK, expected=EXPECTED):
    with pytest.raises(DataError) as caught:
        locate(of, declared_in, expected, None if data is None else str(data))
    return str(caught.value)


@pytest.mark.parametrize("below", [".", "csv", "sets/csv", "sets/csv/v1"])
def test_data_names_the_folder_or_one_up_to_three_levels_above_it(tmp_path, declared_in, below):
    folder = fill(tmp_path / "data" / below)
    assert locate(TASK, declared_in, EXPECTED, str(tmp_path / "data")) == folder


def test_a_folder_that_holds_all_is_preferred_to_one_above_that_holds_some(tmp_path, declared_in):
    fill(tmp_path / "data", ["de.csv"])
    whole = fill(tmp_path / "data" / "whole")
    assert locate(TASK, declared_in, EXPECTED, str(tmp_path / "data")) == whole


def test_data_wins_over_beside_and_beside_over_the_environment(tmp_path, declared_in, monkeypatch):
    named, other = fill(tmp_path / "named"), fill(tmp_path / "other")
    beside = fill(declared_in.parent / "texts")
    monkeypatch.setenv(VARIABLE, str(other))
    assert locate(BESIDE, declared_in, EXPECTED, str(named)) == named
    assert locate(BESIDE, declared_in, EXPECTED) == beside
    assert locate(TASK, declared_in, EXPECTED) == other


def test_a_part_of_the_data_says_which_files_are_missing(tmp_path, declared_in):
    folder = fill(tmp_path / "data" / "texts", ["de.csv"])
    message = said(declared_in, tmp_path / "data", expected=("de.csv", "el.csv", "th.csv"))
    assert message.startswith(f"{folder}: missing el.csv, th.csv.")


def test_a_name_that_is_written_otherwise_is_a_hint(tmp_path, declared_in):
    fill(tmp_path, ["de.csv", "pt_br.csv"])
    message = said(declared_in, tmp_path, expected=("de.csv", "pt-BR.csv"))
    assert message.startswith(f"{tmp_path}: missing pt-BR.csv. Did you mean 'pt_br.csv'?\n")
    message = said(declared_in, tmp_path, expected=("pt-BR.csv",))
    assert message.startswith(f"--data {tmp_path}: no files of task '{TASK.name}'. Did you mean 'pt_br.csv'?\n")
