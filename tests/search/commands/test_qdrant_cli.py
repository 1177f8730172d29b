"""`metasearch index --to`, and a search of the collection, in the client's own engine."""

import json

import pytest

from helpers.commands import metasearch
from metasearch.search import indexes
from metasearch.search.inference.open import load_reader

qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra qdrant")

ADDRESS = "qdrant://localhost:6333/help"
TEXTS = {
    "key.en.md": "The key is under the mat.",
    "parcel.en.md": "A parcel comes on Monday.",
    "key.de.md": "Der Schlüssel liegt unter der Matte.",
    "parcel.de.md": "Ein Paket kommt am Montag.",
}


pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder with four documents, beside a server of Qdrant."""
    client = qdrant_client.QdrantClient(":memory:")
    monkeypatch.setattr("metasearch.search.index.qdrant.connect", lambda address: client)
    (tmp_path / "help").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "help" / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    return lambda *arguments, code=0: metasearch(*arguments, code=code).output


def hits(output):
    return [(hit["file"], hit["text"]) for hit in json.loads(output.splitlines()[-1])["hits"]]


@pytest.mark.slow
def test_a_collection_is_searched_as_its_folder_is(run, tmp_path, monkeypatch):
    index = ["index", "help", "-o", "help.index", "--encoder", "tiny", "--to", ADDRESS]
    loads, load = [], load_reader
    monkeypatch.setattr(indexes, "load_reader", lambda name, *args: loads.append(name) or load(name, *args))
    assert "copied: 4 passages sent, 0 deleted" in run(*index)
    assert loads == ["tiny"]
    for options in ([], ["--balance"], ["--hybrid"], ["--language", "de"]):
        asked = ["Where is the key?", "--json", "--top-k", "2", *options]
        assert hits(run("search", ADDRESS, *asked)) == hits(run("search", "help.index", *asked)), options
    (tmp_path / "help" / "key.de.md").unlink()
    copied = json.loads(run(*index, "--json").splitlines()[-1])["copied"]
    assert copied == {"passages": 3, "sent": 3, "deleted": 1}
    refused = run(*index, "--expand", code=2)
    assert f"--to {ADDRESS}: copies in databases have no --expand; add --no-expand" in refused


def test_what_is_wrong_is_said_before_anything_is_indexed(run, tmp_path, monkeypatch):
    assert "expected an address such as qdrant://" in run("index", "help", "-o", "i", "--to", "localhost", code=2)
    assert "Did you mean 'qdrant'?" in run("index", "help", "-o", "i", "--to", "quadrant://localhost/h", code=2)
    assert "no such collection" in run("search", ADDRESS, "key", code=5)
    closed = "qdrant://127.0.0.1:1/help"
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert f"{closed}: the server cannot be reached" in run("index", "help", "-o", "i", "--to", closed, code=5)
    assert not (tmp_path / "i").exists()
