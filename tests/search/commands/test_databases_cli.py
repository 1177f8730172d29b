"""`metasearch index --to`, and a search of the copy, in Qdrant's client and in a server of PostgreSQL."""

import json

import pytest

from helpers.commands import metasearch
from helpers.files import write_all
from metasearch.search import indexes
from metasearch.search.inference.open import load_reader

qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra qdrant")

ADDRESS = "qdrant://localhost:6333/help"
TEXTS = {
    "key.en.md": "# Keys\n\nThe key is under the mat.",
    "parcel.en.md": "# Parcels\n\nA parcel comes on Monday.",
    "key.de.md": "# Schlüssel\n\nDer Schlüssel liegt unter der Matte.",
    "parcel.de.md": "# Pakete\n\nEin Paket kommt am Montag.",
}


pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder with four documents, beside a server of Qdrant; no password is ever shown."""
    client = qdrant_client.QdrantClient(":memory:")
    monkeypatch.setattr("metasearch.search.index.qdrant.connect", lambda address: client)
    write_all(tmp_path / "help", TEXTS)
    monkeypatch.chdir(tmp_path)

    def output(*arguments, code=0):
        said = metasearch(*arguments, code=code).output
        assert "s3cret" not in said
        return said

    return output


def hits(output):
    return [(hit["file"], hit["text"], hit["heading"]) for hit in json.loads(output.splitlines()[-1])["hits"]]


def address_in(place, request):
    """Return an address with its password, if any, and the same address as output shows it."""
    if place == "qdrant":
        return ADDRESS, ADDRESS
    server = request.getfixturevalue("postgres")
    with server.connect() as connection:
        connection.execute("CREATE EXTENSION vector")
    shown = server.address("order", "guarded")  # a reserved word of SQL
    return shown.replace("guarded@", "guarded:s3cret@"), shown


@pytest.mark.slow
@pytest.mark.parametrize("place", ["qdrant", "postgresql"])
def test_a_copy_is_searched_as_its_folder_is(place, run, tmp_path, monkeypatch, request):
    address, shown = address_in(place, request)
    index = ["index", "help", "-o", "help.index", "--encoder", "tiny", "--to", address]
    loads, load = [], load_reader
    monkeypatch.setattr(indexes, "load_reader", lambda name, *args: loads.append(name) or load(name, *args))
    said = run(*index)
    assert "copied: 4 passages sent, 0 deleted" in said
    assert f'search: metasearch search {shown} "..."' in said
    assert loads == ["tiny"]
    conditions = [["--where", "title=Keys"], ["--where", "path!=key.de.md"]] if place == "postgresql" else []
    for options in ([], ["--balance"], ["--hybrid"], ["--language", "de"], ["--by", "passage"], *conditions):
        asked = ["Where is the key?", "--json", "--top-k", "3", *options]
        assert hits(run("search", address, *asked)) == hits(run("search", "help.index", *asked)), options
    (tmp_path / "help" / "key.de.md").unlink()
    copied = json.loads(run(*index, "--json").splitlines()[-1])["copied"]
    assert copied == {"passages": 3, "sent": 0, "deleted": 1}
    refused = run(*index, "--expand", code=2)
    assert f"--to {shown}: copies in databases have no --expand; add --no-expand" in refused


def test_what_is_wrong_is_said_before_anything_is_indexed(run, tmp_path, monkeypatch):
    assert "expected an address such as qdrant://" in run("index", "help", "-o", "i", "--to", "localhost", code=2)
    assert "Did you mean 'qdrant'?" in run("index", "help", "-o", "i", "--to", "quadrant://localhost/h", code=2)
    assert "no such collection" in run("search", ADDRESS, "key", code=5)
    closed = "qdrant://127.0.0.1:1/help"
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert f"{closed}: the server cannot be reached" in run("index", "help", "-o", "i", "--to", closed, code=5)
    assert not (tmp_path / "i").exists()


def test_a_wrong_password_is_said_before_anything_is_indexed(run, tmp_path, postgres):
    address = postgres.address("help", "guarded").replace("guarded@", "guarded:wr0ng@")
    said = run("index", "help", "-o", "i", "--encoder", "tiny", "--to", address, code=5)
    assert f"{postgres.address('help', 'guarded')}: connection failed" in said
    assert not (tmp_path / "i").exists()
