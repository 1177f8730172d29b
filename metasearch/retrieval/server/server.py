"""The server itself: a socket, uvicorn behind it, and an orderly end.

Told to stop (Ctrl-C, SIGTERM), it takes no further requests and finishes those that it has begun. What is not done when
the time for that is over is answered with 503. A second signal does not wait.
"""

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

import uvicorn

from metasearch.errors import ConfigError
from metasearch.retrieval.server.app import Application
from metasearch.retrieval.server.protocol import Protocol
from metasearch.runs import signals
from metasearch.runs.signals import interrupted

log = logging.getLogger(__name__)

_CONNECTIONS = 1000
"""Open connections; uvicorn answers further ones with 503."""
_POLL_SECONDS = 0.1


def bind(host: str, port: int) -> socket.socket:
    """Return a socket at an address; nobody can connect until something listens.

    Args:
        host: a name or address of this machine.
        port: 0 takes a free one.

    Raises:
        ConfigError: the address is not this machine's, or the port is taken or reserved.
    """
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


def address_of(bound: socket.socket) -> str:
    """Return the address of a socket as it is typed into a browser."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Server(uvicorn.Server):
    """A uvicorn that ends as a command of metasearch does.

    Args:
        application: what answers.
        grace: seconds for what was begun when it is told to stop.
        ready: is called when it answers.
        patience: seconds for the head of a request to come in.
    """

    def __init__(
        self, application: Application, grace: int, ready: Callable[[], None] = lambda: None, patience: float = 30.0
    ) -> None:
        super().__init__(
            uvicorn.Config(
                application.guard,
                loop="asyncio",
                http=partial(Protocol, patience=patience),  # type: ignore[arg-type]  # uvicorn calls it
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=_CONNECTIONS,
                timeout_graceful_shutdown=grace,
            )
        )
        # What it says of itself is said here; a request that is no HTTP is the client's to know.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._guard = application.guard
        self._grace = grace
        self._ready = ready

    def run_on(self, bound: socket.socket) -> None:
        """Serve on a socket until a signal comes.

        Raises:
            Interrupted: requests were given up, as the time for them was over or a second signal came.
        """
        self.run(sockets=[bound])
        if unfinished := self._guard.unfinished:
            raise interrupted(f"stopped; {unfinished} of the requests that were begun {_were(unfinished)} not finished")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what was begun, or give it up when a second signal comes."""
        if active := self._guard.active:
            log.info("stopping: requests to finish first: %d, for at most %d s", active, self._grace)
        ending = asyncio.ensure_future(super().shutdown(sockets))
        while not ending.done() and not self.force_exit:
            await asyncio.wait({ending}, timeout=_POLL_SECONDS)
        for task in list(self.server_state.tasks) if self.force_exit else ():
            task.cancel()
        await ending

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take both signals while this is entered; one that is ignored stays so."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; when told so twice, without waiting."""
        self.force_exit = self.should_exit
        self.should_exit = True
        signals.note(signals.received() or sig)


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
