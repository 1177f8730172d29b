"""Request bodies: strict JSON, plain or packed, not too long and in time."""

import asyncio
import gzip
import io
import json
import zlib
from typing import Any

from fastapi import Request

from metasearch.data.formats.text_files import parse_json
from metasearch.search.server.errors import RequestError
from metasearch.search.server.settings import Limits

_PLAIN = "identity"
_CODINGS = ("gzip", "x-gzip", "deflate")


class JsonRequest(Request):
    """A request whose body is strict JSON, not too long, and comes in time."""

    async def body(self) -> bytes:
        """Return the body, unpacked.

        `RequestError` if it is not declared as JSON or is packed otherwise (415), too long (413) or too slow (408).
        """
        if not hasattr(self, "_body"):
            kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                # A page of another site may send the types of forms without asking first.
                problem = f"content-type '{kind}': send JSON with content-type: application/json"
                raise RequestError(415, "content_type", problem)
            coding = ", ".join(self.headers.getlist("content-encoding")).strip().lower() or _PLAIN
            if coding not in (_PLAIN, *_CODINGS):
                known = ", ".join(_CODINGS)
                problem = f"content-encoding '{coding}': send the body plain, or in one of {known}"
                raise RequestError(415, "content_encoding", problem, headers={"accept-encoding": known})
            content = await self._read()
            self._body = content if coding == _PLAIN else self._unpacked(content, coding)
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
        self._require_size(length)
        return bytes(content)

    def _require_size(self, length: int) -> None:
        limit = self.app.state.service.limits.size
        if length > limit:
            problem = f"the body has more than {limit:,} bytes (--max-bytes); send fewer texts at a time"
            raise RequestError(413, "body_too_large", problem)

    def _unpacked(self, content: bytes, coding: str) -> bytes:
        """Return a body that was packed by gzip or deflate; it is unpacked to one byte more than the limit at most."""
        limit = self.app.state.service.limits.size
        try:
            if not content:
                raise EOFError("it is empty")
            if coding == "deflate":
                # In a zlib container (RFC 9110, 8.4.1.2), which some clients leave out; its first byte ends in 8.
                bare = content[:1] and content[0] & 15 != 8
                unpacker = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)
                found = unpacker.decompress(content, limit + 1)
                if len(found) <= limit and (not unpacker.eof or unpacker.unused_data):
                    raise EOFError("it has more after its end" if unpacker.eof else "it is incomplete")
            else:
                with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                    found = file.read(limit + 1)
        except (zlib.error, EOFError, OSError) as error:
            raise RequestError(400, "not_packed", f"the body is not {coding}: {error}") from None
        self._require_size(len(found))
        return found

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
