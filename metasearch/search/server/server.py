"""The server process: a socket, uvicorn, and an orderly end.

On Ctrl-C or SIGTERM it takes no further requests and finishes the ones it has begun. Requests that are not done within
the grace period get 503. A second signal ends the grace period.
"""

import logging
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from metasearch.errors import ConfigError
from metasearch.runs import signals
from metasearch.runs.signals import interrupted
from metasearch.search.server.security import Guard
from metasearch.search.server.settings import Limits

log = logging.getLogger(__name__)

_CONNECTIONS = 1000
"""Open connections; uvicorn answers 503 on further ones."""
_REFUSED_BODY = 2.0
"""Seconds in which a client may go on to send a refused body: one that writes all of it first reads the answer."""


def bind(host: str, port: int) -> socket.socket:
    """Return a socket at an address; nobody can connect until something listens."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"--host {host}: {getattr(error, 'strerror', None) or error}") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        hint = "; --port 0 takes a free one" if port else ""
        raise ConfigError(f"--host {host} --port {port}: {error.strerror}{hint}") from None
    return made


def format_address(bound: socket.socket) -> str:
    """Return a socket's address as typed into a browser."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Server(uvicorn.Server):
    """A uvicorn server that ends like a metasearch command and closes silent connections."""

    def __init__(self, app: Guard, limits: Limits, ready: Callable[[], None] = lambda: None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=_CONNECTIONS,
                timeout_keep_alive=limits.keep_alive,  # type: ignore[arg-type]  # uvicorn takes parts of seconds, too
                timeout_graceful_shutdown=limits.grace,
            )
        )
        # uvicorn's own lines would repeat ours, and its warnings are about clients.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._app = app
        self._limits = limits
        self._ready = ready
        self._ignored = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) == signal.SIG_IGN]
        self._waiting: dict[tuple[Any, Any], float] = {}

    def run_on(self, bound: socket.socket) -> None:
        """Serve on a socket until a signal comes."""
        self.run(sockets=[bound])
        if unfinished := self._app.unfinished:
            requests = "1 request was" if unfinished == 1 else f"{unfinished} requests were"
            raise interrupted(f"stopped; {requests} not finished")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        """Close connections that take too long to send a request, for which uvicorn has no limit."""
        now = time.monotonic()
        known = [each for each in self.server_state.connections if isinstance(each, H11Protocol)]
        waiting = {(each, each.cycle): patience for each in known if (patience := self._patience(each))}
        self._waiting = {each: self._waiting.get(each, now) for each in waiting}
        for (connection, cycle), since in self._waiting.items():
            if now - since > waiting[connection, cycle]:
                connection.transport.close()
        return await super().on_tick(counter)

    def _patience(self, connection: H11Protocol) -> float | None:
        """Return how many seconds to wait for a request that is not whole; None where uvicorn itself closes."""
        if connection.cycle is None:
            return self._limits.timeout
        unread, _ = connection.conn.trailing_data
        if connection.cycle.response_complete and connection.conn.their_state is h11.SEND_BODY:
            return _REFUSED_BODY
        return self._limits.timeout if connection.cycle.response_complete and unread else None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish the requests that were begun."""
        if active := len(self.server_state.tasks):
            log.info("stopping: requests to finish first: %d, for at most %d s", active, self._limits.grace)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop after the requests that were begun; the second time, without them. Ignored signals stay ignored.

        Unlike uvicorn's own method it does not let the signal be raised again at the end.
        """
        if sig in self._ignored:
            return
        self.force_exit = self.should_exit
        self.should_exit = True
        signals.note(signals.received() or sig)
