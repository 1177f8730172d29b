"""`MAML` and `maml_update` with the interface and the bits of learn2learn, for an installation without learn2learn."""

from copy import copy
from typing import Any

import torch
from torch import Tensor, nn


class MAML:
    """A module whose clones learn by gradient descent and stay differentiable in the module's own weights."""

    def __init__(self, model: nn.Module, lr: float, first_order: bool = False, **_: bool) -> None:
        self.module, self.lr, self.first_order = model, lr, first_order

    def __call__(self, *args: Any) -> Any:
        """Run the module."""
        return self.module(*args)

    def clone(self) -> "MAML":
        """Return a differentiable copy."""
        return MAML(_replaced(self.module, {p: p.clone() for p in self.module.parameters()}), self.lr, self.first_order)

    def adapt(self, loss: Tensor) -> None:
        """Take one gradient step; weights that the loss does not depend on keep their value."""
        free, graph = [p for p in self.module.parameters() if p.requires_grad], not self.first_order
        found = dict(zip(free, torch.autograd.grad(loss, free, None, graph, graph, allow_unused=True), strict=True))
        self.module = maml_update(self.module, self.lr, [found.get(p) for p in self.module.parameters()])


def maml_update(model: nn.Module, lr: float, grads: list[Tensor | None]) -> nn.Module:
    """Return a copy of a module after one gradient step."""
    return _replaced(model, {p: p if g is None else p - lr * g for p, g in zip(model.parameters(), grads, strict=True)})


def _replaced(module: nn.Module, tensors: dict[Any, Tensor]) -> nn.Module:
    made = copy(module)
    made.__dict__["_parameters"] = {name: tensors.get(p, p) for name, p in module._parameters.items()}
    made.__dict__["_modules"] = {name: m and _replaced(m, tensors) for name, m in module._modules.items()}
    return made
