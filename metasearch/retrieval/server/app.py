"""The paths of the server, and what answers them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from metasearch.errors import nearest
from metasearch.retrieval.server import metrics, page
from metasearch.retrieval.server.errors import RequestError, answer
from metasearch.retrieval.server.hosts import Hosts
from metasearch.retrieval.server.middleware import Guard, bug
from metasearch.retrieval.server.service import Service

OPEN = frozenset({"/", "/health", "/health/live", "/favicon.ico"})
"""Paths that need no token. The page has nothing of the index in it: it asks for the token where there is one."""
_TYPES = {404: "not_found", 405: "method_not_allowed"}


class Application:
    """The application: routes behind a guard, with the batches as its life.

    Args:
        service: what answers.
        hosts: names under which it answers.
        token: that requests must bring, if any.
    """

    def __init__(self, service: Service, hosts: Hosts, token: str | None = None) -> None:
        self._service = service
        self._working: asyncio.Task[None] | None = None
        routes = [
            Route("/", self._page),
            Route("/favicon.ico", self._icon),
            Route("/search", service.search, methods=["POST"]),
            Route("/index", service.about),
            Route("/v1/embeddings", service.embeddings, methods=["POST"]),
            Route("/v1/models", service.models),
            Route("/v1/models/{name:path}", service.model),
            Route("/health", self._health),
            Route("/health/live", self._live),
            Route("/metrics", self._metrics),
        ]
        self._paths = frozenset(route.path for route in routes)
        handlers = {HTTPException: self._no_route, RequestError: _refused, Exception: _bug}
        inner = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._life)  # type: ignore[arg-type]
        # A slash too many is a path that is not there, and not one that is redirected to.
        inner.router.redirect_slashes = False
        self.guard = Guard(inner, hosts, token, OPEN, self._paths, service.metrics)

    @contextlib.asynccontextmanager
    async def _life(self, app: Starlette) -> AsyncIterator[None]:
        self._working = asyncio.create_task(self._service.batches.run())
        try:
            yield
        finally:
            self._working.cancel()
            await asyncio.wait({self._working})

    async def _page(self, request: Request) -> Response:
        return Response(page.HTML, headers=page.HEADERS, media_type="text/html")

    async def _icon(self, request: Request) -> Response:
        return Response(page.ICON, media_type="image/svg+xml")

    async def _health(self, request: Request) -> Response:
        ready = self._working is not None and not self._working.done()
        status = "ready" if ready else "broken: the encoder's thread has ended"
        return answer({"status": status, "model": self._service.name}, 200 if ready else 503)

    async def _live(self, request: Request) -> Response:
        return answer({"status": "live"})

    async def _metrics(self, request: Request) -> Response:
        return Response(self._service.metrics.text(), headers={"content-type": metrics.CONTENT_TYPE})

    async def _no_route(self, request: Request, error: HTTPException) -> Response:
        """Answer a path that is not there, or does not take the method."""
        path = request.url.path
        known = sorted(self._paths - {"/favicon.ico", "/v1/models/{name:path}"})
        if error.status_code == 405:
            allowed = (error.headers or {}).get("Allow", "")
            message = f"{path} does not take {request.method}; it takes {allowed}"
        elif f"/v1{path.rstrip('/')}" in known:
            message = f"there is no {path}; the path is /v1{path.rstrip('/')}: give clients a base URL that ends in /v1"
        else:
            message = f"there is no {path}.{nearest(path, known)}"
        code = _TYPES.get(error.status_code, "http")
        return RequestError(error.status_code, code, message, error.headers).response()


async def _refused(request: Request, error: RequestError) -> Response:
    return error.response()


async def _bug(request: Request, error: Exception) -> Response:
    return bug(error).response()
