"""Packages that are optional: who needs one gets the line that installs it, and nothing else fails without it."""

import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from metasearch.config.extras import DISTRIBUTION, import_extra, install_line
from metasearch.config.run import E5_PACKAGE
from metasearch.config.study import LauncherConfig
from metasearch.data.formats.rows import read_rows
from metasearch.errors import ConfigError, DataError
from metasearch.pipelines.study.launchers import open_launcher
from metasearch.search.index import exact_search

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def hide(monkeypatch):
    def hidden(*names):
        for name in [name for name in sys.modules if name.split(".")[0] in names or name in names]:
            monkeypatch.delitem(sys.modules, name)
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return hidden


def test_the_message_names_purpose_package_and_line(hide):
    hide("uvicorn")
    line = " ".join(map(repr, sorted(PROJECT["optional-dependencies"]["serve"])))
    with pytest.raises(ConfigError) as error:
        import_extra("uvicorn", "serve", "metasearch serve")
    says, _, packages = str(error.value).partition("pip install ")
    assert says == "metasearch serve needs the package uvicorn: "
    assert sorted(packages.split()) == line.split()


def test_a_checkout_that_is_not_installed_installs_its_extra(monkeypatch):
    monkeypatch.setattr("metasearch.config.extras.DISTRIBUTION", "no-such-distribution")
    assert install_line("serve") == "pip install '.[serve]'"


def test_a_missing_module_of_metasearch_is_no_missing_package():
    with pytest.raises(ModuleNotFoundError, match=r"metasearch\.nothing"):
        import_extra("metasearch.nothing", "serve", "metasearch serve")


@pytest.mark.parametrize(
    ("package", "extra", "use", "error"),
    [
        ("pyarrow", "corpora", lambda: list(read_rows("a.parquet")), DataError),
        ("ray", "ray", lambda: open_launcher(None, SimpleNamespace(place=LauncherConfig("ray"))), ConfigError),
    ],
)
def test_what_needs_an_extra_says_so(package, extra, use, error, hide, monkeypatch):
    hide(package)
    monkeypatch.delitem(sys.modules, "metasearch.pipelines.study.launchers.ray_jobs", raising=False)
    with pytest.raises(error, match=f"needs the package {package}: {re.escape(install_line(extra))}$"):
        use()


def test_every_extra_that_the_code_names_is_declared():
    named = set()
    for path in (ROOT / "metasearch").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        named |= set(re.findall(r"(?:install_line|package_folder)\(['\"]([\w-]+)['\"][,)]", text))
        named |= set(re.findall(r"import_extra\([^,]+, \"([\w-]+)\"", text))
    assert {"serve", "corpora", "onnx", "minilm"} <= named
    assert named <= set(PROJECT["optional-dependencies"])


def test_nothing_says_to_install_another_project():
    """`metasearch` on PyPI is not this project."""
    assert PROJECT["name"] == DISTRIBUTION
    files = [*(ROOT / "metasearch").rglob("*.py"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]
    wrong = re.compile(r"\b(install|add)\b[^\n`]*[ '\"]metasearch['\"\[\s=]")
    assert wrong.search("pip install 'metasearch[serve]'")
    assert not wrong.search(install_line("serve"))
    assert [str(path) for path in files if wrong.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("dimensions", [1, 384, 1024, 1025, 5000])
def test_products_are_the_same_integers_without_numkong(dimensions, monkeypatch):
    """Extreme codes: float32 holds integers up to 2²⁴ = 2¹⁰ · 2¹⁴, one more product needs float64."""
    pytest.importorskip("numkong")
    rng = np.random.default_rng(dimensions)
    codes = np.where(rng.random((7, dimensions)) < 0.5, -127, 127).astype(np.int8)
    codes[0], codes[1] = 127, rng.integers(-127, 128, dimensions)
    halves = np.where(rng.random((4, dimensions)) < 0.9, 127, -128).astype(np.int8)
    expected = codes.astype(np.int64) @ halves.T.astype(np.int64)
    assert (exact_search.integer_products(halves)(codes) == expected).all()
    monkeypatch.setattr(exact_search, "find_spec", lambda name: None)
    alone = exact_search.integer_products(halves)(codes)
    assert alone.dtype == np.int32
    assert (alone == expected).all()


def test_the_base_install_is_what_the_code_imports_everywhere():
    """A required package is imported by the package, and every required package is one of a list that is kept short."""
    names = {re.split(r"[><=\[ ]", text)[0] for text in PROJECT["dependencies"]} - {E5_PACKAGE}  # which is data
    modules = {"sentence-transformers": "sentence_transformers", "semantic-text-splitter": "semantic_text_splitter"}
    modules["markdown-it-py"] = "markdown_it"
    modules |= {"PyYAML": "yaml"}
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "metasearch").rglob("*.py"))
    for name in names:
        assert re.search(rf"^\s*(import|from) {modules.get(name, name)}\b", source, re.M), name
