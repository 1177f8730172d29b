"""HTTP/1.1 as uvicorn speaks it, of clients that say something."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class Protocol(H11Protocol):
    """Closes a connection on which the head of a request does not come in time.

    uvicorn waits for it as long as the client likes, and each connection is one of those that there may be.

    Args:
        patience: seconds from when a connection is there, or the first byte of a further request, to the end of its
            head.
    """

    def __init__(self, *args: Any, patience: float, **keys: Any) -> None:
        super().__init__(*args, **keys)
        self._patience = patience
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the head of a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take bytes in; once a head is whole, there is no more waiting for it."""
        if self._at_rest:
            self._wait()
        super().data_received(data)
        if not self._at_rest:
            self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait_no_more()
        super().connection_lost(exc)

    @property
    def _at_rest(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        if self._end is None:
            self._end = self.loop.call_later(self._patience, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
