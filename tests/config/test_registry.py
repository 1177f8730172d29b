"""Plug-ins are found by the names of their files, and in families by the names that these define."""

import subprocess
import sys

import pytest

from metasearch.config import registry
from metasearch.errors import ConfigError, nearest


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_plug_in_says_what_it_is_in_one_line(kind):
    for name in registry.names(kind):
        assert len(registry.summary(kind, name)) > 10


@pytest.mark.parametrize("name", ["base", "_rows", "__init__", "../library", ""])
def test_what_is_no_plug_in_is_not_loaded(name):
    with pytest.raises(ConfigError, match=f"^unknown reader '{name}'"):
        registry.load("readers", name)


@pytest.mark.parametrize("line", ["LEARNER = A", "LEARNER=A", "LEARNER: type[A] = A", "LEARNER  =  A"])
def test_a_definition_may_be_written_in_any_way(tmp_path, monkeypatch, line):
    monkeypatch.setattr(registry, "_PACKAGE", tmp_path)
    monkeypatch.setattr(registry, "_shipped", registry._shipped.__wrapped__)
    (tmp_path / "algorithms").mkdir()
    for name, text in {"my_own": line, "other": f"if LEARNER == 1:\n    {line}\nLEARNERS = 1"}.items():
        (tmp_path / "algorithms" / f"{name}.py").write_text(f'"""A learner."""\n{text}\n', encoding="utf-8")
    assert registry.names("learners") == ["my-own"]
    assert registry.summary("learners", "my-own") == "A learner."
    with pytest.raises(ConfigError, match=r"unknown learner 'other': .*other\.py does not define `LEARNER`"):
        registry.require("learners", "other")


def test_listing_and_summaries_import_no_plug_in():
    code = (
        "import sys; from metasearch.config import registry\n"
        "for kind in registry.KINDS: [registry.summary(kind, name) for name in registry.names(kind)]\n"
        "print([name for name in sys.modules if name.startswith(('metasearch.', 'torch'))])\n"
    )
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert (
        imported == "['metasearch.version', 'metasearch.config', 'metasearch.errors', 'metasearch.config.registry']\n"
    )


@pytest.mark.parametrize(
    ("name", "choices", "hint"),
    [
        ("mamll", ["maml", "reptile"], " Did you mean 'maml'? Known: maml, reptile."),
        ("zh", ["he", "zh-Hans"], " Did you mean 'zh-Hans'? Known: he, zh-Hans."),
        ("zzz", ["reptile", "maml"], " Known: maml, reptile."),
        ("maml", [], " Known: none."),
    ],
)
def test_the_nearest_name_is_named_and_all_of_them(name, choices, hint):
    assert nearest(name, choices) == hint
