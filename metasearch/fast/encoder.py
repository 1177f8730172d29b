"""An encoder prepared for fast gradients: texts laid out once, weights sliced to their words, jobs on threads."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from metasearch.encoders.encoder import Encoder
from metasearch.fast.layout import Group, lay_out
from metasearch.fast.memory import capacity, graph_size, most_tokens
from metasearch.fast.network import Network
from metasearch.fast.plan import packing_plan
from metasearch.fast.transfer import Gradient, GradientMode, Objective, SecondOrder, Weights
from metasearch.fast.workers import Workers
from metasearch.learners.inner_loop import Rates
from metasearch.spec.run import Checkpointing

log = logging.getLogger(__name__)

Job = TypeVar("Job")
Result = TypeVar("Result")

_GRAPH_SHARE = 0.5
"""Share of all memory that the graphs of second-order steps may take."""
_DEFAULT_WORKERS = 4
"""Most jobs at the same time by default; more would cost memory, and idle threads share the work of each operation."""


class FastEncoder:
    """What is kept of an encoder from one meta-batch to the next.

    Args:
        encoder: the encoder to train.
        second_order: how second-order gradients are taken; `auto` keeps the graph where it fits the memory.
        workers: most jobs at the same time; by default as many as torch has threads, up to four, and one on a GPU.

    Attributes:
        plan: how its texts are laid out.
        weights: trainable weights of the encoder.
    """

    def __init__(self, encoder: Encoder, second_order: SecondOrder = "auto", workers: int | None = None) -> None:
        self.encoder = encoder
        self.plan = packing_plan(encoder)
        self.weights = [weight for weight in encoder.embedder.parameters() if weight.requires_grad]
        self._second_order = second_order
        self._keeps_graphs = False
        self._most = workers
        self._checkpointing: Checkpointing = "off"
        self._workers = Workers(partial(Network, encoder, self.plan))

    def checkpoint(self, what: Checkpointing) -> None:
        """Say what is computed again on the way back, `on` or `texts`; nothing else is, in the meta-batches to come."""
        what = "off" if what == "auto" else what
        if what != self._checkpointing:
            self._checkpointing = what
            self._workers = Workers(partial(Network, self.encoder, self.plan, what))

    @property
    def most(self) -> int | None:
        """About how many tokens a pass has at most; None where there is no need to limit them."""
        return most_tokens(self.encoder.device) if self._checkpointing == "texts" else None

    def each(self, jobs: Sequence[Job], work: Callable[[Network, Job], Result]) -> Iterator[Result]:
        """Yield the result of each job, in their order; several run at the same time."""
        # Networks of threads are copies, so a change of the encoder's mode does not reach them by itself.
        self._workers.train(self.encoder.embedder.training)
        return self._workers.each(jobs, work, self.workers)

    @property
    def workers(self) -> int:
        """Most jobs at the same time; one where dropout is on, whose random numbers come in a row."""
        if self.encoder.embedder.training or self.encoder.device.type != "cpu":
            return 1
        return self._most or min(_DEFAULT_WORKERS, torch.get_num_threads())

    def gradient_mode(
        self, objective: Callable[[Network], Objective], start: Weights, steps: int, jobs: int, rates: Rates = 0.0
    ) -> GradientMode:
        """Return how to take second-order gradients of `jobs` transfers, each of inner steps on such an objective.

        With `auto` it is decided on the first meta-batch, unless `settle` was told. With dropout it is always by graph:
        a step that is computed again would draw other random numbers.
        """
        if self.encoder.embedder.training:
            return "graph"
        if self._second_order == "auto":
            (one,) = self.each([None], lambda network, _: graph_size(objective(network), start, rates))
            # The last loss keeps about half of what a step does, and texts of other jobs are longer or shorter.
            self.settle((steps + 1) * one * min(jobs, self.workers))
        self._keeps_graphs = self._second_order == "graph"
        return "graph" if self._keeps_graphs else "recompute"

    def settle(self, size: int) -> None:
        """Decide once, where it is `auto`, whether second-order graphs of so many bytes are kept; log it."""
        if self._second_order != "auto":
            return
        there, fits = capacity(self.encoder.device), self.keeps_graphs(size)
        self._second_order = "graph" if fits else "recompute"
        sizes = f"graphs of inner steps take about {size / 2**20:.0f} MiB of {there / 2**20:.0f} MiB of memory"
        log.info("second order: %s: %s", sizes, "kept" if fits else "inner steps are computed again on the way back")

    def keeps_graphs(self, size: int) -> bool:
        """Return whether second-order graphs of so many bytes are kept, rather than inner steps computed again."""
        if self._second_order == "auto" and not self.encoder.embedder.training:
            return size <= _GRAPH_SHARE * capacity(self.encoder.device)
        return self._second_order != "recompute" or self.encoder.embedder.training

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Forget at the end of this what `need_less` has changed."""
        before = self._second_order, self._keeps_graphs, self._most
        try:
            yield
        finally:
            self._second_order, self._keeps_graphs, self._most = before

    def need_less(self) -> str | None:
        """Take what comes in a way that needs less memory, with the same gradients; None where there is no such way.

        Returns what is done now, for a message.
        """
        # Not with dropout: what is computed again would draw other random numbers.
        if self._keeps_graphs and not self.encoder.embedder.training:
            self._second_order, self._keeps_graphs = "recompute", False
            return "inner steps are computed again on the way back"
        if self.workers > 1:
            self._most = 1
            return "one episode is computed at a time"
        return None


class Batch:
    """Groups of texts, each of which is encoded together, laid out on one slice of the word table.

    Args:
        fast: the encoder.
        groups: texts of each group, with their roles.

    Attributes:
        texts: the texts of each group.
        rows: rows of the word table in the slice, ascending; None for the whole table.
    """

    def __init__(self, fast: FastEncoder, groups: Sequence[Group]) -> None:
        self.fast = fast
        self.texts, self.rows = lay_out(fast.encoder, fast.plan, groups, fast.most)

    def weights(self, values: Sequence[Tensor]) -> Weights:
        """Return values of the encoder's trainable weights, the word table's cut to the slice."""
        return [self._cut(i, value) for i, value in enumerate(values)]

    def rates(self, rates: Rates) -> Rates:
        """Return inner rates of weights, which may be followed by others, those of the word table cut to the slice."""
        if isinstance(rates, float):
            return rates
        return [self._cut(i, rate) if isinstance(rate, Tensor) else rate for i, rate in enumerate(rates)]

    def _cut(self, place: int, value: Tensor) -> Tensor:
        sliced = self.rows is not None and place == self.fast.plan.table
        return value.detach()[self.rows] if sliced else value.detach()

    def put(self, gradient: Sequence[Tensor | None], parameters: Sequence[Any]) -> None:
        """Add a gradient in the shapes of `weights` to `.grad`; that of the sliced table is a sparse tensor of rows.

        Where a parameter is none, as a rate that is a number, there is no gradient either.
        """
        for i, (parameter, one) in enumerate(zip(parameters, gradient, strict=True)):
            # The optimiser leaves a parameter without a gradient alone; one of zeros would get weight decay.
            if one is None:
                continue
            if self.rows is not None and i == self.fast.plan.table:
                one = self._in_table(one, parameter, self.rows)
            parameter.grad = one if parameter.grad is None else parameter.grad + one

    @staticmethod
    def _in_table(of_rows: Tensor, table: Tensor, rows: Tensor) -> Tensor:
        """Return the gradient of rows as one of the table; sparse where devices can."""
        if table.device.type not in ("cpu", "cuda"):
            return torch.zeros_like(table).index_copy_(0, rows, of_rows)
        # Rows are ascending and distinct, so it is coalesced as it is; to sort and check them again would cost time.
        return torch.sparse_coo_tensor(rows[None], of_rows, table.shape, is_coalesced=True, check_invariants=False)


class Sum:
    """A sum of gradients of `count` tensors each; one that no gradient has is None in the sum."""

    def __init__(self, count: int) -> None:
        self.gradient: Gradient = [None] * count

    def add(self, gradient: Sequence[Tensor | None], share: float = 1.0) -> None:
        """Add a share of a gradient, in place from the second on."""
        for i, one in enumerate(gradient):
            if one is not None:
                total = self.gradient[i]
                # A product is a new tensor, so that what is added later is not written into the caller's gradient.
                self.gradient[i] = one * share if total is None else total.add_(one, alpha=share)

    def scale(self, factor: float) -> None:
        """Multiply the sum in place."""
        for total in self.gradient:
            if total is not None:
                total.mul_(factor)
