"""The versions that a score is stamped with: torch's own, builds included, and which of them may stand together."""

import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace

import pytest

from metasearch.runs.versions import differing, versions

BEFORE = {"metasearch": "0.1.0", "python": "3.11.7", "torch": "2.13.0"}


def test_torch_says_its_own_version_where_it_is_loaded(monkeypatch):
    """Package metadata may leave out the build of a CUDA version."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="9.8.7+cu130"))
    assert versions()["torch"] == "9.8.7+cu130"


def test_where_torch_is_not_loaded_its_package_says_the_version_and_it_stays_unloaded():
    code = "import sys; from metasearch.runs import versions as v; print(v.versions()['torch'], 'torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == f"{version('torch')} False\n"


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({}, None),
        ({"torch": "2.13.0+cu130"}, None),
        ({"torch": "2.13.1+cu130"}, "torch"),
        ({"metasearch": "0.2.0"}, "metasearch"),
        ({"numpy": "2.4.6"}, "numpy"),
    ],
)
def test_a_build_that_one_of_two_does_not_name_is_no_difference(change, name):
    now = {**BEFORE, **change}
    assert differing(BEFORE, now) == differing(now, BEFORE) == name


def test_two_builds_that_are_named_differ():
    assert differing({"torch": "2.13.0+cu130"}, {"torch": "2.13.0+cpu"}) == "torch"
