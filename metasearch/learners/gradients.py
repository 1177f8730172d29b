"""Outer gradients by the formula as it is written: the reference for everything faster.

With the values v_s of each shard s of a meta-batch, and the outer loss L a function of them all, the gradient is
Σ_s (∂v_s/∂θ)ᵀ ∂L/∂v_s. So a shard computes its values first, and goes back from them once those of all are known.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from metasearch.encoders.checkpointing import checkpointed
from metasearch.episodes.episode import Episode
from metasearch.errors import ConfigError
from metasearch.learners.base import Learner, OuterLoss, Values
from metasearch.spec.run import Checkpointing

Gradient = list[Tensor | None]
"""One for each parameter of a learner; None where nothing depends on it."""


@dataclass(frozen=True)
class Begun:
    """A shard whose values are known.

    Attributes:
        values: of the shard, without a graph.
        finish: adds the gradient of the shard to `.grad`, from ∂L/∂v of its own values and from the values of all.
    """

    values: Values
    finish: Callable[[Gradient, Sequence[Values]], None]


class Gradients(Protocol):
    """Takes outer gradients, of whole meta-batches and of shards."""

    def __call__(self, learner: Learner, episodes: Sequence[Episode]) -> OuterLoss:
        """Put the gradient of a learner's outer loss into `.grad`, and return the loss; see `ReferenceGradients`."""

    def begin(self, learner: Learner, episodes: Sequence[Episode], shard: Any) -> Begun:
        """Compute the values of one shard of a meta-batch, as `Learner.shards` cut it."""


class ReferenceGradients:
    """Takes the outer gradient of any learner, by its outer loss and `backward`.

    Args:
        checkpointing: whether layers are computed again on the way back, for less memory and the same gradient; `auto`
            leaves it to who knows the memory to turn it `on`. `texts` is of fast gradients, and refused.
    """

    def __init__(self, checkpointing: Checkpointing = "auto") -> None:
        self.checkpointing = checkpointing

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Forget at the end of this what was found meanwhile to need less memory."""
        before = self.checkpointing
        try:
            yield
        finally:
            self.checkpointing = before

    def __call__(self, learner: Learner, episodes: Sequence[Episode]) -> OuterLoss:
        """Put the gradient of the outer loss of a meta-batch into the `.grad` of the learner's parameters.

        A gradient that is zero but in some rows may be a coalesced sparse tensor of those rows. A parameter that the
        loss does not depend on keeps its `.grad` as it is. Returns the loss.
        """
        with _kernel(learner):
            return self.take(learner, episodes)

    def take(self, learner: Learner, episodes: Sequence[Episode]) -> OuterLoss:
        """Do so, where forward passes may be differentiated as often as the learner needs it."""
        with self._checkpointed(learner):
            loss = learner.outer_loss(episodes)
            # A backward pass runs in the types of its forward pass.
            with torch.autocast(learner.encoder.device.type, enabled=False):
                torch.autograd.backward(loss.total)
        return OuterLoss(loss.total.detach(), loss.terms)

    def begin(self, learner: Learner, episodes: Sequence[Episode], shard: Any) -> Begun:
        """Compute the values of a shard, and keep their graph."""
        with _kernel(learner):
            return self.values(learner, episodes, shard)

    def values(self, learner: Learner, episodes: Sequence[Episode], shard: Any) -> Begun:
        """Do so, where forward passes may be differentiated as often as the learner needs it."""
        with self._checkpointed(learner):
            values = learner.values(shard)

        def finish(pulled: Gradient, everyone: Sequence[Values]) -> None:
            back = [(v, g) for v, g in zip(values, pulled, strict=True) if v.requires_grad and g is not None]
            if back:
                # Checkpointed layers are computed again here, and must be by the same kernel.
                with _kernel(learner), torch.autocast(learner.encoder.device.type, enabled=False):
                    torch.autograd.backward([v for v, _ in back], [g for _, g in back])

        return Begun([value.detach() for value in values], finish)

    def _checkpointed(self, learner: Learner) -> AbstractContextManager[object]:
        if self.checkpointing == "texts":
            raise ConfigError("checkpointing 'texts' is of fast gradients, by the learners that have them; say 'on'")
        return checkpointed(learner.encoder.embedder, self.checkpointing == "on")


def pull(
    learner: Learner, episodes: Sequence[Episode], everyone: Sequence[Values]
) -> tuple[OuterLoss, list[Gradient], Gradient]:
    """Return the outer loss from the values of all shards, ∂L/∂v of each shard, and ∂L/∂θ of L's own parameters."""
    leaves = [[value.detach().requires_grad_() for value in values] for values in everyone]
    parameters = [parameter for _, parameter in learner.named_parameters()]
    flat = [value for values in leaves for value in values]
    with torch.autocast(learner.encoder.device.type, enabled=False):  # only the way to the values has less digits
        loss = learner.combine(episodes, leaves)
        found = iter(torch.autograd.grad(loss.total, [*flat, *parameters], allow_unused=True))
    pulled: list[Gradient] = [[next(found) for _ in values] for values in leaves]
    return OuterLoss(loss.total.detach(), loss.terms), pulled, list(found)


def take_off(learner: Learner) -> Gradient:
    """Return the `.grad` of a learner's parameters, which are left without one."""
    found: Gradient = []
    for _, parameter in learner.named_parameters():
        found.append(parameter.grad)
        parameter.grad = None
    return found


def put(learner: Learner, gradient: Gradient) -> None:
    """Add a gradient to `.grad`; a parameter of which it has none keeps its own."""
    for (_, parameter), one in zip(learner.named_parameters(), gradient, strict=True):
        if one is not None:
            parameter.grad = one if parameter.grad is None else parameter.grad + one


def dense_parts(gradient: Gradient) -> list[Tensor]:
    """Return the gradients that there are, of a sparse one the rows that it has, which must be coalesced."""
    return [one.values() if one.is_sparse else one for one in gradient if one is not None]


def _kernel(learner: Learner) -> AbstractContextManager[None]:
    """Return what attention runs on: fused kernels have no second derivative, the plain one has."""
    return sdpa_kernel(SDPBackend.MATH) if learner.second_order else nullcontext()
