"""LARS: momentum SGD with a rate for each layer."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class LARS(torch.optim.Optimizer):
    """Layer-wise adaptive rate scaling (You et al., 2017, "Large Batch Training of Convolutional Networks").

    For each parameter w with gradient g, rate γ, momentum m and weight decay β (Algorithm 1):

        λ = η ‖w‖ / (‖g‖ + β ‖w‖)
        v ← m v + γ λ (g + β w)
        w ← w − v

    λ is 1 where ‖w‖ or ‖g‖ is 0, or a parameter that begins at 0 would stay there; and in parameter groups with
    `adaptive=False`. Libraries differ in details: `torch_optimizer.LARS` multiplies by γ after the momentum, which is
    the same only while γ is constant, and uses λ = 1 wherever β is 0. A sparse gradient is taken as a dense one, as the
    momentum and the norms are of the whole layer. The arguments are γ, m, β and η.
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
