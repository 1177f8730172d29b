"""`metasearch prepare` as a user runs it."""

import json

import pytest

from helpers.commands import metasearch
from helpers.prepared import write_lines


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_lines(tmp_path / "files", 20)


def test_prepare_tells_what_it_kept_and_what_comes_next(files):
    said = metasearch("prepare", "files", "-o", "my corpus", "--max-chars=60").stdout.splitlines()
    report = json.loads((files.parent / "my corpus" / "report.json").read_text())
    long = report["dropped"]["over 60 characters"]
    # Of each file 20 lines, 5 of them again, and one without a tab; what is too long is not compared.
    assert said[0] == "lines read: 52"
    assert sorted(said[1].removeprefix("dropped: ").split(", ")) == sorted(
        f"{count} {reason}" for reason, count in report["dropped"].items()
    )
    assert report["pairs kept"] + sum(report["dropped"].values()) == 52
    assert said[2] == f"pairs: {52 - long - 2 - report['dropped']['duplicate']}"
    assert said[-2:] == ["report: my corpus/report.json", "train: metasearch distill --corpus 'my corpus'"]
    told = json.loads(metasearch("prepare", "files", "-o", "again", "--max-chars=60", "--json").stdout)
    assert told == {"corpus": "again", **{key: report[key] for key in told if key != "corpus"}}


def error(*args, code):
    (line,) = [line for line in metasearch(*args, code=code).stderr.splitlines() if "error:" in line]
    return line.partition("error: ")[2]


def test_wrong_words_are_one_line(files):
    assert "Missing option '-o'" in error("prepare", "files", code=2)
    assert "no parallel text of language 'it'" in error("prepare", "files", "-o", "x", "--languages=it", code=3)
    assert "no such file or folder" in error("prepare", "file", "-o", "x", code=3)
    assert "neither side is 'pt', the pivot language" in error("prepare", "files", "-o", "x", "--pivot=pt", code=3)
    assert "--exclude demos: neither a file nor a task. Did you mean 'demo'" in error(
        "prepare", "files", "-o", "x", "--exclude=demos", code=2
    )
    for name in ("a", "b"):
        (files.parent / name).mkdir()
        (files.parent / name / "test.txt").write_text("one\n")
    assert "--exclude: duplicate name 'test.txt'" in error(
        "prepare", "files", "-o", "x", "--exclude=a/test.txt", "--exclude=b/test.txt", code=2
    )
    for flag in ("--languages", "--corpora", "--detect"):
        for written in (",", "de,,fr", " "):
            said = error("prepare", "files", "-o", "x", f"{flag}={written}", code=2)
            assert "expected names separated by commas" in said
    assert not (files.parent / "x").exists()
