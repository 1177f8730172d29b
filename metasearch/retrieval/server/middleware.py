"""What stands before every request: allowed hosts, the token, headers of safety, and the count of answers."""

import asyncio
import hmac
import logging
import time
import traceback

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metasearch.retrieval.server.errors import RequestError
from metasearch.retrieval.server.hosts import Hosts
from metasearch.retrieval.server.metrics import Metrics

log = logging.getLogger(__name__)

_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_POLICY = "default-src 'none'; frame-ancestors 'none'"
_GONE = 499
"""Status that is counted where the client has closed the connection; nobody reads it."""


def bug(error: Exception) -> RequestError:
    """Return the answer where metasearch has a bug; what it is may quote a text, and is for the log."""
    return RequestError(500, "bug", f"a bug in metasearch: {type(error).__name__}; the server's log says where")


class Guard:
    """Wraps the application.

    Args:
        app: the application.
        hosts: names under which it answers.
        token: that a request must bring; None where none is asked for.
        open_paths: of what needs no token.
        paths: that are counted by name.
        metrics: where answers are counted.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Hosts,
        token: str | None,
        open_paths: frozenset[str],
        paths: frozenset[str],
        metrics: Metrics,
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._token = token
        self._open = open_paths
        self._paths = paths
        self._metrics = metrics
        self.active = 0
        """Requests that have no answer yet."""
        self.unfinished = 0
        """Requests that were given up because the server stops."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("content-security-policy", _POLICY)
            await send(message)

        self.active += 1
        try:
            refused = await self._answer(scope, receive, sending)
            if refused and not status:
                await refused.response()(scope, receive, sending)
        finally:
            self.active -= 1
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.answered(path, status or _GONE, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> RequestError | None:
        """Let the application answer; return why it did not."""
        try:
            self._check(Headers(scope=scope), scope["path"])
            await self._app(scope, receive, send)
        except RequestError as refused:
            return refused
        except asyncio.CancelledError:
            # The server waits for this task no longer, and for its last words only.
            self.unfinished += 1
            return RequestError(
                503, "stopping", "the server was stopped before there was an answer", {"retry-after": "5"}
            )
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{where.filename}:{where.lineno}"
            log.error(f"{scope['path']}: a bug in metasearch: {type(error).__name__}: {error} ({place})")
            return bug(error)
        return None

    def _check(self, headers: Headers, path: str) -> None:
        """Raise `RequestError` unless host and token are right."""
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._hosts.allow(host):
            raise RequestError(421, "unknown_host", f"host '{host}' is not one of this server's names (--allow-host)")
        if self._token is None or path in self._open:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # In a time that says nothing of how much of it is right.
        right = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._token.encode("utf-8"))
        if scheme.lower() != "bearer" or not right:
            message = "the token is missing or wrong: send it as authorization: Bearer TOKEN"
            raise RequestError(401, "invalid_token", message, {"www-authenticate": 'Bearer realm="metasearch"'})
