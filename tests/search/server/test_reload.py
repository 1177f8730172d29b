"""An index that changes under a running server is served as it is now."""

import logging
import os
import shutil

import pytest

from helpers.serving import counted, eventually, running
from metasearch.encoders.load import load_encoder
from metasearch.search.indexes import index_documents, open_searcher
from metasearch.search.server.service import Service
from metasearch.search.server.settings import Limits


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text("The key is under the mat.")
    index_documents([tmp_path / "a.txt"], tmp_path / "index", "tiny", {"language": "en"}, device="cpu")
    return tmp_path


def add(folder, name, text):
    (folder / name).write_text(text)
    index_documents([*folder.glob("*.txt")], folder / "index", device="cpu")


@pytest.mark.slow
def test_new_passages_are_found_without_a_restart(folder):
    with running(open_searcher(folder / "index", device="cpu"), reload=0.05) as server:
        assert server.get("/index")[1]["passages"] == 1
        add(folder, "b.txt", "Bees dance.")
        eventually(lambda: server.get("/index")[1]["passages"] == 2)
        assert counted(server, "metasearch_passages") == 2
        hits = server.post("/search", {"query": "Bees dance."})[1]["results"][0]["hits"]
        assert [hit["text"] for hit in hits] == ["Bees dance.", "The key is under the mat."]


@pytest.mark.slow
def test_an_index_that_cannot_be_opened_is_reported_once_and_the_old_one_stays(folder, caplog):
    caplog.set_level(logging.WARNING, "metasearch.search.server.service")
    with running(open_searcher(folder / "index", device="cpu"), reload=0.05) as server:
        (folder / "index/index.sqlite").rename(folder / "aside")
        eventually(lambda: caplog.records)
        eventually(lambda: counted(server, "metasearch_index_outdated") == 1)
        assert server.post("/search", {"query": "key"})[0] == 200
        (folder / "aside").rename(folder / "index/index.sqlite")
        add(folder, "b.txt", "Bees dance.")
        eventually(lambda: server.get("/index")[1]["passages"] == 2)
        eventually(lambda: counted(server, "metasearch_index_outdated") == 0)
    (record,) = caplog.records
    assert record.getMessage().startswith(f"still serving the old index: {folder / 'index'} is no index")


@pytest.mark.slow
def test_an_encoder_whose_file_was_overwritten_is_not_ready_until_it_encodes_again(folder, caplog):
    load_encoder("tiny", device="cpu").save(folder / "model")
    index_documents([folder / "a.txt"], folder / "other", str(folder / "model"), device="cpu")
    open_searcher(folder / "other", device="cpu")  # finds out that the encoder can be used from its files
    weights = folder / "model" / "model.safetensors"
    written = weights.stat()
    with running(open_searcher(folder / "other", device="cpu")) as server:
        assert server.get("/health")[0] == 200
        os.utime(weights)
        assert server.post("/search", {"query": "key"})[0] == 500
        assert "/search: " in caplog.text
        assert "the file was changed while it was in use; start again" in caplog.text
        assert server.get("/health")[0] == 503
        os.utime(weights, ns=(written.st_atime_ns, written.st_mtime_ns))
        assert server.get("/health")[1]["status"] == "ready"


@pytest.mark.slow
def test_a_server_reads_long_texts_also_after_the_folder_of_its_encoder_was_deleted(folder):
    mini = load_encoder("mini", device="cpu")
    mini.save(folder / "model")
    index_documents([folder / "a.txt"], folder / "other", str(folder / "model"), device="cpu")
    searcher = open_searcher(folder / "other", device="cpu")
    Service(searcher, Limits()).warm_up()
    shutil.rmtree(folder / "model")
    assert searcher.search(["key " * 600])
