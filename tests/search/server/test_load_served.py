"""What happens when too much is asked for, a client goes, or the encoder fails: counted, and nobody else's trouble."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from helpers.serving import counted, eventually, running
from metasearch.encoders.load import load_encoder
from metasearch.search.query.searcher import Searcher


class HeldOut:
    """A searcher whose encoder waits until it may go; a text `bug` is one."""

    def __init__(self, searcher):
        self.inner, self.encoder = searcher, self
        self.go, self.begun = threading.Event(), []
        self.languages, self.search = searcher.languages, searcher.search

    def encode(self, texts, role):
        self.begun.append(list(texts))
        assert self.go.wait(20)
        if "bug" in texts:
            raise ZeroDivisionError("a bug")
        return self.inner.encoder.encode(texts, role)

    def encode_queries(self, texts):
        return self.encode(texts, "question")

    def encode_documents(self, texts):
        return self.encode(texts, "candidate")

    def __getattr__(self, name):
        return getattr(self.inner.encoder, name)


@pytest.fixture
def held(searcher):
    found = HeldOut(searcher)
    yield found
    found.go.set()


def embed(server, text):
    return server.send("POST", "/v1/embeddings", f'{{"input": "{text}"}}', {"content-type": "application/json"})


def test_more_than_may_wait_get_429_and_come_again_later(held):
    with running(held, waiting=2) as server, ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(embed, server, text) for text in ("a", "b")]
        eventually(lambda: server.service.batcher.waiting == 2)
        status, headers, body = embed(server, "c")
        assert counted(server, "metasearch_waiting_requests") == 2
        held.go.set()
        assert [each.result()[0] for each in waiting] == [200, 200]
        assert embed(server, "c")[0] == 200
    assert (status, headers["retry-after"]) == (429, "1")
    assert b"--max-waiting" in body


@pytest.mark.skipif(
    torch.cpu.get_capabilities().get("amx_tile", False), reason="with AMX, other texts of a batch change the rounding"
)
def test_clients_at_once_get_the_bits_that_each_gets_alone_in_low_precision(searcher):
    texts = ["bees", "Where do keepers live?", "Wer tanzt auf der Wabe?", "bees " * 40]
    own = Searcher(searcher.store, load_encoder("mini", device="cpu").choose_precision("bfloat16", tried=True))

    def ask(server, text):
        return [server.post("/v1/embeddings", {"input": text}), server.post("/search", {"query": text})]

    with running(own, batch_wait=20) as server, ThreadPoolExecutor(8) as clients:
        alone = [ask(server, text) for text in texts]
        assert {status for answers in alone for status, _ in answers} == {200}
        counts = list(clients.map(ask, [server] * 24, texts * 6))
        assert counted(server, "metasearch_batch_texts_count") < 2 * (4 + 24)  # some shared a batch
    assert counts == alone * 6


def test_an_answer_that_takes_too_long_is_not_waited_for(held):
    with running(held, timeout=0.2) as server:
        status, _, body = embed(server, "a")
        held.go.set()
    assert status == 503
    assert b"within 0.2 s (--timeout)" in body


def test_what_a_client_asked_for_that_has_gone_is_not_encoded(held):
    with running(held) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(embed, server, "first")
        eventually(lambda: held.begun)
        body = b'{"input": "gone"}'
        head = f"POST /v1/embeddings HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"  # noqa: E501
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(head.encode() + body)
            eventually(lambda: server.service.batcher.waiting == 2)
        eventually(lambda: server.service.batcher.waiting == 1)
        held.go.set()
        assert first.result()[0] == 200
        assert embed(server, "last")[0] == 200
        assert counted(server, "metasearch_requests_total", path="/v1/embeddings", status="499") == 1
    assert held.begun == [["first"], ["last"]]


def test_a_bug_is_told_to_the_one_who_met_it_and_to_the_log(held, monkeypatch):
    said = []
    monkeypatch.setattr("metasearch.search.server.security.log.error", said.append)
    with running(held, batch_wait=200) as server, ThreadPoolExecutor(2) as pool:
        held.go.set()
        bug, fine = pool.map(lambda text: embed(server, text), ("bug", "fine"))
        assert counted(server, "metasearch_requests_total", path="/v1/embeddings", status="500") == 1
        assert server.get("/health")[0] == 200
    assert (bug[0], fine[0]) == (500, 200)
    assert b"a bug in metasearch: ZeroDivisionError; the server's log says where" in bug[2]
    (line,) = said
    assert line.startswith("/v1/embeddings: a bug in metasearch: ZeroDivisionError: a bug (")
    assert "test_load_served.py" in line


@pytest.mark.slow
def test_answers_texts_and_time_are_counted(searcher):
    with running(searcher) as server:
        for path, content in (("/search", {"query": "bees " * 300}), ("/v1/embeddings", {"input": ["a", "b", "c"]})):
            assert server.post(path, content)[0] == 200
        server.get("/nowhere/at/all")
        assert counted(server, "metasearch_requests_total", path="/search", status="200") == 1
        assert counted(server, "metasearch_requests_total", path="other", status="404") == 1
        assert counted(server, "metasearch_texts_total", kind="embedding") == 3
        assert counted(server, "metasearch_truncated_texts_total", kind="search") == 1
        assert counted(server, "metasearch_batch_texts_sum") == 1 + 3
        assert counted(server, "metasearch_request_seconds_count", path="/search") == 1
        assert server.send("GET", "/metrics")[1]["content-type"].startswith("text/plain; version=0.0.4")
