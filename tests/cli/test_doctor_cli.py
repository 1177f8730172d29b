"""`metasearch doctor`: what is here and what is missing, and whether indexes are sound; nothing is changed."""

import json
import shutil

import pytest
import torch

from helpers.commands import metasearch
from metasearch.search.index.writer import IndexWriter
from metasearch.search.indexes import index_documents


def doctor(*args, code=0):
    """Return what it prints as JSON; check its exit code."""
    return json.loads(metasearch("doctor", "--json", *args, code=code).stdout)


def findings(tree, title):
    """Return about → finding of the section whose title begins so."""
    (section,) = [section for section in tree["sections"] if section["title"].startswith(title)]
    return {each["about"]: each for each in section["findings"]}


def files_of(folder):
    return {p.relative_to(folder): (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("METASEARCH_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doctor")
    (folder / "home.de.txt").write_text("Der Schlüssel liegt unter der Matte.", encoding="utf-8")
    index_documents([folder / "home.de.txt"], folder / "index", "tiny", device="cpu")
    return folder / "index"


def test_versions_machine_and_cache_are_listed_and_the_text_says_the_same(cache):
    tree = doctor()
    versions = findings(tree, "versions")
    assert {"python", "metasearch", "torch", "transformers", "sentence-transformers", "numpy"} <= set(versions)
    assert versions["torch"]["found"] == torch.__version__
    assert {"processor", "memory", "devices"} <= set(findings(tree, "machine"))
    assert findings(tree, "data")["cache"]["found"].startswith(f"{cache};")
    assert not cache.exists()
    lines = metasearch("doctor").stdout.splitlines()
    assert lines[-1] == "problems: none"
    for section in tree["sections"]:
        assert section["title"] in lines
        for each in section["findings"]:
            assert any(each["about"] in line and line[2:5].strip() in ("ok", "-") for line in lines)


def test_a_sound_index_is_named_for_what_it_is_and_is_not_changed(index):
    before = files_of(index)
    assert {"files", "search"} <= set(findings(doctor(index), f"{index}: an index"))
    assert files_of(index) == before


def test_an_index_that_is_not_finished_is_no_problem(tmp_path, monkeypatch):
    (tmp_path / "home.de.txt").write_text("Der Schlüssel liegt unter der Matte.", encoding="utf-8")
    monkeypatch.setattr(IndexWriter, "finish", lambda *_, **settings: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        index_documents([tmp_path / "home.de.txt"], tmp_path / "index", "tiny", device="cpu")
    found = findings(doctor(tmp_path / "index"), f"{tmp_path / 'index'}: an index")["files"]
    assert (found["state"], found["code"]) == ("note", 0)
    assert found["found"] == "not finished; run metasearch index with its documents again to continue"


def test_a_problem_is_one_line_with_its_code_and_the_text_ends_with_how_many_there_are(index, tmp_path):
    folder = shutil.copytree(index, tmp_path / "index")
    (folder / "index.sqlite").write_text("x" * 200)
    tree = doctor(folder, code=5)
    (bad,) = [each for part in tree["sections"] for each in part["findings"] if each["state"] == "bad"]
    assert (bad["about"], bad["code"]) == ("files", 5)
    found = findings(tree, str(folder))["files"]["found"]
    assert "index.sqlite: file is not a database" in found
    text = metasearch("doctor", folder, code=5)
    (line,) = [line for line in text.stdout.splitlines() if line.startswith("  bad")]
    assert found in line
    assert text.stdout.splitlines()[-1] == "problems: 1"


def test_a_folder_that_is_no_index_is_a_problem(index, tmp_path):
    near = index.with_name("indx")
    assert "does not exist. Did you mean 'index'?" in findings(doctor(near, code=5), str(near))["folder"]["found"]
    found = findings(doctor(tmp_path, code=5), str(tmp_path))["folder"]["found"]
    assert f"is no index; metasearch resume {tmp_path} checks a run" in found
