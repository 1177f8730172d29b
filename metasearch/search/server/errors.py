"""Request errors: a status, and a body in OpenAI's form."""

import json
from collections.abc import Mapping

from fastapi.exceptions import HTTPException
from pydantic import BaseModel
from starlette.responses import Response

_LONGEST_MESSAGE = 600
"""Characters. A message may quote the request."""
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

    @classmethod
    def of_bug(cls, error: Exception) -> "RequestError":
        """Return the error for a bug. It does not quote the exception, which may contain a text."""
        return cls(500, "bug", f"a bug in metasearch: {type(error).__name__}; the server's log says where")

    def response(self) -> Response:
        """Return the answer."""
        kind = _TYPES.get(self.status_code, "invalid_request_error" if self.status_code < 500 else "server_error")
        message = str(self.detail)
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[:_LONGEST_MESSAGE]}..."
        content = ErrorAnswer(error=ErrorFacts(message=message, type=kind, param=self.param, code=self.code))
        # With escapes, as a message may quote a lone surrogate, which has no bytes in UTF-8.
        return Response(json.dumps(content.model_dump()), self.status_code, self.headers, "application/json")
