"""Sums of gradients over shards, and the processes of a run, which exchange them through torch.distributed.

Every process has all data and weights, computes its shards of an outer step, and takes the same step of the optimiser.
The first process reads and writes the run folder, evaluates, and broadcasts to the others.

Sums of floating-point numbers depend on their order. Gradients of shards are added along a balanced binary tree, and a
process that has a block of 2^k shards, from a multiple of 2^k on, has a whole subtree: the bits are the same for any
number of processes.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import Store
from torch.distributed.rendezvous import rendezvous

from metasearch.algorithms.base import Values
from metasearch.algorithms.inner_loop import Gradient
from metasearch.errors import ProcessLost
from metasearch.runs.torchrun_env import Rank, rank

Made = TypeVar("Made")

_STEP = timedelta(minutes=30)
"""Longest that processes wait for each other within an outer step."""
_WORK = timedelta(days=30)
"""Longest that others wait for the first process, which may encode a corpus; one that died ends the wait."""


class GradientSum:
    """A sum over dense gradients with `count` tensors; a tensor without gradient is None."""

    def __init__(self, count: int) -> None:
        self.gradient: Gradient = [None] * count

    def add(self, gradient: Sequence[Tensor | None], share: float = 1.0) -> None:
        """Add a partial gradient, in place after the first."""
        for i, one in enumerate(gradient):
            if one is not None:
                total = self.gradient[i]
                # A product is a new tensor, so that what is added later is not written into the caller's gradient.
                self.gradient[i] = one * share if total is None else total.add_(one, alpha=share)


class TreeSum:
    """The sum of 2^k successive gradients, holding at most k + 1."""

    def __init__(self) -> None:
        self._sums: list[tuple[int, Gradient]] = []

    def add(self, gradient: Gradient) -> None:
        """Add the next shard's gradient."""
        count = 1
        # As in a binary counter: two sums of as many shards become one.
        while self._sums and self._sums[-1][0] == count:
            _, before = self._sums.pop()
            gradient, count = added(before, gradient), 2 * count
        self._sums.append((count, gradient))

    @property
    def total(self) -> Gradient:
        """The sum of all gradients; their number must be a power of two."""
        ((_, total),) = self._sums
        return total


def added(first: Gradient, second: Gradient) -> Gradient:
    """Return two gradients' sum: dense, coalesced sparse rows, or None if both are."""
    return [_added(one, other) for one, other in zip(first, second, strict=True)]


def _added(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    if one.is_sparse and other.is_sparse:
        return (one + other).coalesce()
    return one.to_dense() + other.to_dense()


def of_rows(values: Tensor, rows: Tensor, shape: torch.Size) -> Tensor:
    """Return a coalesced matrix gradient from ascending, distinct rows."""
    # To sort and check them again would cost time.
    return torch.sparse_coo_tensor(rows[None], values, shape, is_coalesced=True, check_invariants=False)


class ProcessGroup:
    """The processes of a run; a single process waits for nobody. gloo connects them, NCCL moves GPU gradients."""

    def __init__(self, own: Rank | None = None) -> None:
        self.rank = own or Rank()
        if self.rank.count == 1:
            return
        with _lost():
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            store, number, count = shared_store(), self.rank.number, self.rank.count
            if not dist.is_initialized():
                dist.init_process_group(backend, store=store, rank=number, world_size=count, timeout=_STEP)
            self._patient = dist.new_group(backend="gloo", timeout=_WORK)

    @property
    def first(self) -> bool:
        """Whether this process writes, evaluates and speaks."""
        return self.rank.number == 0

    def local_shards(self, shards: int) -> range:
        """Return this process's shard numbers, a whole subtree."""
        each = shards // self.rank.count
        return range(self.rank.number * each, (self.rank.number + 1) * each)

    def gather(self, own: list[Values], device: torch.device) -> list[Values]:
        """Return all shards' values, from all processes, on a device and in order."""
        if self.rank.count == 1:
            return own
        found = self._each([{name: value.cpu() for name, value in values.items()} for values in own])
        return [{name: value.to(device) for name, value in values.items()} for shards in found for values in shards]

    def total(self, gradient: Gradient, parameters: Sequence[Tensor]) -> Gradient:
        """Return these parameters' gradients, summed over all processes, along a binary tree.

        Pairs of neighbours exchange their sums, then pairs of pairs, and so on: after log₂ of the number of processes
        all have the same bits. A sum is None where no process has a gradient.
        """
        distance = 1
        while distance < self.rank.count:
            gradient = added(gradient, self._swapped(gradient, parameters, self.rank.number ^ distance))
            distance *= 2
        return gradient

    def broadcast_object(self, make: Callable[[], Made]) -> Made:
        """Return the first process's result; the others wait for it."""
        if self.rank.count == 1:
            return make()
        made: list[Any] = [make() if self.first else None]
        with _lost():
            dist.broadcast_object_list(made, src=0, group=self._patient)
        return made[0]  # type: ignore[no-any-return]

    def rank_zero_first(self, make: Callable[[], Made]) -> Made:
        """Return this process's result, after the first process has finished: files it writes, such as targets, then
        exist.
        """
        made = [make()] if self.first else []
        self.broadcast_object(lambda: None)
        return made[0] if made else make()

    def all_reduce_max(self, number: int) -> int:
        """Return the maximum over processes."""
        found = torch.tensor(number)
        if self.rank.count > 1:
            with _lost():
                dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def broadcast_tensors(self, tensors: Sequence[Tensor]) -> None:
        """Give tensors the content that they have in the first process."""
        if self.rank.count > 1:
            with _lost():
                for tensor in tensors:
                    dist.broadcast(tensor.detach(), src=0)

    def end(self) -> None:
        """Wait until the first process has written everything, and part."""
        if self.rank.count > 1:
            self.broadcast_object(lambda: None)
            dist.destroy_process_group()

    def _each(self, own: Any) -> list[Any]:
        """Return what each process gives, in their order."""
        found: list[Any] = [None] * self.rank.count
        with _lost():
            dist.all_gather_object(found, own, group=self._patient)
        return found

    def _swapped(self, gradient: Gradient, parameters: Sequence[Tensor], other: int) -> Gradient:
        """Exchange gradients with another process; return its gradient."""
        kinds = self._each([_rows_on_cpu(one) for one in gradient])
        theirs: Gradient = []
        for kind, parameter in zip(kinds[other], parameters, strict=True):
            shape = (len(kind), *parameter.shape[1:]) if isinstance(kind, Tensor) else parameter.shape
            theirs.append(None if kind is None else parameter.new_empty(shape))
        local_shards = [one.values() if one.is_sparse else one.contiguous() for one in gradient if one is not None]
        ways = ((dist.isend, local_shards), (dist.irecv, [one for one in theirs if one is not None]))
        swap = [dist.P2POp(way, one, other) for way, tensors in ways for one in tensors if one.numel()]
        with _lost():
            for work in dist.batch_isend_irecv(swap) if swap else ():
                work.wait()
        return [
            of_rows(one, kind.to(one.device), parameter.shape) if isinstance(kind, Tensor) and one is not None else one
            for one, kind, parameter in zip(theirs, kinds[other], parameters, strict=True)
        ]


def _rows_on_cpu(gradient: Tensor | None) -> Tensor | str | None:
    """Return the rows of a sparse gradient, `all` for a dense one, and None without gradient."""
    if gradient is None:
        return None
    return gradient.indices()[0].cpu() if gradient.is_sparse else "all"


SINGLE_PROCESS = ProcessGroup()


def join_processes() -> ProcessGroup:
    """Return the processes that torchrun started together, or a single one.

    `ConfigError` if the environment is incomplete, `ProcessLost` if another process has ended.
    """
    own = rank()
    return ProcessGroup(own) if own.count > 1 else SINGLE_PROCESS


@contextmanager
def _lost() -> Iterator[None]:
    """Turn a lost connection to another process into an error of this run."""
    try:
        yield
    except RuntimeError as error:
        raise ProcessLost("another process of the run has ended or cannot be reached") from error


# Rendezvous of a run's processes, and the choice of one process to report why the run ended.

_MEET = timedelta(minutes=10)
"""Longest to wait for the process that keeps the store."""
_GRACE_SECONDS = 5.0
"""How long another process waits for the first one to say an error that both may have."""
_CODE, _CLAIM = "metasearch/code", "metasearch/claim"


@cache
def shared_store() -> Store:
    """Return the store that torchrun, or the first process, keeps for all."""
    found, _, _ = next(rendezvous("env://", timeout=_MEET))
    return found  # type: ignore[no-any-return]


def ended_before(code: int) -> int | None:
    """Return the first failed process's exit code; None if it is this one, which then reports the error.

    The first process has priority over others that fail at the same time. Without the store, it alone reports.
    """
    first = rank().number == 0
    try:
        shared = shared_store()
        until = time.monotonic() + (0 if first else _GRACE_SECONDS)
        while time.monotonic() < until and not shared.check([_CODE]):
            time.sleep(0.05)
        if shared.add(_CLAIM, 1) == 1:
            shared.set(_CODE, str(code))
            return None
        return int(shared.get(_CODE))
    except (RuntimeError, ValueError):  # torch's own errors of a store that has ended are RuntimeErrors
        return None if first else code
