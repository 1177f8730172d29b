"""`metasearch compare`: formats, notes and wrong input."""

import json

import pytest

from helpers.commands import metasearch
from helpers.studies import write_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_study(tmp_path_factory.mktemp("cli") / "study", {"zero-shot": 0.5, "maml": 1.5, "fine-tune": 0.2})


def shown(*args):
    """Return what the command prints on stdout."""
    return metasearch("compare", *args).stdout


def test_the_table_has_a_line_for_each_learner_and_each_of_its_languages(folder):
    lines = [line.split("|")[1:-1] for line in shown(folder).splitlines() if line.startswith("|")]
    first = [[cell.strip() for cell in line] for line in lines]
    assert first[0][:6] == ["learner", "map@20", "zero-shot", "difference", "95% from", "to"]
    assert first[0][6:8] == ["fixed models from", "fixed models to"]
    assert [line[0] for line in first[2:4]] == ["maml", "fine-tune"]
    assert [line[:2] for line in first[6:]] == [[a, b] for a in ("maml", "fine-tune") for b in ("ar", "de", "el")]


def test_json_has_everything_in_full_precision(folder):
    found = json.loads(shown(folder, "--json"))
    maml = found["arms"][0]
    assert maml["difference"] == maml["value"]["mean"] - maml["baseline"]["mean"]
    assert maml["interval"]["low"] < maml["difference"] < maml["interval"]["high"]
    assert sorted(maml["languages"]) == ["ar", "de", "el"]
    assert found["baseline"]["label"] == maml["against"]["label"] == "zero-shot"
