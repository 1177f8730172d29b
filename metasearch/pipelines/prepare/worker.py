"""What a process of a preparation does: cleans blocks of lines, and writes shards. It never imports torch."""

import json
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing import active_children, get_context
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from metasearch.config.base import FrozenConfig
from metasearch.data.documents.detect import detector
from metasearch.data.overlap import Index, TestSet, key
from metasearch.data.parallel.corpus import Sides
from metasearch.data.prepared.blocks import Rules, scan
from metasearch.data.prepared.manifest import Asked, ShardCounts
from metasearch.data.prepared.plan import ShardPieces, make_shard
from metasearch.errors import RunFolderError
from metasearch.io import atomic_write

_KNOWN = 2**14
"""Texts of which is remembered whether they stand in a test set, as many pairs share their source."""


class Job(FrozenConfig):
    """What all processes of a preparation know.

    Attributes:
        folder: of the corpus.
        asked: what was asked for.
        tests: texts that are left out.
    """

    folder: Path
    asked: Asked
    tests: tuple[TestSet, ...]


class Worker:
    """Does one job's work."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._rules = Rules(job.asked.settings, job.asked.across, language_of(job.asked), _excluded(job.tests))

    def scan(self, path: Path, lines: Sequence[Sides | None], first: int, part: int, codes: tuple[str, str]) -> int:
        """Clean a block of lines; see `metasearch.data.prepared.blocks.scan`. Returns how many these are."""
        scan(path, self._rules, lines, first, part, codes)
        return len(lines)

    def make(self, number: int, pieces: ShardPieces) -> ShardCounts:
        """Make a shard; see `metasearch.data.prepared.plan.make_shard`."""
        return make_shard(self.job.folder, number, pieces)


def language_of(asked: Asked) -> Any:
    """Return what tells the language of a text; None where it is not asked for; `ConfigError` as `detector`."""
    return detector(() if asked.detect == ("all",) else asked.detect) if asked.detect else None


def _excluded(tests: Sequence[TestSet]) -> Any:
    indices = [Index(test) for test in tests]

    @lru_cache(_KNOWN)
    def found(text: str) -> str:
        normalised = key(text)
        return next((index.name for index in indices if index.find(normalised)), "")

    return found if indices else None


_worker: Worker


def begin(path: Path) -> None:
    """Make this process one of the job in a file; it ends with the process that started it, however that ends."""
    global _worker
    # Ctrl-C reaches all processes of a terminal; the first one says what there is, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    _worker = Worker(Job.model_validate(json.loads(path.read_bytes())))


def call(name: str, *arguments: Any) -> Any:
    """Do a piece of the job that `begin` was given."""
    return getattr(_worker, name)(*arguments)


def _end_with(sentinel: Any) -> None:
    wait([sentinel])
    os._exit(1)


# Pieces of a preparation, done by several processes in any order and returned in theirs.


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
            atomic_write(path, json.dumps(self._job.model_dump(mode="json")))
            self._pool = ProcessPoolExecutor(self._processes, fresh, begin, (path,))
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
                waiting.append(self._pool.submit(call, name, *arguments))
                if len(waiting) > self._processes + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise RunFolderError(
                f"{self._job.folder}: a process of the preparation died, perhaps out of memory; finished parts are "
                "kept. Run the command again, with fewer --jobs if memory is short"
            ) from None
