"""What proxies and balancers send: probes, packed bodies, half a request, and nothing for a while."""

import contextlib
import json
import socket
import time

import pytest

from helpers.serving import eventually, running
from metasearch.search.server import server


def ask(served, request):
    """Return the status and the rest of the answer to a request as it is sent."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(9999), b""))
    return int(answer.split(b" ", 2)[1]), answer


@pytest.mark.parametrize(
    ("request_line", "headers", "status"),
    [
        ("GET /health HTTP/1.0", "", 200),
        ("HEAD /health HTTP/1.0", "", 200),
        ("HEAD /health/live HTTP/1.0", "", 200),
        ("GET /health/live HTTP/1.0", "Host: localhost\r\n", 200),
        ("GET /health HTTP/1.0", "Host: evil.example\r\n", 421),
        ("GET /health HTTP/1.0", "Host: localhost\r\nHost: localhost\r\n", 400),
        ("GET /health HTTP/1.1", "", 400),  # which needs one (RFC 9112, 3.2)
        ("GET /health HTTP/1.1", "Host: localhost\r\nX-Forwarded-Host: evil.example\r\n", 200),
        ("GET /health HTTP/1.1", "Host: evil.example\r\nX-Forwarded-Host: localhost\r\n", 421),
        ("GET /health/ HTTP/1.1", "Host: localhost\r\n", 404),
        ("OPTIONS /health HTTP/1.1", "Host: localhost\r\n", 405),
    ],
)
def test_a_probe(served, request_line, headers, status):
    found, answer = ask(served, f"{request_line}\r\n{headers}Connection: close\r\n\r\n".encode())
    without_body = answer.endswith(b"\r\n\r\n")
    assert (found, without_body) == (status, request_line.startswith("HEAD")), answer


def test_a_probe_without_a_host_needs_the_token_where_others_do(searcher):
    with running(searcher, "a-token-of-the-tests") as locked:
        assert ask(locked, b"GET /health HTTP/1.0\r\n\r\n")[0] == 200
        assert ask(locked, b"GET /index HTTP/1.0\r\n\r\n")[0] == 401


@pytest.mark.parametrize("coding", ["gzip", "br", "gzip, deflate", "*"])
def test_a_packed_body_is_refused(served, coding):
    headers = {"content-type": "application/json", "content-encoding": coding}
    status, answered, body = served.send("POST", "/search", b"{}", headers)
    error = json.loads(body)["error"]
    assert (status, error["code"], answered["accept-encoding"]) == (415, "content_encoding", "identity")
    assert error["message"] == f"content-encoding '{coding}': send the body plain"


@pytest.mark.slow
def test_an_idle_connection_stays_as_long_as_it_may(searcher):
    request = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with (
        running(searcher, timeout=0.3, keep_alive=1.5) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection,
    ):
        for pause in (1, 1, 0):  # more than the time for a head, less than that for an idle connection
            connection.sendall(request)
            answer = connection.recv(9999)
            while b'{"status":"live"}' not in answer:
                answer += connection.recv(9999)
            time.sleep(pause)
        began = time.monotonic()
        assert connection.recv(1) == b""
        assert 1.2 < time.monotonic() - began < 5


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
