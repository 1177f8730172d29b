"""`MAML` and `maml_update` as learn2learn has them, to the same bits, for an installation without learn2learn."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor, nn


class MAML(nn.Module):
    """A module and its copies, which learn by gradient descent and stay differentiable in the module's own weights."""

    def __init__(self, model: nn.Module, lr: float, first_order: bool = False, **_: bool) -> None:
        super().__init__()
        self.module, self.lr, self.first_order = model, lr, first_order

    def forward(self, *args: Any) -> Any:
        """Run the module."""
        return self.module(*args)

    def clone(self) -> "MAML":
        """Return a copy whose weights are clones of the module's."""
        return MAML(_replaced(self.module, {p: p.clone() for p in self.module.parameters()}), self.lr, self.first_order)

    def adapt(self, loss: Tensor) -> None:
        """Take one step of gradient descent on the weights; a weight that the loss does not reach stays."""
        moving, graph = [p for p in self.module.parameters() if p.requires_grad], not self.first_order
        found = dict(zip(moving, torch.autograd.grad(loss, moving, None, graph, graph, allow_unused=True), strict=True))
        self.module = maml_update(self.module, self.lr, [found.get(p) for p in self.module.parameters()])


def maml_update(model: nn.Module, lr: float, grads: Sequence[Tensor | None]) -> nn.Module:
    """Return a module whose weights have moved against their gradients."""
    pairs = zip(list(model.parameters()), grads, strict=True)
    return _replaced(model, {p: p if g is None else p - lr * g for p, g in pairs})


def _replaced(module: nn.Module, tensors: dict[Any, Tensor]) -> nn.Module:
    made = copy(module)
    made.__dict__["_parameters"] = {name: tensors.get(p, p) for name, p in module._parameters.items()}
    made.__dict__["_modules"] = {name: m and _replaced(m, tensors) for name, m in module._modules.items()}
    return made
