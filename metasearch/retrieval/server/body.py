"""The body of a request: read up to a limit while it comes in, and taken as strict JSON."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request

from metasearch.config import yaml
from metasearch.errors import ConfigError
from metasearch.retrieval.server.errors import RequestError
from metasearch.retrieval.server.limits import Limits

Asked = TypeVar("Asked", bound=BaseModel)
_OVERRUN = 16
"""So many times the limit is read, and thrown away, for a client that looks at an answer only when all is sent."""

_UNKNOWN = 3
"""So many unknown keys are named in an answer."""


async def read(request: Request, model: type[Asked], limits: Limits) -> Asked:
    """Return the body of a request as a declaration.

    Raises:
        Refused: it is too long (413), too slow (408), no JSON (400), of another type (415), or a value is wrong (422).
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # Other sites can send a browser here with the types of forms, without being asked for their origin.
        raise RequestError(415, "content_type", f"content-type '{kind}': send JSON with content-type: application/json")
    try:
        async with asyncio.timeout(limits.timeout):
            content = await _content(request, limits.size)
    except TimeoutError:
        message = f"the body did not come within {limits.timeout:g} s (--timeout)"
        raise RequestError(408, "body_too_slow", message, {"connection": "close"}) from None
    return checked(parsed(content), model)


async def _content(request: Request, limit: int) -> bytes:
    """Return the bytes of a body, which may say its length beforehand, or not."""
    declared = request.headers.get("content-length", "0")
    if int(declared) > limit and request.headers.get("expect"):
        raise _too_long(limit, ended=False)
    content, length = bytearray(), 0
    async with aclosing(_stream(request)) as stream:
        async for chunk in stream:
            length += len(chunk)
            if length > _OVERRUN * limit:
                raise _too_long(limit, ended=False)
            if length <= limit:
                content += chunk
    if length > limit:
        raise _too_long(limit, ended=True)
    return bytes(content)


async def _stream(request: Request) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect:
        raise RequestError(499, "client_gone", "the client has closed the connection") from None


def _too_long(limit: int, ended: bool) -> RequestError:
    message = f"the body has more than {limit:,} bytes (--max-bytes); send fewer texts at a time"
    return RequestError(413, "body_too_large", message, None if ended else {"connection": "close"})


def parsed(content: bytes) -> Any:
    """Return the value of a JSON text; `RequestError` of what is none, NaN and repeated keys included."""
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_no_number, object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise _malformed(f"byte {error.start} is not UTF-8") from None
    except RecursionError:
        raise _malformed("it nests too deep") from None
    except ValueError as error:
        raise _malformed(str(error)) from None


def checked(tree: Any, model: type[Asked]) -> Asked:
    """Return a value as a declaration; `RequestError` names each key that is wrong."""
    if not isinstance(tree, dict):
        raise RequestError(422, "invalid_body", f"the body is {type(tree).__name__}: expected an object, with keys")
    # A message for each of a hundred thousand keys would take seconds, in which nobody else is answered.
    unknown = [key for key in tree if key not in model.model_fields]
    tree = {key: tree[key] for key in tree if key in model.model_fields} | {key: None for key in unknown[:_UNKNOWN]}
    more = f"; and {len(unknown) - _UNKNOWN:,} more keys" if unknown[_UNKNOWN:] else ""
    try:
        return yaml.check(tree, model, "body")
    except ConfigError as error:
        raise RequestError(422, "invalid_body", "; ".join(str(error).splitlines()) + more) from None


def _malformed(why: str) -> RequestError:
    return RequestError(400, "not_json", f"the body is not JSON: {why}")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise ValueError(f"the key '{next(key for key in counts if counts[key] > 1)}' stands twice")
    return made
