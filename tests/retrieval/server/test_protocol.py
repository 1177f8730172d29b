"""A connection on which no request comes is closed; one on which it does is not."""

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

from metasearch.retrieval.server.protocol import Protocol

HEAD = b"GET / HTTP/1.1\r\nhost: localhost\r\n"
PATIENCE = 0.2


async def answer(scope, receive, send):
    """Answer later than a client may take to say what it wants."""
    await asyncio.sleep(2 * PATIENCE)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def told(*parts, patience=PATIENCE):
    """Return what a server says until it closes the connection, to which these bytes come one after another."""

    async def scenario():
        config = uvicorn.Config(answer, lifespan="off", log_config=None, timeout_keep_alive=20)
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: Protocol(config, state, {}, patience=patience), "127.0.0.1"
        )
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            for part in parts:
                writer.write(part)
                await asyncio.sleep(PATIENCE / 4)
            found = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            return found

    return asyncio.run(scenario())


@pytest.mark.parametrize("parts", [(), (HEAD,), (HEAD[:9], HEAD[9:20], HEAD[20:])], ids=["silence", "half", "slow"])
def test_a_head_that_does_not_come_closes_the_connection_without_an_answer(parts):
    assert told(*parts) == b""


def test_a_request_whose_head_is_there_has_the_time_that_it_takes():
    assert told(HEAD, b"connection: close\r\n\r\n", patience=5).startswith(b"HTTP/1.1 204")


def test_half_a_second_request_closes_the_connection_after_the_answer_to_the_first():
    found = told(HEAD + b"\r\n", *[b""] * 12, HEAD)
    assert found.count(b"HTTP/1.1 204") == 1
