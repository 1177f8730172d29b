"""`metasearch doctor`: what is here and what is missing, and whether folders are sound; nothing is changed."""

import json
import shlex
import shutil

import pytest
import torch

from helpers.commands import metasearch
from helpers.configs import SHORT_RUN, nested, train_one_step
from helpers.crossval import FLAGS, TUNED, inline
from helpers.crossval import run as crossval
from metasearch.config.run import ScoreConfig
from metasearch.encoders.load import load_encoder
from metasearch.pipelines.score import ScoreRun
from metasearch.pipelines.train import TrainRun
from metasearch.search.index.writer import IndexWriter
from metasearch.search.indexes import index_documents


def doctor(*args, code=0):
    """Return what it prints as JSON; check its exit code."""
    return json.loads(metasearch("doctor", "--json", *args, code=code).stdout)


def findings(tree, title):
    """Return about → finding of the section whose title begins so."""
    (section,) = [section for section in tree["sections"] if section["title"].startswith(title)]
    return {each["about"]: each for each in section["findings"]}


def problems(tree):
    return [(each["about"], each["code"]) for s in tree["sections"] for each in s["findings"] if each["state"] == "bad"]


def files_of(folder):
    return {p.relative_to(folder): (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("METASEARCH_DATA", raising=False)
    return tmp_path / "cache"


class Crash(Exception):
    """Stands for a machine that stops."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A finished run, one that was stopped with a checkpoint, a score, an encoder and an index."""
    folder = tmp_path_factory.mktemp("doctor")
    TrainRun(SHORT_RUN, folder / "finished").execute()
    train_one_step(SHORT_RUN, folder / "stopped")
    (folder / "stopped").rename(folder / "a run")
    ScoreRun(nested(ScoreConfig, task="demo-sts", encoder="tiny"), folder / "score").execute()
    load_encoder("tiny").save(folder / "encoder")
    (folder / "home.de.txt").write_text("Der Schlüssel liegt unter der Matte.", encoding="utf-8")
    index_documents([folder / "home.de.txt"], folder / "index", "tiny", device="cpu")
    return folder


@pytest.fixture
def copied(place, tmp_path):
    return lambda name: shutil.copytree(place / name, tmp_path / name)


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


SOUND = {
    "finished": ("a training", {"config.yaml", "model", "files"}),
    "a run": ("a training", {"checkpoint", "files", "report.md"}),
    "score": ("scores of an encoder", {"files"}),
    "encoder": ("an encoder", {"weights"}),
    "index": ("an index", {"files"}),
}


@pytest.mark.slow
def test_a_sound_folder_is_named_for_what_it_is_and_is_not_changed(place):
    before = files_of(place)
    tree = doctor(*(place / name for name in SOUND))
    for name, (title, about) in SOUND.items():
        assert about <= set(findings(tree, f"{place / name}: {title}"))
    assert files_of(place) == before


def test_what_is_not_finished_says_how_to_go_on(place):
    found = findings(doctor(place / "a run"), f"{place / 'a run'}")
    assert found["checkpoint"]["found"] == "intact, of outer step 1"
    assert found["report.md"]["state"] == "note"
    command = found["report.md"]["found"].partition("continue with: ")[2]
    assert shlex.split(command) == ["metasearch", "resume", str(place / "a run")]


def test_an_index_that_is_not_finished_is_no_problem(tmp_path, monkeypatch):
    def stop(*_, **settings):
        raise Crash

    (tmp_path / "home.de.txt").write_text("Der Schlüssel liegt unter der Matte.", encoding="utf-8")
    monkeypatch.setattr(IndexWriter, "finish", stop)
    with pytest.raises(Crash):
        index_documents([tmp_path / "home.de.txt"], tmp_path / "index", "tiny", device="cpu")
    found = findings(doctor(tmp_path / "index"), f"{tmp_path / 'index'}: an index")["files"]
    assert (found["state"], found["code"]) == ("note", 0)
    assert found["found"] == "not finished; run metasearch index with its documents again to continue"


def spoil(name, content):
    def change(folder):
        path = folder / name
        if content is None:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        else:
            path.write_text(content(path.read_text()) if callable(content) else content)

    return change


def misspell(text):
    return text.replace("task:", "tsak:", 1)


DAMAGED = [
    ("finished", spoil("config.yaml", "a: b\n"), "config.yaml", 2, "missing key"),
    ("finished", spoil("config.yaml", misspell), "files", 5, "config.yaml: checks"),
    ("a run", spoil("config.yaml", misspell), "config.yaml", 2, "mean 'task'?"),
    ("finished", spoil("log.jsonl", lambda text: text + "{\n"), "files", 5, "log.jsonl: checksum mismatch"),
    ("finished", spoil("results.jsonl", None), "files", 5, "results.jsonl is missing, though the run is finished"),
    ("finished", spoil("model", None), "model", 5, "is missing, though the run is finished"),
    ("finished", spoil("model/config.json", "{"), "model", 6, "cannot be loaded"),
    ("finished", spoil("model/model.safetensors", None), "model", 6, "no weights"),
    ("finished", spoil("SHA256SUMS", "abc  log.jsonl\n"), "files", 5, "SHA256SUMS:1: expected a SHA-256"),
    ("a run", spoil("checkpoint/state.json", "{}"), "checkpoint", 5, "the checkpoint is damaged"),
    ("a run", spoil("results.jsonl", lambda text: text[:-20]), "files", 3, "not JSON"),
    ("encoder", spoil("model.safetensors", None), "weights", 6, "no weights"),
    ("index", spoil("index.sqlite", "x" * 200), "files", 5, "index.sqlite: file is not a database"),
]


@pytest.mark.parametrize(("name", "change", "about", "code", "says"), DAMAGED, ids=lambda v: str(v)[:24])
def test_a_problem_is_one_line_with_its_code(copied, name, change, about, code, says):
    folder = copied(name)
    change(folder)
    tree = doctor(folder, code=code)
    assert problems(tree) == [(about, code)]
    found = findings(tree, str(folder))[about]["found"]
    assert says in found
    assert "\n" not in found


def test_a_file_that_was_changed_on_purpose_is_no_problem_once_the_hashes_are_deleted(copied):
    folder = copied("finished")
    spoil("config.yaml", lambda text: f"# mine\n{text}")(folder)
    assert "or delete SHA256SUMS" in findings(doctor(folder, code=5), str(folder))["files"]["found"]
    (folder / "SHA256SUMS").unlink()
    found = findings(doctor(folder), str(folder))["SHA256SUMS"]
    assert found["state"] == "note"
    assert found["found"].startswith("missing")


def test_the_text_marks_a_problem_and_ends_with_how_many_there_are(copied):
    folder = copied("encoder")
    (folder / "model.safetensors").unlink()
    found = findings(doctor(folder, code=6), str(folder))["weights"]["found"]
    text = metasearch("doctor", folder, code=6)
    (line,) = [line for line in text.stdout.splitlines() if line.startswith("  bad")]
    assert found in line
    assert text.stdout.splitlines()[-1] == "problems: 1"


def test_a_folder_that_is_nothing_of_ours_is_a_problem(place, tmp_path):
    tree = doctor(place / "finshed", code=5)
    assert f"Did you mean '{place / 'finished'}'?" in findings(tree, str(place / "finshed"))["folder"]["found"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("x")
    found = findings(doctor(tmp_path / "other", code=5), str(tmp_path / "other"))["folder"]["found"]
    assert "is no run, study, encoder, index or prepared corpus; it holds notes.txt" in found


@pytest.mark.slow
def test_a_study_has_a_line_a_cell_and_every_problem_in_one(tmp_path, monkeypatch):
    inline(monkeypatch)
    study = tmp_path / "study"
    crossval(*FLAGS, "--max-steps=2", "-o", study)
    before = files_of(study)
    found = findings(doctor(study), f"{study}: a study")
    assert found["study.yaml"]["found"] == "readable"
    assert found["report.md"]["found"] == "finished, 2 runs"
    assert files_of(study) == before
    cell = study / "cells" / TUNED
    assert "model" not in findings(doctor(cell), f"{cell}: a training")
    # As another version wrote it, which `compare` reads, too.
    spoil("study.yaml", lambda text: f"place_of_another_version: x\n{text}")(study)
    found = findings(doctor(study), f"{study}: a study")["study.yaml"]
    assert found["state"] == "note"
    assert found["found"].startswith("skipped, since all is finished")
    assert "place_of_another_version: unknown key" in found["found"]
    spoil("results.jsonl", None)(cell)
    assert problems(doctor(study, code=5)) == [(f"cells/{TUNED}/files", 5)]
    shutil.rmtree(cell)
    assert problems(doctor(study, code=2)) == [("study.yaml", 2)]
    spoil("study.yaml", lambda text: text.partition("\n")[2])(study)
    found = findings(doctor(study), f"{study}: a study")
    assert f"1 of 2 runs unfinished; continue with: metasearch resume {study}" in found["report.md"]["found"]
    spoil("study.yaml", lambda text: text.replace("cells:", "cels:"))(study)
    found = findings(doctor(study, code=2), f"{study}: unreadable configuration")["study.yaml"]
    assert "unknown key. Did you mean 'cells'?" in found["found"]
