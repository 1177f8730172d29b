"""Where a task's files are looked for, and what is said when they are not there."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings

from helpers.formats import task
from helpers.tags import NAMES, written
from metasearch.data.locate import VARIABLE, find_file, locate
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
    """Return the path of a task's declaration."""
    path = tmp_path / "tasks" / "small.yaml"
    path.parent.mkdir()
    return path


def fill(folder, names=EXPECTED):
    """Make a folder with these files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("text")
    return folder


def said(declared_in, data=None, of=TASK, expected=EXPECTED):
    """Return what is said when the files are not found."""
    with pytest.raises(DataError) as caught:
        locate(of, declared_in, expected, None if data is None else str(data))
    return str(caught.value)


@pytest.mark.parametrize("below", [".", "csv", "sets/csv", "sets/csv/v1"])
def test_data_names_the_folder_or_one_up_to_three_levels_above_it(tmp_path, declared_in, below):
    folder = fill(tmp_path / "data" / below)
    assert locate(TASK, declared_in, EXPECTED, str(tmp_path / "data")) == folder


def test_four_levels_below_is_too_deep(tmp_path, declared_in):
    fill(tmp_path / "data" / "a" / "b" / "c" / "d")
    assert "none of the files of task 'small' is there" in said(declared_in, tmp_path / "data")


def test_hidden_folders_are_passed_over(tmp_path, declared_in):
    fill(tmp_path / "data" / ".cache")
    assert "none of the files" in said(declared_in, tmp_path / "data")


def test_a_folder_that_holds_all_is_preferred_to_one_above_that_holds_some(tmp_path, declared_in):
    fill(tmp_path / "data", ["de.csv"])
    whole = fill(tmp_path / "data" / "whole")
    assert locate(TASK, declared_in, EXPECTED, str(tmp_path / "data")) == whole


def test_of_folders_that_hold_all_the_shallow_one_is_taken(tmp_path, declared_in):
    fill(tmp_path / "data" / "a" / "deep")
    shallow = fill(tmp_path / "data" / "b")
    assert locate(TASK, declared_in, EXPECTED, str(tmp_path / "data")) == shallow


def test_the_environment_names_the_folder_when_nothing_else_does(tmp_path, declared_in, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(fill(tmp_path / "here")))
    assert locate(TASK, declared_in, EXPECTED) == tmp_path / "here"


def test_data_beside_the_declaration_needs_no_other_word(declared_in):
    folder = fill(declared_in.parent / "texts")
    assert locate(BESIDE, declared_in, EXPECTED) == folder


def test_data_wins_over_beside_and_beside_over_the_environment(tmp_path, declared_in, monkeypatch):
    named, other = fill(tmp_path / "named"), fill(tmp_path / "other")
    beside = fill(declared_in.parent / "texts")
    monkeypatch.setenv(VARIABLE, str(other))
    assert locate(BESIDE, declared_in, EXPECTED, str(named)) == named
    assert locate(BESIDE, declared_in, EXPECTED) == beside
    assert locate(TASK, declared_in, EXPECTED) == other


def test_without_any_folder_the_two_ways_to_name_one_are_said(declared_in):
    assert said(declared_in).startswith("task 'small' needs data: pass --data DIR or set METASEARCH_DATA.")


@pytest.mark.parametrize("case", ["none named", "no such folder", "nothing there", "part of it there"])
def test_what_is_said_ends_with_where_to_get_the_data_its_licence_and_the_folder_expected(tmp_path, declared_in, case):
    folders = {
        "none named": None,
        "no such folder": tmp_path / "nowhere",
        "nothing there": fill(tmp_path / "empty", []),
        "part of it there": fill(tmp_path / "part", ["de.csv"]),
    }
    last = said(declared_in, folders[case]).splitlines()[-1]
    assert last == (
        "Get it from https://example.org/small (licence: CC0 1.0); expected is a folder with de.csv, el.csv"
    )


def test_many_expected_files_are_cut_to_three(declared_in):
    names = ["a", "b", "c", "d"]
    assert said(declared_in, expected=names).endswith("expected is a folder with a, b, c, ...")


def test_a_folder_that_does_not_exist_is_named_as_the_user_named_it(tmp_path, declared_in, monkeypatch):
    nowhere = tmp_path / "nowhere"
    assert said(declared_in, nowhere).startswith(f"--data {nowhere}: no such folder.")
    monkeypatch.setenv(VARIABLE, str(nowhere))
    assert said(declared_in).startswith(f"METASEARCH_DATA={nowhere}: no such folder.")
    assert said(declared_in, of=BESIDE).startswith(f"data: texts in {declared_in}: no such folder.")


def test_a_file_in_the_place_of_the_folder_is_no_folder(tmp_path, declared_in):
    path = fill(tmp_path) / "de.csv"
    assert said(declared_in, path).startswith(f"--data {path}: no such folder.")


def test_a_part_of_the_data_says_which_files_are_missing(tmp_path, declared_in):
    folder = fill(tmp_path / "data" / "texts", ["de.csv"])
    message = said(declared_in, tmp_path / "data", expected=("de.csv", "el.csv", "th.csv"))
    assert message.startswith(f"{folder}: missing el.csv, th.csv.")


@given(written(NAMES), written(NAMES))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_is_found_in_whatever_way_its_tags_are_written(tmp_path, declared_in, first, second):
    with TemporaryDirectory(dir=tmp_path) as name:
        names = [f"{first[0]}.csv", f"x-{second[0]}.csv.gz"]
        folder = fill(Path(name), [f"{first[1]}.csv", f"x-{second[1]}.csv.gz"])
        assert locate(TASK, declared_in, names, name) == folder
        assert [find_file(folder, each).name for each in names] == [f"{first[1]}.csv", f"x-{second[1]}.csv.gz"]


def test_the_file_of_exactly_the_name_comes_first_and_two_others_are_refused(tmp_path):
    fill(tmp_path, ["pt-br.csv", "pt_BR.csv"])
    with pytest.raises(DataError, match=r"pt-br\.csv and pt_BR\.csv both stand for pt-BR\.csv; remove one of them"):
        find_file(tmp_path, "pt-BR.csv")
    assert find_file(tmp_path, "pt_BR.csv").name == "pt_BR.csv"
    assert find_file(tmp_path, "de.csv") == tmp_path / "de.csv"
