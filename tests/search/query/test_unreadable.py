"""One bad document does not stop an index, and none leaves it because it cannot be read for a while."""

from functools import cache
from pathlib import Path

import pytest

from helpers.files import write_all
from metasearch.encoders.builtin import tiny
from metasearch.errors import DataError
from metasearch.search.index.local import LocalStore
from metasearch.search.query.update import update
from metasearch.search.settings import IndexSettings

DE = '{"text": "Der Schlüssel liegt unter der Matte."}\n'
EN = '{"text": "The key is under the mat."}\n{"text": "The bus leaves at noon."}\n'


@cache
def encoder():
    return tiny.build(seed=0)


@pytest.fixture
def docs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_all(tmp_path / "docs", {"a.de.jsonl": DE, "old/b.en.jsonl": EN})


def index(*paths, **how):
    return update(Path("one"), paths or ["docs"], encoder(), IndexSettings(), **how)


def texts(tmp_path):
    found = LocalStore.open(tmp_path / "one")
    ((rows, _),) = found.search(encoder().encode(["key"], "question"), top_k=100)
    return sorted((passage.file, passage.text) for passage, _ in found.passages(rows[0]))


BAD = {
    "not UTF-8": lambda path: path.write_bytes(b"caf\xe9"),
    "a NUL": lambda path: path.write_bytes(b'{"text": "a\0"}\n'),
    "no text": lambda path: path.write_text('{"name": "Rex"}\n'),
    "a broken link": lambda path: (path.unlink(), path.symlink_to("nothing")),
    "a link to itself": lambda path: (path.unlink(), path.symlink_to(path.name)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["not UTF-8", "a broken link"])
def test_a_document_that_cannot_be_read_stays_as_it_was_indexed_until_it_can(kind, docs, tmp_path, caplog):
    index()
    before = texts(tmp_path)
    BAD[kind](docs / "a.de.jsonl")
    (docs / "new.txt").write_text("New.", encoding="utf-8")
    for _ in range(2):
        caplog.clear()
        done = index()
        assert (done.documents, done.kept, done.skipped, done.dropped, done.changed) == (3, 1, 0, 0, 0)
        (said,) = [message for message in caplog.messages if message.startswith("kept")]
        assert said.startswith("kept as indexed before, 1 documents: docs/a.de.jsonl")
    assert texts(tmp_path) == sorted([*before, ("new.txt", "New.")])
    (docs / "a.de.jsonl").unlink()
    (docs / "a.de.jsonl").write_text(DE, encoding="utf-8")
    done = index()
    assert (done.documents, done.kept, done.encoded) == (3, 0, 0)
    (docs / "a.de.jsonl").unlink()
    assert index().dropped == 1


def test_new_documents_of_a_folder_that_cannot_be_read_are_skipped_and_the_others_are_indexed(docs, tmp_path, caplog):
    for kind, damage in BAD.items():
        path = docs / f"{kind}.jsonl"
        path.touch()
        damage(path)
    done = index()
    assert (done.documents, done.skipped, done.kept) == (2, len(BAD), 0)
    for kind in BAD:
        assert [message for message in caplog.messages if message.startswith(f"skipped: docs/{kind}.jsonl")]
    assert {file for file, _ in texts(tmp_path)} == {"a.de.jsonl", "old/b.en.jsonl"}


def test_documents_that_are_named_and_cannot_be_read_are_an_error_that_names_all_and_changes_nothing(docs, tmp_path):
    index()
    before = texts(tmp_path)
    (docs / "pets.csv").write_text("name\nRex\n", encoding="utf-8")
    (docs / "cafe.txt").write_bytes(b"caf\xe9")
    with pytest.raises(DataError) as caught:
        index("docs/pets.csv", "docs/cafe.txt", "docs")
    assert str(caught.value).splitlines() == [
        "docs/pets.csv:1: no column 'text'. Known: name. Name yours: --column COLUMN",
        "docs/cafe.txt:1: not UTF-8: byte 0xe9, perhaps CP1252; convert the file: iconv -f CP1252 -t UTF-8",
    ]
    assert texts(tmp_path) == before
    assert index().skipped == 2


MATTER = "---\ntitle: Keys: where\n---\nUnder the mat.\n"


def test_a_folder_that_cannot_be_read_keeps_its_documents(docs, tmp_path, caplog):
    (docs / "old" / "c.txt").write_text("Old.", encoding="utf-8")
    index()
    before = texts(tmp_path)
    (docs / "old").rename(tmp_path / "elsewhere")
    (docs / "old").symlink_to("old")
    for drop in (False, True):
        done = index(drop=drop)
        assert (done.documents, done.kept, done.dropped) == (3, 2, 0)
        assert texts(tmp_path) == before
    assert "kept as indexed before, 2 documents: docs/old: cannot be read: Too many levels" in caplog.text
    (docs / "old").unlink()
    assert index().dropped == 2


@pytest.mark.slow
def test_strict_names_all_that_cannot_be_read_also_in_documents_that_did_not_change(docs, tmp_path, caplog):
    (docs / "c.md").write_text(MATTER, encoding="utf-8")
    (docs / "d.jsonl").write_text(f'{EN}half\n{{"text": "a", "language": "german"}}\n', encoding="utf-8")
    (docs / "e.csv").write_text("name\nRex\n", encoding="utf-8")
    (docs / "f.txt").symlink_to("nothing")
    expected = [
        "docs/c.md:2: not YAML: ",
        "docs/d.jsonl:3: not JSON: ",
        "docs/d.jsonl:4: language: 'german' is not a language tag",
        "docs/e.csv:1: no column 'text'",
        "docs/f.txt: cannot be read: No such file",
    ]
    for _ in range(2):
        with pytest.raises(DataError) as caught:
            index(strict=True)
        lines = str(caught.value).splitlines()
        assert [line[: len(start)] for line, start in zip(lines, expected, strict=True)] == expected
        # The first time there is no index yet; the second time all of these documents are in it as they are.
        caplog.clear()
        done = index()
        assert (done.documents, done.skipped) == (4, 2)
    assert ("c.md", "Keys: where\nUnder the mat.") in texts(tmp_path)
    for name in ("c.md", "d.jsonl", "e.csv", "f.txt"):
        (docs / name).unlink()
    assert index(strict=True).documents == 2


@pytest.mark.slow
def test_nothing_of_a_document_counts_before_all_of_it_is_read(docs, monkeypatch):
    monkeypatch.setattr("metasearch.search.documents.readers.text._SIZE", 99)
    (docs / "long.txt").write_bytes(b"A sentence that is long enough.\n" * 9 + b"\xff")
    done = index()
    assert (done.documents, done.passages, done.languages) == (2, 3, {"en": 2, "de": 1})
