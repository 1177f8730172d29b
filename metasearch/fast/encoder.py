"""Meta-batches on the fast engine: texts laid out once, weights sliced to their words, tasks on threads."""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from metasearch.encoders.encoder import Encoder
from metasearch.fast.form import form_of
from metasearch.fast.layout import Group, Texts, lay_out
from metasearch.fast.memory import capacity, kept
from metasearch.fast.network import Network
from metasearch.fast.transfer import Gradient, Objective, Way, Weights
from metasearch.fast.workers import Workers

log = logging.getLogger(__name__)

Task = TypeVar("Task")
Result = TypeVar("Result")

_SHARE = 0.5
"""Of all memory, how much the graphs of second-order steps may take."""
_MOST = 4
"""Tasks at the same time by default; more would cost memory, and the threads that are left share the work of each."""


class Fast:
    """What the fast engine keeps of an encoder from one meta-batch to the next.

    Args:
        encoder: that is trained.
        second_order: how second-order gradients are taken; `auto` keeps the graph where it fits the memory.
        workers: tasks at the same time, at most; by default as many as torch has threads, up to four, and one on a GPU.

    Attributes:
        notes: what of the encoder cannot be done the fastest way and why, one line each.
    """

    def __init__(
        self,
        encoder: Encoder,
        second_order: Literal["auto", "graph", "recompute"] = "auto",
        workers: int | None = None,
    ) -> None:
        self.encoder = encoder
        self.form = form_of(encoder)
        self.notes = self.form.notes
        self._second_order = second_order
        self._most = workers
        self._workers = Workers(partial(Network, encoder, self.form))

    def batch(self, groups: Sequence[Group], ordered: bool = False) -> "Batch":
        """Lay out groups of texts, each of which is encoded together.

        Args:
            groups: of texts and what each is to the encoder.
            ordered: keep the order of tokens, as output `tokens` needs it.
        """
        texts, rows = lay_out(self.encoder, self.form, groups, ordered)
        return Batch(self, texts, rows)

    def each(self, tasks: Sequence[Task], work: Callable[[Network, Task], Result]) -> Iterator[Result]:
        """Yield what becomes of each task, in their order; several run at the same time."""
        self._workers.train(self.encoder.embedder.training)
        return self._workers.each(tasks, work, self.workers)

    @property
    def workers(self) -> int:
        """How many tasks may run at the same time; one where dropout is on, whose random numbers come in a row."""
        if self.encoder.embedder.training or self.encoder.device.type != "cpu":
            return 1
        return self._most or min(_MOST, torch.get_num_threads())

    def way(self, objective: Callable[[Network], Objective], start: Weights, steps: int, tasks: int) -> Way:
        """Return how to take second-order gradients; with `auto`, decided on the first meta-batch and said once.

        With dropout it is always by graph: a step that is computed again would draw other random numbers.

        Args:
            objective: of an inner step.
            start: weights.
            steps: inner steps.
            tasks: in a meta-batch.
        """
        if self.encoder.embedder.training:
            return "graph"
        if self._second_order == "auto":
            (one,) = self.each([None], lambda network, _: kept(objective(network), start))
            # The last loss keeps about half of what a step does, and texts of other tasks are longer or shorter.
            needed = (steps + 1) * one * min(tasks, self.workers)
            there = capacity(self.encoder.device)
            self._second_order = "graph" if needed <= _SHARE * there else "recompute"
            log.info(
                "second order: graphs of %d steps take about %.0f MiB of %.0f MiB of memory: %s",
                steps,
                needed / 2**20,
                there / 2**20,
                {"graph": "kept", "recompute": "inner steps are computed again on the way back"}[self._second_order],
            )
        return self._second_order


class Batch:
    """Texts laid out on one slice of the word table.

    Attributes:
        texts: of each group.
        rows: of the word table, ascending; None for all of them.
    """

    def __init__(self, fast: Fast, texts: Sequence[Texts], rows: Tensor | None) -> None:
        self.fast = fast
        self.texts = texts
        self.rows = rows

    def weights(self, values: Sequence[Tensor]) -> Weights:
        """Return values of the encoder's trainable weights, detached, the word table's cut to the slice.

        Args:
            values: in the order of the weights, or anything of the same shapes, such as their rates.
        """
        found = [value.detach() for value in values]
        if self.rows is not None and self.fast.form.table is not None:
            found[self.fast.form.table] = found[self.fast.form.table][self.rows]
        return found

    def put(self, gradient: Sequence[Tensor | None], parameters: Sequence[nn.Parameter]) -> None:
        """Add a gradient to the `.grad` of parameters, that of the sliced table as a sparse tensor of rows.

        Args:
            gradient: in the shapes that `weights` gives.
            parameters: the encoder's trainable weights, or anything of the same shapes.
        """
        for place, (parameter, found) in enumerate(zip(parameters, gradient, strict=True)):
            if found is None:
                continue
            if self.rows is not None and place == self.fast.form.table:
                found = self._in_table(found, parameter, self.rows)
            parameter.grad = found if parameter.grad is None else parameter.grad + found

    @staticmethod
    def _in_table(found: Tensor, table: Tensor, rows: Tensor) -> Tensor:
        """Return the gradient of rows as one of the table; sparse where devices can."""
        if table.device.type not in ("cpu", "cuda"):
            return torch.zeros_like(table).index_copy_(0, rows, found)
        return torch.sparse_coo_tensor(rows[None], found, table.shape, is_coalesced=True, check_invariants=False)


class Sum:
    """A sum of gradients.

    Args:
        count: of tensors in each; one that no gradient has is None in the sum.
    """

    def __init__(self, count: int) -> None:
        self.gradient: Gradient = [None] * count

    def add(self, gradient: Sequence[Tensor | None], share: float = 1.0) -> None:
        """Add a share of a gradient, in place from the second on."""
        for place, found in enumerate(gradient):
            if found is not None:
                mine = self.gradient[place]
                self.gradient[place] = found * share if mine is None else mine.add_(found, alpha=share)

    def scale(self, factor: float) -> None:
        """Multiply the sum in place."""
        for found in self.gradient:
            if found is not None:
                found.mul_(factor)
