"""Pieces of a preparation, done by several processes in any order and returned in theirs."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from typing import Any

from metasearch.errors import RunFolderError
from metasearch.files import write_whole
from metasearch.jobs.prepare import worker
from metasearch.jobs.prepare.worker import Job, Worker


class Pool:
    """Processes that do a job; with one there is none beside this. To be entered as a context.

    Args:
        job: that they do.
        processes: how many.
    """

    def __init__(self, job: Job, processes: int) -> None:
        self._job, self._processes = job, processes
        self._pool: ProcessPoolExecutor | None = None
        self._own: Worker | None = None
        self._others: set[BaseProcess] = set()

    def __enter__(self) -> "Pool":
        if self._processes > 1:
            # Started anew: a copy of a process with threads, as torch and tokenizers have, may wait forever.
            fresh = get_context("spawn")
            self._others = set(active_children())
            # By way of a file: a process that is stopped while another one begins must not leave it half a message.
            path = self._job.folder / "work" / "job.json"
            write_whole(path, self._job.to_json())
            self._pool = ProcessPoolExecutor(self._processes, fresh, worker.begin, (path,))
        else:
            self._own = Worker(self._job)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._pool is None:
            return
        # What they have not finished has no name yet, and would take its time.
        for process in set(active_children()) - self._others if kind else ():
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def each(self, name: str, calls: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield what a method of `Worker` returns for each call, in their order.

        Only few calls are taken ahead, so that little is held in memory.

        Raises:
            RunFolderError: a process died, say for want of memory.
        """
        if self._pool is None:
            yield from (getattr(self._own, name)(*arguments) for arguments in calls)
            return
        waiting: deque[Future[Any]] = deque()
        try:
            for arguments in calls:
                waiting.append(self._pool.submit(worker.call, name, *arguments))
                if len(waiting) > self._processes + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise RunFolderError(
                f"{self._job.folder}: a process of the preparation died, as for want of memory; what is done stays. "
                "Give the command again, with fewer --jobs where memory is short"
            ) from None
