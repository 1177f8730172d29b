"""Request errors: a status, and a body in OpenAI's form."""

import json
from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import HTTPException, RequestValidationError
from pydantic import BaseModel
from starlette.responses import Response

_LONGEST_MESSAGE = 600
"""Characters. A message may quote the request."""
_LONGEST_VALUE = 60
_TYPES = {401: "authentication_error", 429: "rate_limit_error"}


class ErrorFacts(BaseModel):
    """An error: a sentence for people, its kind, the key of the body, and a word for programs."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorAnswer(BaseModel):
    """The form of every error, as read by OpenAI clients."""

    error: ErrorFacts


class RequestError(HTTPException):
    """A request that cannot be answered."""

    def __init__(
        self, status: int, code: str, message: str, param: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)
        self.code = code
        self.param = param

    def response(self) -> Response:
        """Return the answer."""
        kind = _TYPES.get(self.status_code, "invalid_request_error" if self.status_code < 500 else "server_error")
        message = str(self.detail)
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[:_LONGEST_MESSAGE]}..."
        content = ErrorAnswer(error=ErrorFacts(message=message, type=kind, param=self.param, code=self.code))
        # With escapes, as a message may quote a lone surrogate, which has no bytes in UTF-8.
        return Response(json.dumps(content.model_dump()), self.status_code, self.headers, "application/json")


def explain_bug(error: Exception) -> RequestError:
    """Return the error for a bug. It does not quote the exception, which may contain a text."""
    return RequestError(500, "bug", f"a bug in metasearch: {type(error).__name__}; the server's log says where")


def explain_invalid(error: RequestValidationError) -> RequestError:
    """Return the error for an invalid body: key and value per problem."""
    problems = [_explain_problem(item) for item in error.errors()]
    return RequestError(422, "invalid_body", "; ".join(text for _, text in problems), problems[0][0] or None)


def _explain_problem(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return a problem's key and a sentence about it."""
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
