"""Requests that are refused: a status, and a body in the form that clients of OpenAI's interface read."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

_LONGEST = 600
"""Characters of a message: it may quote what was sent."""
_TYPES = {401: "authentication_error", 429: "rate_limit_error"}


class RequestError(Exception):
    """A request that cannot be answered.

    Args:
        status: of HTTP.
        code: a word that programs can tell it by.
        message: one sentence for people: the value, the limit, and what would be right.
        headers: further ones of the answer.
    """

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """Return the answer."""
        kind = _TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        message = str(self) if len(str(self)) <= _LONGEST else f"{str(self)[:_LONGEST]}..."
        error = {"message": message, "type": kind, "param": None, "code": self.code}
        return answer({"error": error}, self.status, self.headers)


def answer(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return JSON as an answer."""
    # A lone surrogate, which a message may quote, has no bytes in UTF-8: it stays an escape.
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    body = text.encode("utf-8", "backslashreplace")
    return Response(body, status, {"cache-control": "no-store", **(headers or {})}, "application/json")
