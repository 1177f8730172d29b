"""The inner loop on learn2learn, and the only door to it.

`import learn2learn` loads gym, torchvision and text packages that its algorithms do not need, so a bare package with
its path is put in its place first. A clone is learn2learn's; the gradient is taken here, because `MAML.adapt` hides
the error when it cannot be taken, frees a first-order graph that MAML-Align still needs, and `MetaSGD.adapt` knows no
unused parameters and unties shared ones.
"""

import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


def _algorithms() -> tuple[Any, Any]:
    if "learn2learn" not in sys.modules:
        spec = importlib.util.find_spec("learn2learn")
        if spec is None:
            raise ImportError("learn2learn is not installed; see README, Installation")
        sys.modules["learn2learn"] = importlib.util.module_from_spec(spec)  # which does not run its code
    from learn2learn.algorithms.maml import MAML
    from learn2learn.utils import update_module

    return MAML, update_module


_MAML, _update_module = _algorithms()

Rates = float | Sequence[float | Tensor | None]
"""One inner rate for all weights, or a number or tensor of rates for each, None for one that does not move."""


class FastModel:
    """A copy of a module whose weights move with each inner step, differentiable back to the module's own weights.

    In first order, inner gradients are constants (FOMAML).
    """

    def __init__(self, module: nn.Module, first_order: bool) -> None:
        self.first_order = first_order
        # learn2learn's own rate is never used: `adapt` has one for each step.
        self._clone = _MAML(module, lr=0.0, first_order=first_order).clone()

    def __call__(self, *args: Any) -> Tensor:
        """Run the module with the fast weights."""
        output: Tensor = self._clone(*args)
        return output

    def parameters(self) -> list[Tensor]:
        """Return the fast weights, in the order of the module's parameters."""
        return list(self._clone.module.parameters())

    def adapt(self, loss: Tensor, lr: Rates, retain_graph: bool = False) -> None:
        """Take one step of gradient descent on the fast weights; weights that the loss does not reach stay.

        There may be a rate for each parameter, or a tensor of rates; with None its gradient is not taken, and it stays.
        With `retain_graph`, and always in second order, the loss stays differentiable.
        """
        module = self._clone.module
        trained = [weight for weight in module.parameters() if weight.requires_grad]
        each = lr if isinstance(lr, Sequence) else [lr] * len(trained)
        moving = [(weight, rate) for weight, rate in zip(trained, each, strict=True) if rate is not None]
        weights = [weight for weight, _ in moving]
        second_order = not self.first_order
        gradients = torch.autograd.grad(
            loss, weights, retain_graph=retain_graph or second_order, create_graph=second_order, allow_unused=True
        )
        for (weight, rate), gradient in zip(moving, gradients, strict=True):
            if gradient is not None:
                # Where `update_module` looks for what to add; a shared weight gets it once, and stays shared.
                weight.update = -rate * gradient
        self._clone.module = _update_module(module)
