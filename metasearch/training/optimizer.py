"""The outer optimiser, AdamW or LARS, and its state by parameter name."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from metasearch.config.recipe import Outer

# LARS: momentum SGD with a rate for each layer.


class LARS(torch.optim.Optimizer):
    """Layer-wise adaptive rate scaling (You et al., 2017, "Large Batch Training of Convolutional Networks").

    For each parameter w with gradient g, rate γ, momentum m and weight decay β (Algorithm 1):

        λ = η ‖w‖ / (‖g‖ + β ‖w‖)
        v ← m v + γ λ (g + β w)
        w ← w − v

    λ is 1 where ‖w‖ or ‖g‖ is 0, or a parameter that begins at 0 would stay there; and in parameter groups with
    `adaptive=False`. A sparse gradient is taken as a dense one. The arguments are γ, m, β and η.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = 1e-3,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust, "adaptive": True}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update the parameters that have a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    gradient = weight.grad.to_dense() if weight.grad.is_sparse else weight.grad
                    self._update(weight, gradient, group)

    def _update(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        decay = group["weight_decay"]
        move = gradient.add(weight, alpha=decay)
        if group["adaptive"]:
            w, g = torch.linalg.vector_norm(weight), torch.linalg.vector_norm(gradient)
            # No Python `if`, which would wait for the GPU; what the branch that is not taken divides by 0 is dropped.
            move *= torch.where((w > 0) & (g > 0), group["trust"] * w / (g + decay * w), 1.0)
        move *= group["lr"]
        if group["momentum"]:
            state = self.state[weight]
            if "momentum_buffer" in state:
                move = state["momentum_buffer"].mul_(group["momentum"]).add_(move)
            else:
                # v begins at 0, so the first move is the buffer; nothing writes into it before the next step.
                state["momentum_buffer"] = move
        weight -= move


# AdamW that takes the gradient of a word table as its rows, at the cost of the rows that ever had one.

BLOCK = 2**18
"""Elements of a table that are updated at a time on a CPU, so that a block's temporaries stay in its cache."""


class RowMoments:
    """Moments for matrix rows that ever had a gradient; all others are 0.

    A row has a slot, in order of its first gradient. The buffers have room to grow; when they do, the slots are put in
    order of the rows, as rows that lie in order are read and written faster. How much room there is depends on the
    number of rows alone, so moments that are read back from a checkpoint grow when those that were written would have.

    Attributes:
        rows: `(N,)`, the row of each slot.
        exp_avg: `(N, ...)`, first moments.
        exp_avg_sq: `(N, ...)`, second moments.

    Args:
        table: `(V, ...)`.
        state: rows and moments to begin with, by the names of the attributes; none if empty.
    """

    def __init__(self, table: Tensor, state: Mapping[str, Tensor]) -> None:
        self._slots = torch.full((len(table),), -1, dtype=torch.long, device=table.device)
        self.rows = state.get("rows", self._slots[:0]).to(self._slots)
        self.exp_avg = state.get("exp_avg", table[:0]).to(table)
        self.exp_avg_sq = state.get("exp_avg_sq", table[:0]).to(table)
        # In the order of the checkpoint, so that slots are those of a run that never stopped.
        self._make_room(len(self.rows), torch.arange(len(self.rows), device=table.device))

    def slots(self, rows: Tensor) -> Tensor:
        """Return slots `(n,)` for distinct rows `(n,)`; new rows get a new slot."""
        new = rows[self._slots[rows] < 0]
        if len(new):
            self._append(new)
        return self._slots[rows]

    def dense(self) -> dict[str, Tensor]:
        """Return moments for all rows, `exp_avg` and `exp_avg_sq` with shape `(V, ...)`."""
        shape = (len(self._slots), *self.exp_avg.shape[1:])
        moments = {"exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq}
        return {name: moment.new_zeros(shape).index_copy_(0, self.rows, moment) for name, moment in moments.items()}

    def _append(self, rows: Tensor) -> None:
        start, end = len(self.rows), len(self.rows) + len(rows)
        if end > len(self._buffers[0]):
            self._make_room(end, self.rows.argsort())
        # Longer views of the same buffers, so the moments that they had are still there.
        self.rows, self.exp_avg, self.exp_avg_sq = (buffer[:end] for buffer in self._buffers)
        self.rows[start:] = rows
        # New rows begin at 0, and `new_empty` does not see to that.
        self.exp_avg[start:] = 0
        self.exp_avg_sq[start:] = 0
        self._slots[rows] = torch.arange(start, end, device=rows.device)

    def _make_room(self, count: int, order: Tensor) -> None:
        """Move the moments, in this order of their slots, to buffers with room for `count` rows or more."""
        room = min(_room(count), len(self._slots))
        old = (self.rows, self.exp_avg, self.exp_avg_sq)
        self._buffers = [moment.new_empty(room, *moment.shape[1:]) for moment in old]
        self.rows, self.exp_avg, self.exp_avg_sq = (buffer[: len(order)] for buffer in self._buffers)
        for before, now in zip(old, (self.rows, self.exp_avg, self.exp_avg_sq), strict=True):
            torch.index_select(before, 0, order, out=now)
        self._slots[self.rows] = torch.arange(len(order), device=order.device)


class RowAdamW(torch.optim.AdamW):
    """AdamW (Loshchilov and Hutter, 2019, "Decoupled Weight Decay Regularization") for dense and for row gradients.

    The gradient of a table `(V, ...)` may be a sparse tensor of rows (one sparse dimension). The step is then that of
    `torch.optim.AdamW` on the dense gradient, to rounding: a row that never had a gradient has moments m = v = 0 and
    moves by weight decay only, so moments are stored and stepped for the other rows alone. (`torch.optim.SparseAdam` is
    another algorithm: it steps only the rows of the present gradient.) Weight decay is one pass over the table.

    The state of such a table has `rows` `(N,)`, `exp_avg` and `exp_avg_sq` `(N, ...)` and `step`. A dense gradient
    turns it into the state of `torch.optim.AdamW` for good; from then on a row gradient is taken as a dense one.

    Without torch's fused kernel (`fused=False`), a row gradient is taken as a dense one. The other arguments are those
    of `torch.optim.AdamW`.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        fused: bool = True,
    ) -> None:
        super().__init__(params, lr=lr, eps=eps, weight_decay=weight_decay, fused=fused)
        self._moments: dict[Tensor, RowMoments] = {}

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update the parameters that have a gradient."""
        # Tables with a gradient of rows are hidden from torch's step, which would refuse them, and stepped after it.
        tables = [(table, group) for group in self.param_groups for table in group["params"] if self._takes_rows(table)]
        gradients = [table.grad.coalesce() for table, _ in tables]
        for table, _ in tables:
            table.grad = None
        super().step()
        for (table, group), gradient in zip(tables, gradients, strict=True):
            self._step_rows(table, gradient, group)
            table.grad = gradient

    def _takes_rows(self, parameter: Tensor) -> bool:
        """Return whether a parameter is to be stepped by rows; if not, make its gradient and state dense."""
        gradient, state = parameter.grad, self.state.get(parameter, {})
        if gradient is None:
            return False
        rows = gradient.is_sparse and gradient.sparse_dim() == 1
        # A state without rows is one that became dense, and stays so.
        if rows and self.defaults["fused"] and ("rows" in state or not state):
            return True
        if gradient.is_sparse:
            parameter.grad = gradient.to_dense()
        if "rows" in state:
            # The gradient is dense now, so every row moves from here on.
            state.update(self._moments_of(parameter).dense())
            del state["rows"], self._moments[parameter]
        return False

    def _moments_of(self, table: Tensor) -> RowMoments:
        """Return the moments in a matrix's state, which may come from a checkpoint."""
        state, moments = self.state[table], self._moments.get(table)
        # Other rows than ours in the state were put there by `optimizer.restore`: the slots are made from them anew.
        if moments is None or moments.rows is not state.get("rows"):
            moments = self._moments[table] = RowMoments(table, state)
        return moments

    def _step_rows(self, table: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        moments, state = self._moments_of(table), self.state[table]
        slots = moments.slots(gradient.indices()[0])
        # The fused kernel wants its count of steps on the device.
        state.setdefault("step", torch.zeros((), device=table.device)).add_(1)
        # Views change as slots are added; `_moments_of` tells by the present ones whose state it is.
        state.update(rows=moments.rows, exp_avg=moments.exp_avg, exp_avg_sq=moments.exp_avg_sq)
        # Decay is decoupled from the moments and reaches all rows, also those that never had a gradient.
        if group["weight_decay"]:
            table.mul_(1 - group["lr"] * group["weight_decay"])
        beta1, beta2 = group["betas"]
        kernel = partial(
            torch._fused_adamw_,
            max_exp_avg_sqs=[],
            state_steps=[state["step"]],
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=0.0,  # taken above
            amsgrad=False,
            maximize=False,
        )
        _update(table, moments, slots, gradient.values(), kernel)


def _update(table: Tensor, moments: RowMoments, slots: Tensor, values: Tensor, kernel: Callable[..., None]) -> None:
    """Update all N rows of a matrix `(V, ...)` that have a slot.

    Args:
        table: the table.
        moments: moments of its rows.
        slots: `(n,)`, slots that have a gradient now.
        values: `(n, ...)`, gradients of these slots.
        kernel: steps lists of weights, gradients, and first and second moments, all of the same shape.
    """
    # Rows with a gradient in the order of their slots, so that those of a block are a slice, `first` to `last`.
    slots, order = slots.sort()
    count = len(moments.rows)
    size = max(1, count if table.is_cuda else min(count, BLOCK // max(1, table[0].numel())))
    # Every row with a slot is stepped, as its moments move the weight also where its gradient is 0 now.
    block = table.new_empty(size, *table.shape[1:])
    gradient = torch.zeros_like(block)
    bounds = torch.searchsorted(slots, torch.arange(0, count + size, size, device=slots.device)).tolist()
    parts = [torch.split(moment, size) for moment in (moments.rows, moments.exp_avg, moments.exp_avg_sq)]
    # Not strict: of no rows at all `split` makes one empty part.
    for start, (first, last), rows, m, v in zip(range(0, count, size), pairwise(bounds), *parts, strict=False):
        weight, inside = block[: len(rows)], slots[first:last] - start
        torch.index_select(table, 0, rows, out=weight)
        gradient.index_copy_(0, inside, values.index_select(0, order[first:last]))
        kernel([weight], [gradient[: len(rows)]], [m], [v])
        table.index_copy_(0, rows, weight)
        gradient.index_fill_(0, inside, 0)  # cheaper than a fresh block of zeros


def _room(count: int) -> int:
    """Return the first number in a geometric series that is at least `count`."""
    room = 1024
    # A quarter more each time: rows are copied a constant number of times on average, and little stays unused.
    while room < count:
        room += room // 4
    return room


MOMENTS = {"adamw": 2, "lars": 1}
"""Name of an optimiser → numbers that it keeps for each weight."""


def build(parameters: Mapping[str, nn.Parameter], settings: Outer) -> torch.optim.Optimizer:
    """Return the optimiser over named parameters; AdamW in one fused kernel where the device has one.

    It takes a gradient that is dense or a coalesced sparse tensor of rows, and leaves it with its parameter.
    """
    groups = _groups(parameters, settings)
    if settings.optimizer == "lars":
        return LARS(groups, settings.lr, settings.momentum, settings.weight_decay, settings.trust)
    devices = {parameter.device.type for parameter in parameters.values()}
    return RowAdamW(groups, settings.lr, settings.eps, settings.weight_decay, fused=devices <= {"cpu", "cuda"})


def state(optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    """Return the state as tensors named `<parameter>/<entry>`; parameters without a gradient so far have none."""
    return {
        f"{name}/{entry}": value
        for name, parameter in parameters.items()
        for entry, value in optimizer.state.get(parameter, {}).items()
    }


def restore(
    optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter], tensors: Mapping[str, Tensor]
) -> None:
    """Restore a state from `state`, replacing the current one; KeyError for an unknown parameter."""
    optimizer.state.clear()
    for key, value in tensors.items():
        name, entry = key.rsplit("/", 1)
        parameter = parameters[name]
        # AdamW counts steps on the CPU unless it is fused on a GPU.
        on_cpu = entry == "step" and not parameter.is_cuda
        optimizer.state[parameter][entry] = value.to("cpu" if on_cpu else parameter.device)


def _groups(parameters: Mapping[str, nn.Parameter], settings: Outer) -> list[dict[str, Any]]:
    """Return the parameters in one group, or with biases and norms in a group of their own."""
    if not settings.exempt_bias_and_norm:
        return [{"params": list(parameters.values())}]
    matrices = [parameter for parameter in parameters.values() if parameter.ndim > 1]
    vectors = [parameter for parameter in parameters.values() if parameter.ndim <= 1]
    exempt: dict[str, Any] = {"params": vectors, "weight_decay": 0.0}
    if settings.optimizer == "lars":
        exempt["adaptive"] = False
    return [group for group in ({"params": matrices}, exempt) if group["params"]]
