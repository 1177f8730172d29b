"""The inner loop, on learn2learn's MAML, and the only door to learn2learn.

    model = Model(network, lr, first_order)     # around any module: the packed encoder, or an encoder's own network
    adapted = model.clone()
    adapted.adapt(loss(adapted(x), y))          # gradient descent on the clone's weights
    loss(adapted(x), y)                         # differentiable in the weights of `network`

`import learn2learn` loads gym, torchvision and text packages that MAML does not need, so an empty package with its path
is put in its place first. Without learn2learn, `BuiltinMAML` serves.
"""

import importlib.util
import logging
import sys
from collections.abc import Sequence
from copy import copy
from functools import cache
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

log = logging.getLogger(__name__)

Gradient = list[Tensor | None]
"""One for each weight; None for a weight that nothing depends on."""


Rates = float | Sequence[Tensor]
"""One inner rate for all weights, or a tensor of rates for each trainable weight."""


@cache
def maml() -> tuple[Any, Any]:
    """Return learn2learn's `MAML` and `maml_update`, or the built-in ones; log the choice."""
    if "learn2learn" not in sys.modules:
        spec = importlib.util.find_spec("learn2learn")
        if spec is None:
            log.info("inner loop: built-in MAML (learn2learn is not installed; the results are the same)")
            return BuiltinMAML, builtin_update
        sys.modules["learn2learn"] = importlib.util.module_from_spec(spec)  # this does not run its code
    from learn2learn.algorithms.maml import MAML, maml_update

    log.info("inner loop: MAML of learn2learn %s", version("learn2learn"))
    return MAML, maml_update


class Model:
    """An encoder's network in learn2learn's MAML; `lr` is the rate of `adapt`, `first_order` means FOMAML."""

    def __init__(self, network: nn.Module, lr: Rates = 0.0, first_order: bool = True) -> None:
        wrapper, _ = maml()
        rate = lr if isinstance(lr, float) else 1.0
        self._maml = wrapper(network, lr=rate, first_order=first_order, allow_unused=True, allow_nograd=True)
        self._lr, self._first_order = lr, first_order

    def __call__(self, *args: Any) -> Tensor:
        """Run the network with the present weights."""
        output: Tensor = self._maml(*args)
        return output

    @property
    def weights(self) -> list[Tensor]:
        """The current trainable weights, in the order of the network's parameters."""
        return [weight for weight in self._maml.module.parameters() if weight.requires_grad]

    def clone(self) -> "Model":
        """Return a copy that can adapt; its outputs are differentiable in the weights of this model."""
        made = object.__new__(Model)
        made._maml, made._lr, made._first_order = self._maml.clone(), self._lr, self._first_order
        return made

    def adapt(self, loss: Tensor) -> None:
        """Take one gradient step and free the graph; weights without gradient keep their value."""
        if isinstance(self._lr, float):
            self._maml.adapt(loss)
        else:
            self._descend(self._gradient(loss))

    def adapt_and_keep(self, loss: Tensor) -> Tensor:
        """Take the same step; return the loss with the step's gradient in place of its graph."""
        weights, gradient = self.weights, self._gradient(loss)
        kept = with_gradient(loss, weights, gradient)
        self._descend(gradient)
        return kept

    def _gradient(self, loss: Tensor) -> Gradient:
        graph = not self._first_order
        return list(torch.autograd.grad(loss, self.weights, retain_graph=graph, create_graph=graph, allow_unused=True))

    def _descend(self, gradient: Gradient) -> None:
        """Move each weight by −rate · gradient."""
        _, update = maml()
        rates: Sequence[Any] = [self._lr] * len(gradient) if isinstance(self._lr, float) else self._lr
        steps = iter(None if g is None else rate * g for rate, g in zip(rates, gradient, strict=True))
        # learn2learn wants one for each parameter, frozen ones too.
        moved = [next(steps) if weight.requires_grad else None for weight in self._maml.module.parameters()]
        self._maml.module = update(self._maml.module, 1.0, moved)


def with_gradient(value: Tensor, weights: Sequence[Tensor], gradient: Sequence[Tensor | None]) -> Tensor:
    """Return a scalar with this value and a constant gradient in the weights."""
    pairs = [(weight, g.detach()) for weight, g in zip(weights, gradient, strict=True) if g is not None]
    # Each term is 0: a value, and not what it is made of, is what counts beside its gradient.
    return value.detach() + sum(((weight - weight.detach()) * g).sum() for weight, g in pairs)


class BuiltinMAML:
    """A module whose clones learn by gradient descent and stay differentiable in the module's own weights.

    It has the interface and the bits of learn2learn's MAML, and serves where learn2learn is not installed.
    """

    def __init__(self, model: nn.Module, lr: float, first_order: bool = False, **_: bool) -> None:
        self.module, self.lr, self.first_order = model, lr, first_order

    def __call__(self, *args: Any) -> Any:
        """Run the module."""
        return self.module(*args)

    def clone(self) -> "BuiltinMAML":
        """Return a differentiable copy."""
        clones = {p: p.clone() for p in self.module.parameters()}
        return BuiltinMAML(_replaced(self.module, clones), self.lr, self.first_order)

    def adapt(self, loss: Tensor) -> None:
        """Take one gradient step; weights that the loss does not depend on keep their value."""
        trained = [p for p in self.module.parameters() if p.requires_grad]
        second_order = not self.first_order
        gradients = torch.autograd.grad(
            loss, trained, retain_graph=second_order, create_graph=second_order, allow_unused=True
        )
        gradient_of = dict(zip(trained, gradients, strict=True))
        self.module = builtin_update(self.module, self.lr, [gradient_of.get(p) for p in self.module.parameters()])


def builtin_update(model: nn.Module, lr: float, grads: list[Tensor | None]) -> nn.Module:
    """Return a copy of a module after one gradient step."""
    pairs = zip(model.parameters(), grads, strict=True)
    return _replaced(model, {p: p - lr * gradient for p, gradient in pairs if gradient is not None})


def _replaced(module: nn.Module, tensors: dict[Any, Tensor]) -> nn.Module:
    """Return a copy of a module with other tensors for some parameters; the copy shares everything else."""
    made = copy(module)
    # By way of `__dict__`: a module refuses plain tensors as its parameters. Names without a parameter have None.
    made.__dict__["_parameters"] = {name: tensors.get(p, p) for name, p in module._parameters.items()}
    made.__dict__["_modules"] = {
        name: None if child is None else _replaced(child, tensors) for name, child in module._modules.items()
    }
    return made
