"""The packed encoder: its layout, and a network for each thread. It is kept between meta-batches."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import local
from typing import TypeVar

import torch
from torch import Tensor

from metasearch.config.run import Checkpointing
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.encoder import Encoder
from metasearch.training.distributed import of_rows
from metasearch.training.packing.layout import Group, PackedTexts, lay_out, lay_out_vectors
from metasearch.training.packing.network import Network
from metasearch.training.packing.probe import packing_plan

Job = TypeVar("Job")
Result = TypeVar("Result")


class Workers:
    """Threads, each with its own network from `make`."""

    def __init__(self, make: Callable[[], Network]) -> None:
        self._make = make
        self._networks: list[Network] = [make()]

    def each(self, jobs: Sequence[Job], work: Callable[[Network, Job], Result], most: int) -> list[Result]:
        """Return each job's result, in their order, by `most` threads; by the caller's own if it is 1."""
        count = min(len(jobs), most)
        if count <= 1:
            return [work(self._networks[0], job) for job in jobs]
        while len(self._networks) < count:
            self._networks.append(self._make())
        # Together they have as many threads of operations as the caller alone, whose own number is a setting of it.
        before, own, networks = torch.get_num_threads(), local(), iter(self._networks)
        threads = max(1, before // count)

        def begin() -> None:
            torch.set_num_threads(threads)
            own.network = next(networks)

        # When a job fails, `map` cancels those that wait, and the pool waits for those that run: a network that still
        # runs must not be given to the next jobs.
        try:
            with ThreadPoolExecutor(count, "metasearch-worker", begin) as pool:
                return list(pool.map(lambda job: work(own.network, job), jobs))
        finally:
            # What a worker sets is also the number of each thread that anyone starts later.
            torch.set_num_threads(before)

    def train(self, mode: bool) -> None:
        """Turn dropout on or off."""
        for network in self._networks:
            network.train(mode)


_DEFAULT_WORKERS = 4
"""Most jobs at the same time by default; more would cost memory, and idle threads share each operation's work."""


class PackedEncoder:
    """State kept between meta-batches for an encoder.

    Args:
        encoder: the encoder to train.
        workers: most jobs at the same time; by default as many as torch has threads, up to four, and one on a GPU.
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
        """Recompute `layers`, or with `gradcache` a few texts at a time, in the next batches' backward passes."""
        what = "off" if what == "auto" else what
        if what != self._checkpointing:
            self._checkpointing = what
            self._workers = Workers(partial(Network, self.encoder, self.plan, what))

    def lay_out(self, groups: Sequence[Group]) -> "PackedBatch":
        """Lay out text groups, with roles, on one slice of the embedding matrix, or of an adapter."""
        if isinstance(self.encoder, AdaptedEncoder):
            texts, basis = lay_out_vectors(self.encoder, groups)
            return PackedBatch(self, texts, None, basis)
        most = most_tokens(self.encoder.device) if self._checkpointing == "gradcache" else None
        return PackedBatch(self, *lay_out(self.encoder, self.plan, groups, most))

    def each(self, jobs: Sequence[Job], work: Callable[[Network, Job], Result]) -> list[Result]:
        """Return each job's result, in their order; several run at the same time."""
        # Networks of threads are copies, so a change of the encoder's mode does not reach them by itself.
        self._workers.train(self.encoder.embedder.training)
        return self._workers.each(jobs, work, self.workers)

    @property
    def workers(self) -> int:
        """Most jobs at the same time; one with dropout, whose random numbers are drawn in order."""
        encoder = self.encoder
        # A step of an adapter is over before a thread begins.
        if encoder.embedder.training or encoder.device.type != "cpu" or encoder.adapter is not None:
            return 1
        return self.most_workers or min(_DEFAULT_WORKERS, torch.get_num_threads())


class PackedBatch:
    """Text groups to encode together, on a slice of the embedding matrix with these rows; None for all rows.

    Of an adapter, `basis` spans the slice (`lay_out_vectors`).
    """

    def __init__(
        self, packed: PackedEncoder, texts: Sequence[PackedTexts], rows: Tensor | None, basis: Tensor | None = None
    ) -> None:
        self.packed, self.texts, self.rows, self._basis = packed, texts, rows, basis

    def cut(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Cut the embedding matrix to the slice, in one or several lists of all weights or their values."""
        if len(values) > len(self.packed.weights):
            self._basis = None  # rates of each weight, as in Meta-SGD, need all of an adapter
        if self._basis is not None:
            return [value.detach() @ self._basis.T for value in values]
        return [value.detach()[self.rows] if self._is_sliced(i) else value.detach() for i, value in enumerate(values)]

    def spread(self, gradient: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return a gradient in `cut` values for the whole tensors; the slice's is a sparse tensor with these rows."""
        if self._basis is not None:
            return [None if one is None else one @ self._basis for one in gradient]
        return [self._whole(one) if self._is_sliced(i) else one for i, one in enumerate(gradient)]

    def _is_sliced(self, place: int) -> bool:
        return self.rows is not None and place % len(self.packed.weights) == self.packed.plan.table

    def _whole(self, gradient: Tensor | None) -> Tensor | None:
        """Return the slice's gradient for the whole matrix; sparse where devices support it."""
        if gradient is None:
            return None
        assert self.rows is not None
        assert self.packed.plan.table is not None
        table = self.packed.weights[self.packed.plan.table]
        if table.device.type not in ("cpu", "cuda"):
            return torch.zeros_like(table).index_copy_(0, self.rows, gradient)
        # Rows are ascending and distinct.
        return of_rows(gradient, self.rows, table.shape)


def most_tokens(device: torch.device) -> int:
    """Return about how many tokens are computed at a time where passes are recomputed; calls cost more on a GPU."""
    return 1024 if device.type == "cpu" else 8192
