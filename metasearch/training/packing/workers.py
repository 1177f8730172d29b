"""Run a meta-batch's jobs on threads.

On a CPU two jobs on one thread each are faster than one job on two threads: a matrix product of a few thousand tokens
does not fill many cores. Results come in the order of the jobs, whichever thread was faster, so sums over them have the
same bits every time.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import TypeVar

import torch

from metasearch.training.packing.network import Network

Job = TypeVar("Job")
Result = TypeVar("Result")


class Workers:
    """Threads, each with its own network from `make`."""

    def __init__(self, make: Callable[[], Network]) -> None:
        self._make = make
        self._networks: list[Network] = [make()]
        self._pools: dict[tuple[int, int], ThreadPoolExecutor] = {}

    def each(self, jobs: Sequence[Job], work: Callable[[Network, Job], Result], most: int) -> Iterator[Result]:
        """Yield the result of `work` on each job, in their order, by `most` threads; by the caller's own if it is 1."""
        count = min(len(jobs), most)
        if count <= 1:
            yield from (work(self._networks[0], job) for job in jobs)
            return
        while len(self._networks) < count:
            self._networks.append(self._make())
        # As many networks as threads, so no job ever waits for one.
        free: SimpleQueue[Network] = SimpleQueue()
        for network in self._networks[:count]:
            free.put(network)

        def run(job: Job) -> Result:
            network = free.get()
            try:
                return work(network, job)
            finally:
                free.put(network)

        # Together they have as many threads of operations as the caller alone.
        pool = self._pool(count, max(1, torch.get_num_threads() // count))
        waiting: deque[Future[Result]] = deque()
        try:
            for job in jobs:
                # One more than there are threads: none is idle, and few results wait for their turn.
                if len(waiting) > count:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(run, job))
            while waiting:
                yield waiting.popleft().result()
        finally:
            # Also when a job failed, or the caller stopped half-way.
            for future in waiting:
                future.cancel()
            wait(waiting)  # a network that still runs must not be given to the next jobs

    def train(self, mode: bool) -> None:
        """Turn dropout on or off."""
        for network in self._networks:
            network.train(mode)

    def _pool(self, count: int, threads: int) -> ThreadPoolExecutor:
        if (count, threads) not in self._pools:
            # The number of threads of an operation is a setting of the thread that calls it; the caller keeps its own.
            self._pools[count, threads] = ThreadPoolExecutor(
                count, "metasearch-worker", initializer=torch.set_num_threads, initargs=(threads,)
            )
        return self._pools[count, threads]
