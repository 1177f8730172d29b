"""Request bodies: strict JSON, not too long and in time."""

import asyncio
import json
from typing import Any

from fastapi import Request

from metasearch.data.formats.text_files import parse_json
from metasearch.search.server.errors import RequestError
from metasearch.search.server.settings import Limits


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
        limits: Limits = self.app.state.service.limits
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
