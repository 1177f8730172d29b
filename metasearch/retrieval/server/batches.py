"""Texts of several requests, encoded together in one thread.

    request ── ask(work, texts) ──▶ pending ── a few milliseconds ──▶ thread: do(work, texts of several requests)
            ◀──────────── results of its own texts ──────────────────

A request of many texts is done in parts, and goes to the end of the queue after each: small ones do not wait for all of
it. What a request asks for fails for that request alone; one whose client has gone is not begun.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from metasearch.retrieval.server.errors import RequestError
from metasearch.retrieval.server.limits import Limits
from metasearch.retrieval.server.thread import Thread

Do = Callable[[Any, list[str]], Sequence[Any]]
"""Returns a result for each text; the first argument says what is done with them."""


@dataclass(eq=False)
class _Job:
    """Texts of one request, and the results that there are."""

    work: Hashable
    texts: Sequence[str]
    future: asyncio.Future[list[Any]]
    since: float = field(default_factory=time.monotonic)
    results: list[Any] = field(default_factory=list)

    def next(self, count: int, size: int) -> list[str]:
        """Return the texts that come next: so many, or so many characters, but one at least."""
        chosen: list[str] = []
        for text in self.texts[len(self.results) : len(self.results) + count]:
            size -= len(text)
            if chosen and size < 0:
                break
            chosen.append(text)
        return chosen


class Batches:
    """Collects texts and has them done; `run` must be running.

    Args:
        do: called in one thread, with the same work for all texts.
        limits: how many texts at a time, how long they wait for others, and how many requests may wait.
        heard: hears how many texts each batch has.
    """

    def __init__(self, do: Do, limits: Limits, heard: Callable[[int], None] = lambda count: None) -> None:
        self._do = do
        self._limits = limits
        self._heard = heard
        self._pending: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        self._thread: Thread | None = None
        self.waiting = 0
        """Requests that have no answer yet."""

    async def ask(self, work: Hashable, texts: Sequence[str]) -> list[Any]:
        """Return the result of each text.

        Raises:
            Refused: too many requests wait (429).
            Exception: what `do` raises for these texts.
        """
        if self.waiting >= self._limits.waiting:
            message = f"{self.waiting} requests are waiting, as many as may (--max-waiting); try again in a second"
            raise RequestError(429, "too_many_requests", message, {"retry-after": "1"})
        job = _Job(work, texts, asyncio.get_running_loop().create_future())
        self._pending.append(job)
        self._arrived.set()
        self.waiting += 1
        try:
            return await job.future
        finally:
            self.waiting -= 1

    async def run(self) -> None:
        """Do what is asked for, until this is cancelled; then a batch that was begun is done to its end."""
        self._thread = thread = Thread("encoder")
        try:
            while True:
                await self._arrived.wait()
                await self._linger()
                if parts := self._take():
                    self._heard(sum(len(texts) for _, texts in parts))
                    found = await asyncio.get_running_loop().run_in_executor(thread, self._done, parts)
                    self._give(parts, found)
                if not self._pending:
                    self._arrived.clear()
        finally:
            thread.shutdown()

    @property
    def busy(self) -> bool:
        """Whether the thread is at work, on what nobody waits for any more where this does not run."""
        return self._thread is not None and self._thread.busy

    async def _linger(self) -> None:
        """Wait for further texts until the first has waited long enough, or there are enough of them."""
        enough, end = self._limits.batch_texts, self._pending[0].since + self._limits.batch_wait
        left = end - time.monotonic()
        if left > 0 and sum(len(job.texts) for job in self._pending) < enough:
            await asyncio.sleep(left)

    def _take(self) -> list[tuple[_Job, list[str]]]:
        """Return the next batch: the first job in the queue, and those for which the same is to be done."""
        parts: list[tuple[_Job, list[str]]] = []
        count, size = self._limits.batch_texts, self._limits.batch_size
        # A request that was cancelled has no use for its vectors any more.
        jobs = [job for job in self._pending if not job.future.done()]
        for job in jobs:
            if job.work != jobs[0].work or count <= 0:
                continue
            texts = job.next(count, size)
            if parts and sum(map(len, texts)) > size:
                continue
            parts.append((job, texts))
            count, size = count - len(texts), size - sum(map(len, texts))
        chosen = [job for job, _ in parts]
        self._pending = deque(job for job in jobs if job not in chosen)
        return parts

    def _done(self, parts: list[tuple[_Job, list[str]]]) -> list[Sequence[Any] | Exception]:
        """Return the results of each part, or its error; in the thread."""
        texts = [text for _, part in parts for text in part]
        try:
            results = self._do(parts[0][0].work, texts)
        except Exception as error:
            # Whose fault it is shows when each is done alone.
            return [error] if len(parts) == 1 else [self._done([part])[0] for part in parts]
        found: list[Sequence[Any] | Exception] = []
        start = 0
        for _, part in parts:
            found.append(results[start : start + len(part)])
            start += len(part)
        return found

    def _give(self, parts: list[tuple[_Job, list[str]]], found: list[Sequence[Any] | Exception]) -> None:
        """Give requests their results; those with further texts wait again, at the end of the queue."""
        for (job, _), results in zip(parts, found, strict=True):
            if job.future.done():
                continue
            if isinstance(results, Exception):
                job.future.set_exception(results)
                continue
            job.results.extend(results)
            if len(job.results) == len(job.texts):
                job.future.set_result(job.results)
            else:
                self._pending.append(job)
