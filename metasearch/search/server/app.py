"""The application: paths, bodies, errors, and the tasks that run beside the requests."""

import asyncio
import base64
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from importlib.resources import files
from string import Template
from typing import Any

from fastapi import FastAPI, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.routing import Route

from metasearch.data.formats.text_files import parse_json
from metasearch.errors import nearest
from metasearch.search.server import schemas
from metasearch.search.server.errors import ErrorAnswer, RequestError
from metasearch.search.server.security import Guard, Hosts
from metasearch.search.server.service import Service
from metasearch.version import __version__

OPEN_PATHS = frozenset({"/", "/health", "/health/live", "/favicon.ico", "/openapi.json"})
"""Paths that need no token. The page knows nothing about the index."""
_LONGEST_VALUE = 60
"""Characters of a value that an error quotes."""
_NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""FastAPI could send errors, which quote requests, to a collector that the environment names."""


class JsonRequest(Request):
    """A request whose body is strict JSON, not too long, and comes in time."""

    async def body(self) -> bytes:
        """Return the body; `RequestError` where it is no plain JSON (415), too long (413) or too slow (408)."""
        if not hasattr(self, "_body"):
            kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                # A page of another site may send the types of forms without asking first.
                problem = f"content-type '{kind}': send JSON with content-type: application/json"
                raise RequestError(415, "content_type", problem)
            coding = ", ".join(self.headers.getlist("content-encoding"))
            if coding.lower() not in ("", "identity"):
                problem = f"content-encoding '{coding}': send the body plain"
                raise RequestError(415, "content_encoding", problem, headers={"accept-encoding": "identity"})
            self._body = await self._read()
        return self._body

    async def _read(self) -> bytes:
        limits = self.app.state.service.limits
        content, length, more = bytearray(), int(self.headers.get("content-length", "0")), True
        try:
            async with asyncio.timeout(limits.timeout):
                while more and length <= limits.size:
                    message = await self.receive()
                    if message["type"] == "http.disconnect":
                        raise RequestError(499, "client_gone", "the client has closed the connection")
                    content += message.get("body", b"")
                    length, more = max(length, len(content)), message.get("more_body", False)
        except TimeoutError:
            problem = f"the body did not come within {limits.timeout:g} s (--timeout)"
            raise RequestError(408, "body_too_slow", problem, headers={"connection": "close"}) from None
        if length > limits.size:
            problem = f"the body has more than {limits.size:,} bytes (--max-bytes); send fewer texts at a time"
            raise RequestError(413, "body_too_large", problem)
        return bytes(content)

    async def json(self) -> Any:
        """Return the value of the body; `RequestError` (400) if it is not JSON, or not Unicode, or repeats a key."""
        content = await self.body()
        try:
            value = parse_json(content.decode("utf-8"))
            if b"\\ud" in content.lower():  # pydantic fails on half of a surrogate pair
                json.dumps(value, ensure_ascii=False).encode("utf-8")
            return value
        except ValueError as error:
            problem = str(error).removeprefix("not JSON: ")
            raise RequestError(400, "not_json", f"the body is not JSON: {problem}") from None


class JsonRoute(APIRoute):
    """A route that reads its body as `JsonRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, called with a `JsonRequest`."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(JsonRequest(request.scope, request.receive))

        return handle


def build_app(service: Service, hosts: Hosts, token: str | None = None) -> Guard:
    """Return the application inside its guard."""
    app = FastAPI(
        title="metasearch",
        version=__version__,
        docs_url=None,  # these pages load scripts from another host
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        exception_handlers=dict.fromkeys((HTTPException, RequestValidationError, Exception), _answer_error),
        responses={"default": {"model": ErrorAnswer, "description": "Error"}},
        # The guard checks the token before the body is read. This is for the OpenAPI document.
        dependencies=[Security(HTTPBearer(auto_error=False))] if token else [],
        telemetry=_NO_TELEMETRY,
    )
    app.state.service = service
    app.router.route_class = JsonRoute
    app.add_api_route("/search", service.search, methods=["POST"])
    app.add_api_route("/v1/embeddings", service.embeddings, methods=["POST"])
    app.add_api_route("/v1/models", service.models)
    app.add_api_route("/v1/models/{name:path}", service.model)
    app.add_api_route("/index", service.index)
    broken: Any = {503: {"model": schemas.Health, "description": "The server cannot encode"}}
    app.add_api_route("/health", _health, responses=broken)
    app.add_api_route("/health/live", _live)
    for path, endpoint in (("/health", _health), ("/health/live", _live)):
        app.add_api_route(path, endpoint, methods=["HEAD"], include_in_schema=False)
    app.add_route("/metrics", _metrics, include_in_schema=False)
    app.routes.extend(Route(path, answer, methods=["GET"]) for path, answer in (("/", _PAGE), ("/favicon.ico", _ICON)))
    app.state.paths = {route.path for route in app.routes if isinstance(route, Route)}
    return Guard(app, hosts, token, OPEN_PATHS, app.state.paths, service.metrics)


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Run the batches and look for a changed index while the server answers."""
    service: Service = app.state.service
    app.state.batches = asyncio.create_task(service.batcher.run())
    tasks = {app.state.batches, asyncio.create_task(service.reload())}
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _read(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# The page is one file that loads nothing from other hosts and runs no script but its own, which the policy names.
_STYLE, _SCRIPT = _read("page.css"), _read("page.js")
_HTML = Template(_read("page.html")).substitute(style=_STYLE, script=_SCRIPT)
_POLICY = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE = Response(_HTML, 200, {"content-security-policy": _POLICY, "cache-control": "no-cache"}, "text/html")
_ICON = Response(_read("icon.svg"), media_type="image/svg+xml")


async def _health(request: Request, response: Response) -> schemas.Health:
    """Whether the server can encode."""
    service: Service = request.app.state.service
    status = "ready"
    if request.app.state.batches.done():
        status = "broken: the encoder's thread has ended"
    elif not await service.can_encode():
        status = "broken: texts cannot be encoded; the server's log says why"
    response.status_code = 200 if status == "ready" else 503
    return schemas.Health(status=status, model=service.name)


async def _live() -> schemas.Live:
    """Whether the process answers."""
    return schemas.Live()


async def _metrics(request: Request) -> Response:
    metrics = request.app.state.service.metrics
    return Response(metrics.text(), headers={"content-type": metrics.content_type})


async def _answer_error(request: Request, error: Exception) -> Response:
    """Answer a request that an endpoint or FastAPI itself refuses, or that meets a bug, which the guard logs."""
    if isinstance(error, RequestValidationError):
        problems = [_explain_problem(item) for item in error.errors()]
        texts = "; ".join(text for _, text in problems)
        return RequestError(422, "invalid_body", texts, problems[0][0] or None).response()
    if not isinstance(error, HTTPException):
        return RequestError.of_bug(error).response()
    if isinstance(error, RequestError):
        return error.response()
    code, message = "http", str(error.detail)
    if error.status_code == 404:
        code, message = "not_found", _explain_unknown_path(request)
    elif error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        code, message = "method_not_allowed", f"{request.url.path} does not take {request.method}; it takes {allowed}"
    return RequestError(error.status_code, code, message, headers=error.headers).response()


def _explain_unknown_path(request: Request) -> str:
    path = request.url.path
    known = sorted(request.app.state.paths - {"/favicon.ico", "/v1/models/{name:path}"})
    versioned = f"/v1{path.rstrip('/')}"
    if versioned in known:
        return f"there is no {path}; the path is {versioned}: use a base URL that ends in /v1"
    return f"there is no {path}.{nearest(path, known)}"


def _explain_problem(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of a wrong value, and the problem in a sentence."""
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"][1:]).removeprefix(".")
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "missing":
        return key, f"{key}: missing key" if key else "the body is empty: expected a JSON object"
    message = message[:1].lower() + message[1:]
    if not key:
        return key, f"body: {message}"
    value = json.dumps(item["input"])
    short = value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}..."
    return key, f"{key}: {message} (got {short})"
