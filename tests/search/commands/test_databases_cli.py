"""`metasearch index --to`, and a search of the copy, in a server of PostgreSQL."""

import json

import pytest

from helpers.commands import metasearch
from helpers.files import write_all
from metasearch.search import indexes
from metasearch.search.inference.open import load_reader

TEXTS = {
    "key.en.md": "# Keys\n\nThe key is under the mat.",
    "parcel.en.md": "# Parcels\n\nA parcel comes on Monday.",
    "key.de.md": "# Schlüssel\n\nDer Schlüssel liegt unter der Matte.",
    "parcel.de.md": "# Pakete\n\nEin Paket kommt am Montag.",
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder with four documents; no password is ever shown."""
    write_all(tmp_path / "help", TEXTS)
    monkeypatch.chdir(tmp_path)

    def output(*arguments, code=0):
        said = metasearch(*arguments, code=code).output
        assert "s3cret" not in said
        return said

    return output


def hits(output):
    return [(hit["file"], hit["text"], hit["heading"]) for hit in json.loads(output.splitlines()[-1])["hits"]]


@pytest.mark.slow
def test_a_copy_is_searched_as_its_folder_is(run, tmp_path, monkeypatch, postgres):
    with postgres.connect() as connection:
        connection.execute("CREATE EXTENSION vector")
    shown = postgres.address("order", "guarded")  # a reserved word of SQL
    address = shown.replace("guarded@", "guarded:s3cret@")
    index = ["index", "help", "-o", "help.index", "--encoder", "tiny", "--to", address]
    loads, load = [], load_reader
    monkeypatch.setattr(indexes, "load_reader", lambda name, *args: loads.append(name) or load(name, *args))
    said = run(*index)
    assert "copied: 4 passages sent, 0 deleted" in said
    assert f'search: metasearch search {shown} "..."' in said
    assert loads == ["tiny"]
    conditions = [["--where", "title=Keys"], ["--where", "path!=key.de.md"]]
    for options in ([], ["--balance"], ["--hybrid"], ["--language", "de"], ["--by", "passage"], *conditions):
        asked = ["Where is the key?", "--json", "--top-k", "3", *options]
        assert hits(run("search", address, *asked)) == hits(run("search", "help.index", *asked)), options
    (tmp_path / "help" / "key.de.md").unlink()
    copied = json.loads(run(*index, "--json").splitlines()[-1])["copied"]
    assert copied == {"passages": 3, "sent": 0, "deleted": 1}
    refused = run(*index, "--expand", code=2)
    assert f"--to {shown}: copies in databases have no --expand; add --no-expand" in refused


def test_what_is_wrong_is_said_before_anything_is_indexed(run, tmp_path):
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    assert "expected an address such as postgresql://" in run("index", "help", "-o", "i", "--to", "localhost", code=2)
    assert "Did you mean 'postgres'?" in run("index", "help", "-o", "i", "--to", "postgrez://localhost/s/h", code=2)
    closed = "postgresql://127.0.0.1:1/shop/help"
    for words in (("index", "help", "-o", "i", "--to", closed), ("search", closed, "key")):
        assert f"{closed}: connection failed" in run(*words, code=5)
    assert not (tmp_path / "i").exists()


@pytest.mark.parametrize("start", ["qdrant://", "qdrants://"])
def test_an_address_in_qdrant_is_one_line_that_names_what_to_use(run, tmp_path, start):
    address = f"{start}ada:s3cret@localhost:6333/help"
    instead = "use PostgreSQL (docs/postgresql.md), or a store of your own (CONTRIBUTING.md#a-store)"
    for words in (
        ("index", "help", "-o", "i", "--to", address), ("search", address, "key"), ("serve", address),
        ("export", address, "--sentence-transformers", "-o", "o"),
    ):  # fmt: skip
        last = run(*words, code=2).splitlines()[-1]
        assert f"{start}ada@localhost:6333/help: unknown store" in last
        assert f"Copies in Qdrant are gone: {instead}" in last
    assert not (tmp_path / "i").exists()


def test_a_wrong_password_is_said_before_anything_is_indexed(run, tmp_path, postgres):
    address = postgres.address("help", "guarded").replace("guarded@", "guarded:wr0ng@")
    said = run("index", "help", "-o", "i", "--encoder", "tiny", "--to", address, code=5)
    assert f"{postgres.address('help', 'guarded')}: connection failed" in said
    assert not (tmp_path / "i").exists()
