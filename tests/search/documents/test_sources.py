"""Which files of those that are named are documents, in which order, and what is said of the others."""

import logging
import os
from pathlib import Path

import pytest

from benchmarks.common.documents import read
from helpers.files import write_all
from metasearch.errors import DataError
from metasearch.search.documents.read import sources


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path("docs")


def put(folder, *names):
    write_all(folder, dict.fromkeys(names, "text"))


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_folder_gives_its_documents_at_any_depth_by_name(folder):
    put(folder, "b.txt", "a/z.md", "a/b/c.html", "a.csv", "B.jsonl", "c.TSV", "d.txt.gz", "e.markdown", "f.htm")
    expected = ["B.jsonl", "a/b/c.html", "a/z.md", "a.csv", "b.txt", "c.TSV", "d.txt.gz", "e.markdown", "f.htm"]
    assert [source.file for source in sources([folder])] == [f"docs/{name}" for name in expected]


def test_a_document_that_is_reached_twice_is_taken_once(folder):
    put(folder, "a.txt")
    assert len(sources([folder, "docs/a.txt", "./docs"])) == 1


def test_what_is_left_out_of_a_folder_is_counted_in_one_line(folder, caplog):
    put(folder, "a.txt", ".hidden.txt", ".git/b.txt", "x.png", "y.PNG", "z.doc", "LICENSE")
    assert [source.file for source in sources([folder])] == ["docs/a.txt"]
    expected = "1 .doc, 2 .png, 2 hidden, 1 no suffix"
    assert warnings(caplog) == [f"skipped, no document format: {expected}"]


def test_a_document_in_a_compression_that_is_not_read_is_named(folder, caplog):
    put(folder, "a.txt", "c.txt.zst")
    assert {passage.file for passage in read([folder])} == {"docs/a.txt"}
    expected = "docs/c.txt.zst: .zst files cannot be read; decompress it, or compress it with gzip"
    assert warnings(caplog) == [f"document skipped: {expected}"]


def test_an_empty_file_and_a_named_pipe_are_named_and_left_out(folder, caplog):
    put(folder, "a.txt")
    (folder / "b.txt").touch()
    os.mkfifo(folder / "c.txt")
    assert len(sources([folder])) == 1
    assert warnings(caplog) == [
        "docs/b.txt: skipped: the file is empty",
        "docs/c.txt: skipped: it is a named pipe, not a file",
    ]


def test_a_link_that_leads_round_in_a_circle_is_named(folder, caplog):
    put(folder, "a/b.txt")
    (folder / "a" / "again").symlink_to(folder.resolve())
    assert [source.file for source in sources([folder])] == ["docs/a/b.txt"]
    assert warnings(caplog) == ["docs/a/again: skipped: a symbolic link to a parent folder"]


def unreadable(*paths):
    """Return what cannot be read below the paths, and the names of the documents that can."""
    found = {}
    return found, [source.file for source in sources(paths, unreadable=found)]


def test_what_cannot_be_read_in_a_folder_is_named_and_the_rest_is_taken(folder, caplog):
    put(folder, "a.txt", "z.txt")
    (folder / "broken.txt").symlink_to("nothing")
    (folder / "loop").symlink_to("loop")
    messages = {
        "docs/broken.txt": "docs/broken.txt: cannot be read: No such file or directory",
        "docs/loop": "docs/loop: cannot be read: Too many levels of symbolic links",
    }
    assert unreadable(folder) == (messages, ["docs/a.txt", "docs/z.txt"])
    assert caplog.messages == []
    sources([folder])
    assert caplog.messages == [f"skipped: {message}" for message in messages.values()]


def test_a_folder_of_nothing_that_can_be_read_is_an_error_that_names_all(folder):
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).symlink_to("nothing")
    with pytest.raises(
        DataError, match=r"^docs/a\.txt: cannot be read.*\ndocs/b\.txt: cannot be.*\ndocs: no documents"
    ):
        sources([folder])


def test_languages_that_names_tell_are_listed(folder, caplog):
    put(folder, "a.de.txt", "de/b.txt", "git_rm.txt", "how_to.txt")
    with caplog.at_level(logging.INFO):
        found = {source.file: source.language for source in sources([folder])}
    assert found == {"docs/a.de.txt": "de", "docs/de/b.txt": "de", "docs/git_rm.txt": "rm", "docs/how_to.txt": ""}
    assert "languages from file names: de 2 (docs/a.de.txt), rm 1 (docs/git_rm.txt)" in caplog.text


def test_the_folder_that_is_named_tells_a_language_and_those_above_it_do_not(tmp_path, monkeypatch):
    put(tmp_path / "is" / "de", "a.txt", "b/c.txt")
    monkeypatch.chdir(tmp_path / "is" / "de")
    for named in (tmp_path / "is" / "de", Path(), tmp_path / "is/de/a.txt", Path("../de")):
        assert {source.language for source in sources([named])} == {"de"}
    assert {source.language for source in sources([tmp_path / "is/de/b"])} == {""}
