"""One meta-transfer: inner steps of gradient descent on weights, then the gradient of a last loss.

With θ_0 = θ, θ_{t+1} = θ_t − ρ ∘ ∇L_t(θ_t) for t < n, and the last loss L at θ_n, the outer gradient is

    first order:   v = ∇L(θ_n)
    second order:  v_n = ∇L(θ_n),  v_t = v_{t+1} − ∇²L_t(θ_t) (ρ ∘ v_{t+1}),  v = v_0

and that of the rates ρ, where they are learned, is −Σ_t v_{t+1} ∘ ∇L_t(θ_t), with v_{t+1} = ∇L(θ_n) in first order.

In first order the weights move in place, and nothing is kept of a step. In second order two modes have the same
numbers: `graph` keeps all steps and lets autograd go back through them; `recompute` keeps only the θ_t and computes
each step again on the way back, as a Hessian-vector product (reverse over reverse), so that its memory hardly grows
with n.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Weights = list[Tensor]
Gradient = list[Tensor | None]
"""One for each weight; None where nothing depends on it."""
Objective = Callable[[Weights], Tensor]
"""Weights → scalar loss."""
Rates = float | Sequence[Tensor]
SecondOrder = Literal["auto", "graph", "recompute"]
GradientMode = Literal["first", "graph", "recompute"]


@dataclass(frozen=True)
class Transfer:
    """Loss and gradients of a meta-transfer.

    Attributes:
        loss: the last loss, a scalar.
        gradient: of the last loss in the weights that the inner steps began with.
        rates: its gradient in the rates, where they are tensors.
        inner: loss and gradient of the first inner step, where they are asked for and there is one.
    """

    loss: Tensor
    gradient: Gradient
    rates: Gradient | None = None
    inner: "Transfer | None" = None


def transfer(
    start: Weights,
    inner: Sequence[Objective],
    last: Objective,
    rates: Rates = 0.0,
    mode: GradientMode = "first",
    keep_inner: bool = False,
) -> Transfer:
    """Make a meta-transfer.

    Args:
        start: θ, which stays as it is.
        inner: L_t of each inner step.
        last: L.
        rates: ρ, one or a tensor for each weight.
        mode: `first` order, or second order by `graph` or `recompute`.
        keep_inner: return loss and gradient of the first inner step too.
    """
    if not inner:
        # Leaves without copies, as no step will move them.
        loss, gradient = _differentiated(last, [weight.detach().requires_grad_() for weight in start])
        return Transfer(loss, gradient)
    take = {"first": _first, "graph": _graph, "recompute": _recompute}[mode]
    return take(start, inner, last, rates, keep_inner)


def descend(weights: Weights, inner: Sequence[Objective], rates: Rates) -> tuple[Weights, list[Tensor]]:
    """Return copies of weights after inner steps, and the loss before each step."""
    moved, losses = _leaves(weights), []
    for objective in inner:
        loss, gradient = _differentiated(objective, moved)
        _move(moved, gradient, rates)
        losses.append(loss)
        del gradient  # before the next one is computed, or there would be two
    return moved, losses


def _first(start: Weights, inner: Sequence[Objective], last: Objective, rates: Rates, keep: bool) -> Transfer:
    moved, first, total = _leaves(start), None, None
    for objective in inner:
        loss, gradient = _differentiated(objective, moved)
        _move(moved, gradient, rates)
        if keep and first is None:
            first = Transfer(loss, gradient)
        if not isinstance(rates, float):
            # v_{t+1} is the same at every step, so the rates need no more than the sum of the inner gradients.
            total = gradient if total is None else [_sum(a, b) for a, b in zip(total, gradient, strict=True)]
        del gradient  # before the next one is computed, or there would be two
    loss, outer = _differentiated(last, moved)
    # With a fixed rate `total` is None still, and so is the gradient in the rates.
    return Transfer(loss, outer, total and [_product(a, b) for a, b in zip(total, outer, strict=True)], first)


def _graph(start: Weights, inner: Sequence[Objective], last: Objective, rates: Rates, keep: bool) -> Transfer:
    leaves = _leaves(start)
    learned = [] if isinstance(rates, float) else [rate.detach().requires_grad_() for rate in rates]
    weights, first = leaves, None
    for objective in inner:
        loss = objective(weights)
        gradient = torch.autograd.grad(loss, weights, create_graph=True, allow_unused=True)
        if keep and first is None:
            # Detached: inner gradients have a graph here, which lasts as long as the result otherwise.
            first = Transfer(loss.detach(), [None if g is None else g.detach() for g in gradient])
        # New tensors, not moved in place: autograd goes back through every step.
        steps = [None if g is None else r * g for g, r in zip(gradient, learned or _each(rates, weights), strict=True)]
        weights = [w if s is None else w - s for w, s in zip(weights, steps, strict=True)]
    loss = last(weights)
    outer = torch.autograd.grad(loss, [*leaves, *learned], allow_unused=True)
    return Transfer(loss.detach(), list(outer[: len(leaves)]), list(outer[len(leaves) :]) or None, first)


def _recompute(start: Weights, inner: Sequence[Objective], last: Objective, rates: Rates, keep: bool) -> Transfer:
    moved, points, first = _leaves(start), [], None
    for objective in inner:
        # Copies, as the step moves the weights in place.
        points.append([weight.detach().clone() for weight in moved])
        loss, gradient = _differentiated(objective, moved)
        _move(moved, gradient, rates)
        if keep and first is None:
            first = Transfer(loss, gradient)
        del gradient
    loss, pulled = _differentiated(last, moved)  # v_n; from here on `pulled` is v_{t+1}
    total: Gradient = [None] * len(start)
    for objective in reversed(inner):
        # Taken off the list, so that each θ_t is freed with its step.
        leaves = [weight.requires_grad_() for weight in points.pop()]
        gradient = list(torch.autograd.grad(objective(leaves), leaves, create_graph=True, allow_unused=True))
        if not isinstance(rates, float):
            # Before `pulled` becomes v_t: step t has its part −v_{t+1} ∘ ∇L_t(θ_t) in the gradient of the rates.
            total = [_sum(a, _product(g, v)) for a, g, v in zip(total, gradient, pulled, strict=True)]
        pulled = _through(leaves, gradient, pulled, rates)
        del leaves, gradient  # before the next step is computed, or the graphs of two would be there
    return Transfer(loss, pulled, None if isinstance(rates, float) else total, first)


def _through(leaves: Weights, gradient: Gradient, pulled: Gradient, rates: Rates) -> Gradient:
    """Return v_t = v_{t+1} − ∇²L_t(θ_t) (ρ ∘ v_{t+1})."""
    taken = [
        (g, r * v)
        for g, v, r in zip(gradient, pulled, _each(rates, leaves), strict=True)
        # An inner gradient that is constant in θ_t, such as that of a linear loss, has no Hessian.
        if g is not None and g.requires_grad and v is not None
    ]
    if not taken:
        return pulled
    # One backward pass gives Σ_i (∂g_i/∂θ)ᵀ (ρ ∘ v)_i, which is the Hessian-vector product, as a Hessian is symmetric.
    products = torch.autograd.grad([g for g, _ in taken], leaves, [v for _, v in taken], allow_unused=True)
    return [_sum(v, None if h is None else -h) for v, h in zip(pulled, products, strict=True)]


def _differentiated(objective: Objective, weights: Weights) -> tuple[Tensor, Gradient]:
    loss = objective(weights)
    # Detached, or the loss would hold on to the graph of the step.
    return loss.detach(), list(torch.autograd.grad(loss, weights, allow_unused=True))


@torch.no_grad()
def _move(weights: Weights, gradient: Gradient, rates: Rates) -> None:
    """Take a step of gradient descent in place."""
    for weight, slope, rate in zip(weights, gradient, _each(rates, weights), strict=True):
        if slope is None:
            continue
        if isinstance(rate, Tensor):
            weight.addcmul_(rate, slope, value=-1)
        else:
            weight.add_(slope, alpha=-rate)


def _leaves(weights: Weights) -> Weights:
    """Return copies, as the steps move them in place and `start` must stay."""
    return [weight.detach().clone().requires_grad_() for weight in weights]


def _each(rates: Rates, weights: Weights) -> Sequence[float | Tensor]:
    return [rates] * len(weights) if isinstance(rates, float) else [rate.detach() for rate in rates]


def _sum(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    if first is None or second is None:
        return second if first is None else first
    # Not in place: the first inner gradient may be part of the result, too (`keep_inner`).
    return first + second


def _product(gradient: Tensor | None, pulled: Tensor | None) -> Tensor | None:
    """Return what a rate's gradient gets of a step."""
    return None if gradient is None or pulled is None else -gradient.detach() * pulled
