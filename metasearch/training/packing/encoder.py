"""An encoder that is packed, sliced and run by several threads."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from metasearch.config.run import Checkpointing
from metasearch.encoders.encoder import Encoder
from metasearch.training.packing.layout import Group, PackedTexts, lay_out
from metasearch.training.packing.network import Network
from metasearch.training.packing.plan import packing_plan
from metasearch.training.packing.workers import Workers

Job = TypeVar("Job")
Result = TypeVar("Result")

_DEFAULT_WORKERS = 4
"""Most jobs at the same time by default; more would cost memory, and idle threads share the work of each operation."""


class PackedEncoder:
    """State kept between meta-batches for an encoder.

    Args:
        encoder: the encoder to train.
        workers: most jobs at the same time; by default as many as torch has threads, up to four, and one on a GPU.

    Attributes:
        plan: how its texts are laid out.
        names: names of the encoder's trainable weights.
        weights: these weights.
        most_workers: the argument `workers`, which may be lowered between two meta-batches.
    """

    def __init__(self, encoder: Encoder, workers: int | None = None) -> None:
        self.encoder = encoder
        self.plan = packing_plan(encoder)
        trainable = {name: weight for name, weight in encoder.embedder.named_parameters() if weight.requires_grad}
        self.names, self.weights = list(trainable), list(trainable.values())
        self.most_workers = workers
        self._checkpointing: Checkpointing = "off"
        self._workers = Workers(partial(Network, encoder, self.plan))

    def checkpoint(self, what: Checkpointing) -> None:
        """Recompute layers (`on`) or a few texts at a time (`texts`) in the backward passes of the batches to come."""
        what = "off" if what == "auto" else what
        if what != self._checkpointing:
            self._checkpointing = what
            self._workers = Workers(partial(Network, self.encoder, self.plan, what))

    def lay_out(self, groups: Sequence[Group]) -> "PackedBatch":
        """Lay out groups of texts, with roles, on one slice of the embedding matrix."""
        most = None
        if self._checkpointing == "gradcache":
            most = most_tokens(self.encoder.device)
        return PackedBatch(self, *lay_out(self.encoder, self.plan, groups, most))

    def each(self, jobs: Sequence[Job], work: Callable[[Network, Job], Result]) -> Iterator[Result]:
        """Yield the result of each job, in their order; several run at the same time."""
        # Networks of threads are copies, so a change of the encoder's mode does not reach them by itself.
        self._workers.train(self.encoder.embedder.training)
        return self._workers.each(jobs, work, self.workers)

    @property
    def workers(self) -> int:
        """Most jobs at the same time; one with dropout, whose random numbers are drawn in order."""
        if self.encoder.embedder.training or self.encoder.device.type != "cpu":
            return 1
        return self.most_workers or min(_DEFAULT_WORKERS, torch.get_num_threads())


class PackedBatch:
    """Groups of texts to encode together, on one slice of the embedding matrix.

    Attributes:
        packed: the encoder.
        texts: the texts of each group.
        rows: rows of the embedding matrix in the slice, ascending; None for the whole matrix.
    """

    def __init__(self, packed: PackedEncoder, texts: Sequence[PackedTexts], rows: Tensor | None) -> None:
        self.packed, self.texts, self.rows = packed, texts, rows

    def cut(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Cut the embedding matrix to the slice, in one or several lists of all weights or their values."""
        return [self._in_slice(i, value.detach()) for i, value in enumerate(values)]

    def spread(self, gradient: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return a gradient of `cut` values for the whole tensors; the slice's is a sparse tensor of rows."""
        return [None if one is None else self._in_whole(i, one) for i, one in enumerate(gradient)]

    def _in_slice(self, place: int, value: Tensor) -> Tensor:
        return value if self.rows is None or not self._is_table(place) else value[self.rows]

    def _in_whole(self, place: int, gradient: Tensor) -> Tensor:
        if self.rows is None or not self._is_table(place):
            return gradient
        return _in_table(gradient, self.packed.weights[place % len(self.packed.weights)], self.rows)

    def _is_table(self, place: int) -> bool:
        return place % len(self.packed.weights) == self.packed.plan.table


def _in_table(of_rows: Tensor, table: Tensor, rows: Tensor) -> Tensor:
    """Return a row gradient as a gradient of the matrix; sparse where devices support it."""
    if table.device.type not in ("cpu", "cuda"):
        return torch.zeros_like(table).index_copy_(0, rows, of_rows)
    # Rows are ascending and distinct, so it is coalesced already; to sort and check them again would cost time.
    return torch.sparse_coo_tensor(rows[None], of_rows, table.shape, is_coalesced=True, check_invariants=False)


def most_tokens(device: torch.device) -> int:
    """Return about how many tokens are computed at a time where passes are recomputed.

    Ours: fewer keep less and make more calls, which weigh more on a GPU.
    """
    return 1024 if device.type == "cpu" else 8192
