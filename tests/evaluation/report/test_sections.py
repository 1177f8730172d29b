"""A section of a report is one file: its place, and a function that makes it."""

import json
from types import SimpleNamespace

import pytest

from helpers.studies import write_study
from metasearch.config import registry
from metasearch.evaluation.report.build import build, files
from metasearch.evaluation.report.section import Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.study.read import read_study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return read_study([write_study(tmp_path_factory.mktemp("sections") / "study", folds=(0,), questions=4)])


def test_each_section_has_the_name_of_its_file_and_a_place_of_its_own(study):
    modules = {name: registry.load("sections", name) for name in registry.names("sections")}
    assert len({module.ORDER for module in modules.values()}) == len(modules) >= 5
    keys = [section.key for section in build(study).sections]
    assert keys == sorted(keys, key=lambda key: modules[key].ORDER)


def test_a_new_section_stands_in_the_page_in_markdown_and_among_the_tables(study, monkeypatch):
    def section(inputs):
        lines = [Line((arm.label,), (Cell(text=str(len(inputs.study.of(arm)))),)) for arm in inputs.study.arms]
        return Section(
            "counts", "How many", tables=(Table("runs-counted", "Runs", ("Learner",), ("n",), tuple(lines)),)
        )

    names, load = registry.names("sections"), registry.load
    monkeypatch.setattr(registry, "names", lambda kind: [*names, "counts"])
    module = SimpleNamespace(ORDER=15, section=section)
    monkeypatch.setattr(registry, "load", lambda kind, name: module if name == "counts" else load(kind, name))
    report = build(study)
    assert [each.key for each in report.sections][:3] == ["scores", "counts", "compared"]
    texts = files(report)
    assert '<h2 id="counts"' in texts["report.html"]
    assert "\n## How many\n" in texts["report.md"]
    assert "| maml      |   1 |" in texts["report.md"]
    assert "runs-counted" in [table["key"] for table in json.loads(texts["tables.json"])]
    assert {f"tables/runs-counted.{end}" for end in ("tex", "csv")} <= set(texts)
