"""What proxies and balancers send: probes, whole addresses, packed bodies, and nothing for a while."""

import gzip
import json
import socket
import time
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.serving import running

QUERY = json.dumps({"input": "Where is the key?"}).encode()


def bare_deflate(content):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


PACKED = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": bare_deflate,
    "identity": bytes,
    "": bytes,
}


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
        ("GET /health/live HTTP/1.0", "Host: localhost\r\n", 200),
        ("GET /health HTTP/1.0", "Host: evil.example\r\n", 421),
        ("GET /health HTTP/1.0", "Host: localhost\r\nHost: localhost\r\n", 400),
        ("GET /health HTTP/1.1", "", 400),  # which needs one (RFC 9112, 3.2)
        ("GET http://localhost:8000/health HTTP/1.1", "Host: localhost:8000\r\n", 200),
        ("GET HTTP://127.0.0.1/health/live?a=b HTTP/1.1", "Host: other\r\n", 200),  # the address counts
        ("GET https://localhost HTTP/1.1", "Host: localhost\r\n", 200),
        ("GET http://localhost/health HTTP/1.0", "", 200),
        ("GET http://evil.example/health HTTP/1.1", "Host: localhost\r\n", 421),
        ("GET http://localhost@evil.example/health HTTP/1.1", "Host: localhost\r\n", 421),
        ("GET http:///health HTTP/1.1", "Host: localhost\r\n", 421),
        ("GET /health HTTP/1.1", "Host: localhost\r\nX-Forwarded-Host: evil.example\r\n", 200),
        ("GET /health HTTP/1.1", "Host: evil.example\r\nX-Forwarded-Host: localhost\r\n", 421),
        ("GET /health/ HTTP/1.1", "Host: localhost\r\n", 404),
        ("OPTIONS /health HTTP/1.1", "Host: localhost\r\n", 405),
    ],
)
def test_a_probe(served, request_line, headers, status):
    found, answer = ask(served, f"{request_line}\r\n{headers}Connection: close\r\n\r\n".encode())
    assert found == status, answer


def test_a_probe_without_a_host_needs_the_token_where_others_do(searcher):
    with running(searcher, "a-token-of-the-tests") as locked:
        assert ask(locked, b"GET /health HTTP/1.0\r\n\r\n")[0] == 200
        assert ask(locked, b"GET /index HTTP/1.0\r\n\r\n")[0] == 401
        assert ask(locked, b"GET http://localhost/index HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 401


@pytest.mark.parametrize("coding", PACKED)
def test_a_packed_body_is_unpacked(served, coding):
    plain = served.post("/v1/embeddings", QUERY)
    assert served.post("/v1/embeddings", PACKED[coding](QUERY), content_encoding=coding) == plain
    assert plain[0] == 200


def test_gzip_may_have_several_members_and_zeros_behind_them(served):
    """RFC 1952, section 2.2: a file is a series of members; tapes pad it."""
    cut = gzip.compress(QUERY[:9]) + gzip.compress(QUERY[9:])
    plain = served.post("/v1/embeddings", QUERY)
    assert [served.post("/v1/embeddings", each, content_encoding="gzip") for each in (cut, cut + bytes(9))] == [
        plain
    ] * 2


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", "deflate, gzip", "*"])
def test_another_coding_is_refused_by_its_name(served, coding):
    headers = {"content-type": "application/json", "content-encoding": coding}
    status, answered, body = served.send("POST", "/search", QUERY, headers)
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (415, "content_encoding")
    assert error["message"] == f"content-encoding '{coding}': send the body plain, or in one of gzip, x-gzip, deflate"
    assert answered["accept-encoding"] == "gzip, x-gzip, deflate"


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_a_damaged_body_is_refused(served, coding, data):
    whole = PACKED[coding](QUERY)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    content = data.draw(st.sampled_from([cut, whole + b"x", QUERY, cut + b"x"]))
    status, answer = served.post("/v1/embeddings", content, content_encoding=coding)
    assert (status, answer["error"]["code"]) == (400, "not_packed")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_the_limit_counts_unpacked_bytes(served, coding):
    """The limit of this server is 20,000 bytes."""
    empty = len(json.dumps({"input": ""}))

    def status(size):
        body = json.dumps({"input": "a" * (size - empty)}).encode()
        return served.post("/v1/embeddings", PACKED[coding](body), content_encoding=coding)[0]

    assert [status(20_000), status(20_001), status(100_000)] == [200, 413, 413]


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
