"""Encode texts from several requests together, in one thread.

    request ── submit(work, texts) ──▶ pending ── a few milliseconds ──▶ thread: do(work, texts of several requests)
            ◀────────────── results of its own texts ──────────────────

A request of many texts is done in parts and rejoins the queue after each part, so small requests do not wait for all of
it. An error reaches only the request that caused it. A request whose client has gone is dropped.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from metasearch.search.server.errors import RequestError
from metasearch.search.server.settings import Limits

Do = Callable[[Any, list[str]], Sequence[Any]]
"""Returns one result for each text; the first argument is the work."""


@dataclass(eq=False)
class _Job:
    """A request's texts, and its results so far."""

    work: Hashable
    texts: Sequence[str]
    future: asyncio.Future[list[Any]]
    since: float = field(default_factory=time.monotonic)
    results: list[Any] = field(default_factory=list)


Part = tuple[_Job, list[str]]


class Batcher:
    """Collects texts into batches and has them done; `run` must be running."""

    def __init__(self, do: Do, limits: Limits, observe: Callable[[int], None] = lambda count: None) -> None:
        self._do = do
        self._limits = limits
        self._observe = observe
        self._pending: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        self._batch: Future[Any] | None = None
        self.waiting = 0
        """Requests that have no answer yet."""

    @property
    def busy(self) -> bool:
        """Whether the thread is at work, possibly on a batch that nobody waits for."""
        return self._batch is not None and not self._batch.done()

    def submit(self, work: Hashable, texts: Sequence[str]) -> asyncio.Future[list[Any]]:
        """Queue texts; the future gets each text's result, or an exception of `do`. Cancel it to drop them."""
        if self.waiting >= self._limits.waiting:
            message = f"{self.waiting} requests are waiting, the limit (--max-waiting); try again in a second"
            raise RequestError(429, "too_many_requests", message, headers={"retry-after": "1"})
        job = _Job(work, texts, asyncio.get_running_loop().create_future())
        self._pending.append(job)
        self._arrived.set()
        self.waiting += 1
        job.future.add_done_callback(self._count_done)
        return job.future

    def _count_done(self, future: asyncio.Future[list[Any]]) -> None:
        self.waiting -= 1

    async def run(self) -> None:
        """Work until cancelled. A batch that has begun is still done to its end."""
        thread = ThreadPoolExecutor(1, "encoder")
        try:
            while True:
                await self._arrived.wait()
                await self._linger()
                if parts := self._take():
                    self._observe(sum(len(texts) for _, texts in parts))
                    self._batch = thread.submit(self._work, parts)
                    self._deliver(parts, await asyncio.wrap_future(self._batch))
                if not self._pending:
                    self._arrived.clear()
        finally:
            thread.shutdown(wait=False)

    async def _linger(self) -> None:
        left = self._pending[0].since + self._limits.batch_wait / 1000 - time.monotonic()
        if left > 0 and sum(len(job.texts) for job in self._pending) < self._limits.batch_texts:
            await asyncio.sleep(left)

    def _take(self) -> list[Part]:
        """Return the next batch: the first job, and others with the same work while there is room."""
        parts: list[Part] = []
        left: list[_Job] = []
        room = self._limits.batch_texts
        jobs = [job for job in self._pending if not job.future.done()]
        for job in jobs:
            if job.work == jobs[0].work and room > 0:
                done = len(job.results)
                parts.append((job, list(job.texts[done : done + room])))
                room -= len(parts[-1][1])
            else:
                left.append(job)
        self._pending = deque(left)
        return parts

    def _work(self, parts: list[Part]) -> list[Sequence[Any] | Exception]:
        """Return each part's results or error; runs in the thread."""
        try:
            results = self._do(parts[0][0].work, [text for _, texts in parts for text in texts])
        except Exception as error:
            # Done alone, each part shows whether it caused the error.
            return [error] if len(parts) == 1 else [self._work([part])[0] for part in parts]
        remaining = iter(results)
        return [[next(remaining) for _ in texts] for _, texts in parts]

    def _deliver(self, parts: list[Part], found: list[Sequence[Any] | Exception]) -> None:
        """Give requests their results; requests with further texts rejoin the queue."""
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
