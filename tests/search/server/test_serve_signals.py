"""Ctrl-C and SIGTERM of a real server, with a request under way: what was begun is finished."""

import http.client
import json
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from helpers.forks import Fork, metasearch
from helpers.moments import NUMBERS
from helpers.serving import Running, counted, demo_passages, eventually, searcher_of
from metasearch.encoders.load import load_encoder
from metasearch.search import indexes

pytestmark = pytest.mark.slow  # requests take seconds

OPEN = "everyone who can reach it can search: no --token-file"


def serve(*flags):
    """Return `metasearch serve` of a small index, for which each text takes so many seconds to encode.

    The first is done without delay, as the server encodes one before it answers.
    """

    def open_searcher(path, *rest):
        folder = Path(tempfile.mkdtemp()) / "index"
        found = searcher_of(folder, demo_passages("de")[:3], load_encoder("tiny", device="cpu"))
        encode = found.encoder.encode

        def slow(texts, role):
            time.sleep(sum(float(text.split()[1]) for text in texts if text.startswith("sleep ")))
            return encode(texts, role)

        found.encoder.encode = slow
        return found

    def call():
        indexes.open_searcher = open_searcher
        metasearch("serve", "index", "--port=0", "--json", *flags)()

    return call


@contextmanager
def server(*flags):
    """Run `metasearch serve` in a process of its own; yields it, and how to ask it."""
    process = Fork(serve(*flags))
    try:
        process.wait_until(lambda: process.out.exists() and "\n" in process.out.read_text(encoding="utf-8"))
        address = json.loads(process.out.read_text(encoding="utf-8"))["address"]
        yield process, Running(int(address.rpartition(":")[2].rstrip("/")), None, None, None)
    finally:
        process.send_signal(signal.SIGKILL)
        process.finished()


def embed(served, text):
    """Return status and body of a request; None where the connection is closed without an answer."""
    with suppress(OSError):
        return served.post("/v1/embeddings", {"input": text})


def under_way(served, count=1):
    eventually(lambda: counted(served, "metasearch_waiting_requests") == count)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive)])
def test_what_was_begun_is_finished_and_an_idle_connection_is_not_waited_for(number):
    with server("--grace=60", "--host=0.0.0.0") as (process, served), ThreadPoolExecutor(1) as pool:
        idle = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        idle.request("GET", "/health")
        assert idle.getresponse().read()
        asked = pool.submit(embed, served, "sleep 3")
        under_way(served)
        process.send_signal(number)
        status, content = asked.result()
        began = time.monotonic()
        _, _, said = process.finished()
        assert time.monotonic() - began < 20
        assert status == 200
        assert len(content["data"]) == 1
        assert process.returncode == 0, said
        assert "stopping: requests to finish first: 1" in said
        assert OPEN in said  # others can reach it, without a token
        assert "Traceback" not in said
        assert embed(served, "too late") is None
        idle.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive)])
def test_what_takes_longer_than_the_grace_gets_503_and_the_process_does_not_wait_for_it(number):
    """It holds one thread for as long as it likes, such as what the first `expand` of a large index takes."""
    with server("--grace=1") as (process, served), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(embed, served, "sleep 100")
        under_way(served)
        process.send_signal(number)
        status, content = asked.result()
        _, _, said = process.finished()
        assert (status, content["error"]["code"]) == (503, "stopping")
        assert process.returncode == NUMBERS[number], said
        assert said.endswith("metasearch: error: stopped; 1 request was not finished\n")
        assert "Traceback" not in said
        assert OPEN not in said  # nobody else can reach it


def test_a_second_signal_does_not_wait():
    with server("--grace=60") as (process, served), ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(embed, served, "sleep 4") for _ in range(2)]
        under_way(served, 2)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, _, said = process.finished()
        assert [each.result()[0] for each in asked] == [503, 503]
        assert process.returncode == 130
        assert said.endswith("stopped; 2 requests were not finished\n")
