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
"""Elements in a table that are updated at a time on a CPU, so that a block's temporaries stay in its cache."""


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
            rows = state.pop("rows")
            for name in _MOMENTS:
                state[name] = torch.zeros_like(parameter).index_copy_(0, rows, state[name])
        return False

    def _step_rows(self, table: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state, rows = self.state[table], gradient.indices()[0]
        _add_rows(state, table, rows)
        # The fused kernel wants its count of steps on the device.
        state.setdefault("step", torch.zeros((), device=table.device)).add_(1)
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
        _update(table, state, rows, gradient.values(), kernel)


_MOMENTS = ("exp_avg", "exp_avg_sq")


def _add_rows(state: dict[str, Tensor], table: Tensor, rows: Tensor) -> None:
    """Give rows that had no gradient before moments of 0; rows in the state ascend."""
    known = state.get("rows", rows[:0])
    every = torch.unique(torch.cat([known, rows]))
    if "rows" in state and torch.equal(every, known):
        return
    places = torch.searchsorted(every, known)
    for name in _MOMENTS:
        before = state.get(name, table[:0])
        state[name] = table.new_zeros(len(every), *table.shape[1:]).index_copy_(0, places, before)
    state["rows"] = every


def _update(
    table: Tensor, state: dict[str, Tensor], changed: Tensor, values: Tensor, kernel: Callable[..., None]
) -> None:
    """Update all N rows in a matrix `(V, ...)` with moments; `changed` `(n,)` have gradients now, `(n, ...)`."""
    # Both ascend, so the gradients of a block are a slice, `first` to `last`.
    places, count = torch.searchsorted(state["rows"], changed), len(state["rows"])
    size = max(1, count if table.is_cuda else min(count, BLOCK // max(1, table[0].numel())))
    # Every row with moments is stepped, as they move the weight also where its gradient is 0 now.
    block = table.new_empty(size, *table.shape[1:])
    gradient = torch.zeros_like(block)
    bounds = torch.searchsorted(places, torch.arange(0, count + size, size, device=places.device)).tolist()
    parts = [torch.split(state[name], size) for name in ("rows", *_MOMENTS)]
    # Not strict: of no rows at all `split` makes one empty part.
    for start, (first, last), rows, m, v in zip(range(0, count, size), pairwise(bounds), *parts, strict=False):
        weight, inside = block[: len(rows)], places[first:last] - start
        torch.index_select(table, 0, rows, out=weight)
        gradient.index_copy_(0, inside, values[first:last])
        kernel([weight], [gradient[: len(rows)]], [m], [v])
        table.index_copy_(0, rows, weight)
        gradient.index_fill_(0, inside, 0)  # cheaper than a fresh block of zeros


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
    """Return the parameters in one group, or with biases and norms in a second group."""
    if not settings.exempt_bias_and_norm:
        return [{"params": list(parameters.values())}]
    matrices = [parameter for parameter in parameters.values() if parameter.ndim > 1]
    vectors = [parameter for parameter in parameters.values() if parameter.ndim <= 1]
    exempt: dict[str, Any] = {"params": vectors, "weight_decay": 0.0}
    if settings.optimizer == "lars":
        exempt["adaptive"] = False
    return [group for group in ({"params": matrices}, exempt) if group["params"]]
