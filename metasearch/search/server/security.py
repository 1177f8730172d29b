"""Who may ask: allowed hosts, the token, and the headers that protect browsers.

Host names are checked against DNS rebinding, in which an attacker lets his own name point to this machine. The browser
then sends that name as `Host`. An IP address needs no check, since only its owner can move it.
"""

import asyncio
import hmac
import ipaddress
import logging
import os
import re
import stat
import time
import traceback
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metasearch.errors import ConfigError
from metasearch.io import read_bytes
from metasearch.search.server.errors import RequestError
from metasearch.search.server.metrics import Metrics

log = logging.getLogger(__name__)

_NAME = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\[\]:/@?#\s]+)(:[0-9]{1,5})?")
_TOKEN = re.compile("[!-~]{16,}")
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cache-control": b"no-store",
}
"""Headers of answers that do not set their own."""
_CLIENT_GONE = 499
"""Status that is counted where the client closed the connection before the answer."""


@lru_cache(maxsize=256)
def is_address(host: str) -> bool:
    """Return whether a host is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


@dataclass(frozen=True)
class Hosts:
    """The allowed names in lower case; `*.example.org` allows all names below that one."""

    names: tuple[str, ...]

    @classmethod
    def parse(cls, bound: str, allowed: Sequence[str]) -> "Hosts":
        """Return `localhost`, the name that the server is bound to, and the allowed names."""
        for name in allowed:
            if not _NAME.fullmatch(name) and not is_address(name):
                raise ConfigError(f"--allow-host {name}: expected a name such as search.example.org or *.example.org")
        return cls(tuple(dict.fromkeys(name.lower().rstrip(".") for name in ("localhost", bound, *allowed))))

    def allow(self, header: str) -> bool:
        """Return whether to answer a request with this `Host`."""
        found = _HOST.fullmatch(header)
        if found is None:
            return False
        host = found[1].strip("[]").rstrip(".").lower()
        if is_address(host.partition("%")[0]):
            return True
        return any(host == name or (name[:1] == "*" and host.endswith(name[1:])) for name in self.names)


def read_token(path: Path) -> str:
    """Return the token in a file of one line. The log warns if other users can read the file."""
    try:
        token = read_bytes(path).decode("ascii", "replace").strip()
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise ConfigError(f"--token-file {path}: cannot be read: {error.strerror}") from None
    if not _TOKEN.fullmatch(token):
        raise ConfigError(
            f"--token-file {path}: expected one line of 16 or more ASCII characters without spaces, made with: "
            f"openssl rand -hex 32 > {path}"
        )
    if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH):
        log.warning("%s: other users can read the token (mode %03o); run: chmod 600 %s", path, mode, path)
    return token


class Guard:
    """ASGI middleware around the whole application: checks host and token, adds headers, counts answers.

    It checks before the body is read, and every path that is not open, so a new path is never open by mistake.
    """

    def __init__(
        self, app: ASGIApp, hosts: Hosts, token: str | None, open_paths: Collection[str],
        counted_paths: Collection[str], metrics: Metrics,
    ) -> None:  # fmt: skip
        self._app = app
        self._hosts = hosts
        self._token = token
        self._open_paths = open_paths
        self._counted_paths = counted_paths
        self._metrics = metrics
        self.unfinished = 0
        """Requests that were given up because the server stopped."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*{**_HEADERS, **dict(message["headers"])}.items()]
            await send(message)

        try:
            error = await self._answer(scope, receive, send_with_headers)
            if error and not status:
                await error.response()(scope, receive, send_with_headers)
        finally:
            path = scope["path"] if scope["path"] in self._counted_paths else "other"
            self._metrics.requests.labels(path, str(status or _CLIENT_GONE)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> RequestError | None:
        """Let the application answer; return the error if it did not."""
        try:
            self._check(Headers(scope=scope), scope)
            await self._app(scope, receive, send)
        except RequestError as error:
            return error
        except asyncio.CancelledError:
            # uvicorn cancels requests when the grace period is over; this answer is the last thing it sends.
            self.unfinished += 1
            message = "the server stopped before it had an answer"
            return RequestError(503, "stopping", message, headers={"retry-after": "5"})
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{where.filename}:{where.lineno}"
            log.error(f"{scope['path']}: a bug in metasearch: {type(error).__name__}: {error} ({place})")
            return RequestError.of_bug(error)
        return None

    def _check(self, headers: Headers, scope: Scope) -> None:
        host, sent = headers.get("host", ""), len(headers.getlist("host"))
        # HTTP/1.0, in which balancers probe, needs no host. Browsers, which the check is for, always send one.
        unnamed = sent == 0 and scope["http_version"] == "1.0"
        if not unnamed and (sent != 1 or not self._hosts.allow(host)):
            raise RequestError(421, "unknown_host", f"host '{host}' is not a name of this server (--allow-host)")
        if self._token is None or scope["path"] in self._open_paths:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # In constant time, so that the time does not tell how much of a token is right.
        right = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._token.encode("utf-8"))
        if scheme.lower() != "bearer" or not right:
            message = "the token is missing or wrong: send it as authorization: Bearer TOKEN"
            raise RequestError(401, "invalid_token", message, headers={"www-authenticate": 'Bearer realm="metasearch"'})
