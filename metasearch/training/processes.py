"""What several processes of one run tell each other; of a process that is alone it is nothing.

Every process has all data and weights, computes its shards of an outer step, and takes the same step of the optimiser.
The first process reads and writes the run folder, evaluates, and tells the others.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from metasearch.errors import ProcessLost
from metasearch.learners.base import Values
from metasearch.learners.gradients import Gradient
from metasearch.runs.ranks import Rank, rank
from metasearch.training import rendezvous
from metasearch.training.adding import NOTHING, in_pairs, of_rows, rows_of, spread, union

Made = TypeVar("Made")

_STEP = timedelta(minutes=30)
"""Longest that processes wait for each other within an outer step."""
_WORK = timedelta(days=30)
"""Longest that others wait for the first process, which may encode a corpus; that of one that died ends at once."""


class Processes:
    """The processes of a run, here one alone.

    Attributes:
        rank: which of them this is.
    """

    rank = Rank()

    @property
    def first(self) -> bool:
        """Whether this process writes, evaluates and speaks."""
        return self.rank.number == 0

    def mine(self, shards: int) -> range:
        """Return the numbers of the shards of this process, a whole subtree of the sum over all."""
        each = shards // self.rank.count
        return range(self.rank.number * each, (self.rank.number + 1) * each)

    def gather(self, own: list[Values], device: torch.device) -> list[Values]:
        """Return the values of the shards of all processes on a device, in the order of the shards."""
        return own

    def total(self, gradient: Gradient, parameters: Sequence[Tensor]) -> Gradient:
        """Return the sum of the gradients of all processes in these parameters, in the order of their numbers."""
        return gradient

    def told(self, make: Callable[[], Made]) -> Made:
        """Return what the first process makes; the others wait for it, however long that takes."""
        return make()

    def in_turn(self, make: Callable[[], Made]) -> Made:
        """Return what this process makes, after the first one has: what that writes, such as targets, is then there."""
        if self.first:
            made = make()
            self.told(lambda: None)
            return made
        self.told(lambda: None)
        return make()

    def most(self, number: int) -> int:
        """Return the highest of the numbers that the processes give."""
        return number

    def begin_alike(self, tensors: Sequence[Tensor]) -> None:
        """Give tensors the content that they have in the first process."""

    def end(self) -> None:
        """Wait until the first process has written everything."""


ALONE = Processes()


class Group(Processes):
    """Several processes, which torchrun started; gloo joins them, and NCCL for gradients on GPUs."""

    def __init__(self, own: Rank) -> None:
        self.rank = own
        with _lost():
            gpus = torch.cuda.is_available()
            store, backend = rendezvous.store(), "cpu:gloo,cuda:nccl" if gpus else "gloo"
            if not dist.is_initialized():
                dist.init_process_group(backend, store=store, rank=own.number, world_size=own.count, timeout=_STEP)
            self._patient = dist.new_group(backend="gloo", timeout=_WORK)

    def gather(self, own: list[Values], device: torch.device) -> list[Values]:
        """Return the values of the shards of all processes on a device, in the order of the shards."""
        found = self._each([[value.cpu() for value in values] for values in own])
        return [[value.to(device) for value in values] for shards in found for values in shards]

    def total(self, gradient: Gradient, parameters: Sequence[Tensor]) -> Gradient:
        """Return the sum of the gradients of all processes in these parameters, in the order of their numbers.

        Of a sparse one it has the rows that any process has; it is None where no process has one.
        """
        kinds = [_agreed(each) for each in zip(*self._each([_kind(one) for one in gradient]), strict=True)]
        result: Gradient = [None] * len(gradient)
        for dtype in dict.fromkeys(parameter.dtype for parameter in parameters):
            places = [i for i, kind in enumerate(kinds) if kind is not None and parameters[i].dtype == dtype]
            parts = [_part(gradient[i], parameters[i], kinds[i]) for i in places]
            sums = self._summed(parts) if parts else []
            for i, whole in zip(places, sums, strict=True):
                rows = _rows(kinds[i], parameters[i])
                result[i] = whole if rows is None else of_rows(whole, rows, parameters[i].shape)
        return result

    def told(self, make: Callable[[], Made]) -> Made:
        """Return what the first process makes; the others wait for it, however long that takes."""
        made: list[Any] = [make() if self.first else None]
        with _lost():
            dist.broadcast_object_list(made, src=0, group=self._patient)
        return made[0]  # type: ignore[no-any-return]

    def most(self, number: int) -> int:
        """Return the highest of the numbers that the processes give."""
        found = torch.tensor(number)
        with _lost():
            dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def begin_alike(self, tensors: Sequence[Tensor]) -> None:
        """Give tensors the content that they have in the first process."""
        with _lost():
            for tensor in tensors:
                dist.broadcast(tensor.detach(), src=0)

    def end(self) -> None:
        """Wait until the first process has written everything, and part."""
        self.told(lambda: None)
        dist.destroy_process_group()

    def _each(self, own: Any) -> list[Any]:
        """Return what each process gives, in their order."""
        found: list[Any] = [None] * self.rank.count
        with _lost():
            dist.all_gather_object(found, own, group=self._patient)
        return found

    def _summed(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Return the sums over all processes of tensors that have the same shapes in each.

        Each process adds up one stretch of them all, and gives it to the others: as many bytes as a ring would take.
        """
        count, sizes = self.rank.count, [part.numel() for part in parts]
        missing = -sum(sizes) % count
        flat = torch.cat([*(part.reshape(-1) for part in parts), parts[0].new_zeros(missing)])
        with _lost():
            stretches = torch.empty_like(flat)
            dist.all_to_all_single(stretches, flat)
            dist.all_gather(list(flat.view(count, -1)), in_pairs(stretches.view(count, -1)))
        found = torch.split(flat, [*sizes, missing])
        return [one.view(part.shape) for one, part in zip(found, parts, strict=False)]


def joined() -> Processes:
    """Return the processes that torchrun started together with this one, once all are there; or this one alone.

    Raises:
        ConfigError: the environment is incomplete.
        ProcessLost: another process has ended.
    """
    own = rank()
    return Group(own) if own.count > 1 else ALONE


@contextmanager
def _lost() -> Iterator[None]:
    """Turn the error of a connection to a process that has ended into one of this run."""
    try:
        yield
    except RuntimeError as error:
        raise ProcessLost("another process of the run has ended, or cannot be reached") from error


Kind = Literal["dense"] | Tensor | None
"""Of a gradient: all of a parameter, some rows of it `(n,)` on the CPU, or none."""


def _kind(gradient: Tensor | None) -> Kind:
    if gradient is None:
        return None
    return rows_of(gradient).cpu() if gradient.is_sparse else "dense"


def _agreed(kinds: Sequence[Kind]) -> Kind:
    """Return the kind of the sum of gradients of these kinds."""
    if "dense" in [kind for kind in kinds if isinstance(kind, str)]:
        return "dense"
    rows = [kind for kind in kinds if isinstance(kind, Tensor)]
    return union(rows) if rows else None


def _rows(kind: Kind, parameter: Tensor) -> Tensor | None:
    return kind.to(parameter.device) if isinstance(kind, Tensor) else None


def _part(gradient: Tensor | None, parameter: Tensor, kind: Kind) -> Tensor:
    """Return what a process adds: its gradient in the rows of the sum, where it has one."""
    rows = _rows(kind, parameter)
    if gradient is not None:
        return spread(gradient, rows)
    shape = parameter.shape if rows is None else (len(rows), *parameter.shape[1:])
    return parameter.new_full(shape, NOTHING)
