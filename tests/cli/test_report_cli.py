"""`metasearch report`, on studies and runs as real ones leave them."""

import errno
import json
import os
import re

import pytest

from helpers.commands import metasearch
from helpers.studies import Made, write_study


def read(folder):
    """Return path → text of the files of a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    arms = {
        "zero-shot": 0.5,
        "maml-trans": Made(2.0, learner="maml"),
        "maml-mono-bi": Made(1.5, learner="maml", mode="mono-bi"),
        "fine-tune": 0.1,
    }
    return write_study(tmp_path_factory.mktemp("study") / "small", arms, questions=6)


@pytest.fixture(scope="module")
def report(study):
    folder = study.parent / "report"
    return folder, metasearch("report", study, "-o", folder)


@pytest.mark.slow
def test_it_prints_the_main_table_and_where_the_page_is(report):
    folder, result = report
    table, said = result.stdout.split("\n\nreport: ")
    assert said == f"{folder / 'report.html'}\n"
    written = (folder / "report.md").read_text()
    assert "\\" in written
    assert table.replace(" ", "") in written.replace("\\", "").replace(" ", "")
    assert "| maml      | trans   | **" in table


def test_every_table_is_written_in_each_format(report):
    files = read(report[0])
    keys = [table["key"] for table in json.loads(files["tables.json"])]
    named = ("main", "main-map", "dev", "pools", "comparison", "bias", "runs")
    assert {*named} <= set(keys)
    assert len([key for key in keys if key.startswith("matrix-")]) == 4
    made = {f"tables/{key}.{end}" for key in keys for end in ("tex", "csv")}
    assert set(files) == made | {"report.html", "report.md", "tables.json"}
    assert files["report.md"].count("\n## ") == 5


def test_the_page_has_its_sections_in_order_and_loads_nothing(report):
    page = (report[0] / "report.html").read_text(encoding="utf-8")
    found = re.findall(r'<h2 id="([^"]+)"', page)
    assert found == ["scores", "compared", "figures", "languages", "run-facts"]
    assert not re.search(r'(src|href)="(?!#)', page)


def test_the_same_study_gives_the_same_bytes_and_replaces_the_former_report(report, study, tmp_path):
    folder = tmp_path / "report"
    metasearch("report", study, "-o", folder)
    assert read(folder) == read(report[0])
    metasearch("report", study / "cells" / "maml-trans" / "fold-0-seed-0", "-o", folder)
    files = read(folder)
    assert "tables/comparison.csv" in files
    assert len(files) < len(read(report[0]))
    assert "tables/main.csv" in files


def test_a_folder_with_something_else_is_left_alone(study, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    said = metasearch("report", study, "-o", tmp_path, code=5).output
    assert f"{tmp_path} is not empty and holds no report; choose another folder with -o" in said
    assert read(tmp_path) == {"thesis.tex": "mine"}
    assert "is a file" in metasearch("report", study, "-o", tmp_path / "thesis.tex", code=5).output
    run = study / "cells" / "maml-trans" / "fold-0-seed-0"
    assert "holds no report" in metasearch("report", study, "-o", run, code=5).output


def test_a_full_disk_leaves_the_former_report_as_it_was(study, tmp_path, monkeypatch):
    folder, run = tmp_path / "report", study / "cells" / "maml-trans" / "fold-0-seed-0"
    metasearch("report", run, "-o", folder)
    before = read(folder)
    left, sync = [5], os.fsync

    def until_full(file):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(file)

    monkeypatch.setattr(os, "fsync", until_full)
    said = metasearch("report", study, "-o", folder, code=5).output
    assert re.search(rf"{folder}/tables/\S+ cannot be written: No space left on device", said)
    assert read(folder) == before


def test_a_report_that_was_killed_while_it_was_written_is_written_anew(study, tmp_path):
    folder, run = tmp_path / "report", study / "cells" / "maml-trans" / "fold-0-seed-0"
    (folder / "tables").mkdir(parents=True)
    (folder / "tables" / "gone.csv.new").write_text("Lear")
    metasearch("report", run, "-o", folder)
    assert not [name for name in read(folder) if name.endswith(".new")]
