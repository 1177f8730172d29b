"""A connection that sends no request in time is closed; one that does is not."""

import contextlib
import socket
import time

import pytest

from helpers.serving import eventually, running
from metasearch.search.server import server

HEAD = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n"
TIMEOUT = 0.5


@pytest.fixture(scope="module")
def port(searcher):
    with running(searcher, timeout=TIMEOUT) as found:
        yield found.port


def answers(port, *parts):
    """Return what a server answers until it closes a connection on which these bytes come one after another."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(TIMEOUT / 5)
        return b"".join(iter(lambda: connection.recv(9999), b""))


@pytest.mark.slow
@pytest.mark.parametrize("parts", [(), (HEAD[:9], HEAD[9:20], HEAD[20:])], ids=["silence", "slow"])
def test_a_connection_without_a_whole_head_is_closed_without_an_answer(port, parts):
    assert answers(port, *parts) == b""


@pytest.mark.slow
def test_half_a_second_request_is_closed_after_the_answer_to_the_first(port):
    assert answers(port, HEAD + b"\r\n", HEAD).count(b"HTTP/1.1 200") == 1


@pytest.mark.slow
def test_a_client_that_asks_again_and_again_stays_connected(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for _ in range(5):  # more than once the timeout
            connection.sendall(HEAD + b"\r\n")
            eventually(lambda: b"HTTP/1.1 200" in connection.recv(9999))
            time.sleep(TIMEOUT / 3)


def test_a_body_that_goes_on_after_its_refusal_is_cut_off(port, monkeypatch):
    monkeypatch.setattr(server, "_REFUSED_BODY", 0.1)
    head = HEAD.replace(b"GET /health/live", b"POST /search")
    head += b"content-type: application/json\r\ncontent-length: 999999999\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(head)
        assert b"HTTP/1.1 413" in connection.recv(9999)
        began = time.monotonic()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() - began < 20:
                connection.sendall(bytes(1000))
                time.sleep(0.01)
        assert time.monotonic() - began < 20
