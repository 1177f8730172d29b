"""The notebook runs from its first cell to its last, and finds the key in two languages."""

import json
import re

import pytest

from helpers.documents import ROOT

NOTEBOOK = json.loads((ROOT / "docs" / "first-search.ipynb").read_text(encoding="utf-8"))
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_is_kept_without_outputs():
    assert all(cell["outputs"] == [] for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code")


@pytest.mark.slow
def test_the_notebook_finds_the_answers_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for cell in CODE:
        exec(compile(cell, "first-search.ipynb", "exec"), names)
    first, second, third = re.findall(r"^\d\.\d\d (\w\w) ", capsys.readouterr().out, re.M)
    assert ({first, second}, third) == ({"de", "th"}, "el")
