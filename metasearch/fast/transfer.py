"""One meta-transfer: inner steps of gradient descent on weights, then the gradient of a last loss.

With θ_0 = θ, θ_{t+1} = θ_t − ρ ∘ ∇L_t(θ_t) for t < n, and the last loss L at θ_n, the outer gradient is

    first order:   v = ∇L(θ_n)
    second order:  v_n = ∇L(θ_n),  v_t = v_{t+1} − ∇²L_t(θ_t) (ρ ∘ v_{t+1}),  v = v_0

and that of the rates ρ, where they are learned, is −Σ_t v_{t+1} ∘ ∇L_t(θ_t), with v_{t+1} = ∇L(θ_n) in first order.

In first order the weights move in place, and nothing is kept of a step. In second order two modes have the same
numbers: `graph` keeps all steps and lets autograd go back through them; `recompute` keeps only the θ_t and computes
each step again on the way back, as a Hessian-vector product (reverse over reverse), so that its memory hardly grows
with n.

A weight without a rate does not move, which is ρ = 0 in all of this. Its inner gradient is not taken, in first order
and where only the θ_t are kept nothing below the lowest weight that moves is gone back through, and it is not copied.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from metasearch.learners.inner_loop import Rates

Weights = list[Tensor]
Gradient = list[Tensor | None]
"""One for each weight; None where nothing depends on it."""
Objective = Callable[[Weights], Tensor]
"""Weights → scalar loss."""
Each = Sequence[float | Tensor | None]
"""The rate of each weight; None for one that does not move."""
SecondOrder = Literal["auto", "graph", "recompute"]
GradientMode = Literal["first", "graph", "recompute"]


@dataclass(frozen=True)
class Transfer:
    """Loss and gradients of a meta-transfer.

    Attributes:
        loss: the last loss, a scalar.
        gradient: of the last loss in the weights that the inner steps began with.
        rates: its gradient in the rates, where they are tensors; None for a weight that has none.
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
        rates: ρ, one, or a number or tensor for each weight, None for one that does not move.
        mode: `first` order, or second order by `graph` or `recompute`.
        keep_inner: return loss and gradient of the first inner step too.
    """
    if not inner:
        # Leaves without copies, as no step will move them.
        loss, gradient = _differentiated(last, [weight.detach() for weight in start])
        return Transfer(loss, gradient)
    take = {"first": _first, "graph": _graph, "recompute": _recompute}[mode]
    return take(start, inner, last, rates, keep_inner)


def descend(weights: Weights, inner: Sequence[Objective], rates: Rates) -> tuple[Weights, list[Tensor]]:
    """Return copies of weights after inner steps, and the loss before each step."""
    each = _each(rates, weights)
    moved, losses = _leaves(weights, each), []
    for objective in inner:
        loss, gradient = _differentiated(objective, moved, each)
        _move(moved, gradient, each)
        losses.append(loss)
        del gradient  # before the next one is computed, or there would be two
    return moved, losses


def _first(start: Weights, inner: Sequence[Objective], last: Objective, rates: Rates, keep: bool) -> Transfer:
    each = _each(rates, start)
    moved, first, total = _leaves(start, each), None, None
    for objective in inner:
        whole = keep and first is None
        loss, gradient = _differentiated(objective, moved, None if whole else each)
        _move(moved, gradient, each)
        if whole:
            first = Transfer(loss, gradient)
        if _learned(each):
            # v_{t+1} is the same at every step, so the rates need no more than the sum of the inner gradients.
            total = gradient if total is None else [_sum(a, b) for a, b in zip(total, gradient, strict=True)]
        del gradient  # before the next one is computed, or there would be two
    loss, outer = _differentiated(last, moved)
    # With a fixed rate `total` is None still, and so is the gradient in the rates.
    return Transfer(loss, outer, total and _of_rates(each, total, outer), first)


def _graph(start: Weights, inner: Sequence[Objective], last: Objective, rates: Rates, keep: bool) -> Transfer:
    each = _each(rates, start)
    leaves = [weight.requires_grad_() for weight in _leaves(start, each)]
    learned = [rate.requires_grad_() for rate in each if isinstance(rate, Tensor)]
    weights, first = leaves, None
    for objective in inner:
        whole = keep and first is None
        loss = objective(weights)
        gradient = _slopes(loss, weights, None if whole else each, create_graph=True)
        if whole:
            # Detached: inner gradients have a graph here, which lasts as long as the result otherwise.
            first = Transfer(loss.detach(), [None if g is None else g.detach() for g in gradient])
        # New tensors, not moved in place: autograd goes back through every step.
        steps = [None if g is None or r is None else r * g for g, r in zip(gradient, each, strict=True)]
        weights = [w if s is None else w - s for w, s in zip(weights, steps, strict=True)]
    loss = last(weights)
    outer = torch.autograd.grad(loss, [*leaves, *learned], allow_unused=True)
    found = iter(outer[len(leaves) :])
    of_rates = [next(found) if isinstance(rate, Tensor) else None for rate in each]
    return Transfer(loss.detach(), list(outer[: len(leaves)]), of_rates if learned else None, first)


def _recompute(start: Weights, inner: Sequence[Objective], last: Objective, rates: Rates, keep: bool) -> Transfer:
    each = _each(rates, start)
    moved, points, first = _leaves(start, each), [], None
    for objective in inner:
        whole = keep and first is None
        points.append(_leaves(moved, each))
        loss, gradient = _differentiated(objective, moved, None if whole else each)
        _move(moved, gradient, each)
        if whole:
            first = Transfer(loss, gradient)
        del gradient
    loss, pulled = _differentiated(last, moved)  # v_n; from here on `pulled` is v_{t+1}
    total: Gradient = [None] * len(start)
    for objective in reversed(inner):
        # Taken off the list, so that each θ_t is freed with its step.
        leaves = [weight.requires_grad_() for weight in points.pop()]
        gradient = _slopes(objective(leaves), leaves, each, create_graph=True)
        if _learned(each):
            # Before `pulled` becomes v_t: step t has its part −v_{t+1} ∘ ∇L_t(θ_t) in the gradient of the rates.
            total = [_sum(a, b) for a, b in zip(total, _of_rates(each, gradient, pulled), strict=True)]
        pulled = _through(leaves, gradient, pulled, each)
        del leaves, gradient  # before the next step is computed, or the graphs of two would be there
    return Transfer(loss, pulled, total if _learned(each) else None, first)


def _through(leaves: Weights, gradient: Gradient, pulled: Gradient, each: Each) -> Gradient:
    """Return v_t = v_{t+1} − ∇²L_t(θ_t) (ρ ∘ v_{t+1})."""
    taken = [
        (g, r * v)
        for g, v, r in zip(gradient, pulled, each, strict=True)
        # An inner gradient that is constant in θ_t, such as that of a linear loss, has no Hessian.
        if g is not None and r is not None and g.requires_grad and v is not None
    ]
    if not taken:
        return pulled
    # One backward pass gives Σ_i (∂g_i/∂θ)ᵀ (ρ ∘ v)_i, which is the Hessian-vector product, as a Hessian is symmetric.
    products = torch.autograd.grad([g for g, _ in taken], leaves, [v for _, v in taken], allow_unused=True)
    return [_sum(v, None if h is None else -h) for v, h in zip(pulled, products, strict=True)]


def _differentiated(objective: Objective, leaves: Weights, each: Each | None = None) -> tuple[Tensor, Gradient]:
    """Return a loss and its gradient in the leaves that have a rate, in all without rates."""
    for place, leaf in enumerate(leaves):
        # One that needs no gradient lets autograd keep nothing of what comes before those that do.
        leaf.requires_grad_(each is None or each[place] is not None)
    loss = objective(leaves)
    # Detached, or the loss would hold on to the graph of the step.
    return loss.detach(), _slopes(loss, leaves, each)


def _slopes(loss: Tensor, weights: Weights, each: Each | None = None, create_graph: bool = False) -> Gradient:
    """Return the gradient of a loss in the weights that have a rate, in all without rates."""
    wanted = [place for place in range(len(weights)) if each is None or each[place] is not None]
    if len(wanted) < len(weights) and not loss.requires_grad:
        return [None] * len(weights)  # it reaches none of them, though it may reach others
    asked = [weights[place] for place in wanted]
    found = torch.autograd.grad(loss, asked, create_graph=create_graph, allow_unused=True)
    by_place = dict(zip(wanted, found, strict=True))
    return [by_place.get(place) for place in range(len(weights))]


@torch.no_grad()
def _move(weights: Weights, gradient: Gradient, each: Each) -> None:
    """Take a step of gradient descent in place."""
    for weight, slope, rate in zip(weights, gradient, each, strict=True):
        if slope is None or rate is None:
            continue
        if isinstance(rate, Tensor):
            weight.addcmul_(rate, slope, value=-1)
        else:
            weight.add_(slope, alpha=-rate)


def _leaves(weights: Weights, each: Each) -> Weights:
    """Return copies of those that move, as the steps move them in place and what they come from must stay."""
    return [w.detach() if r is None else w.detach().clone() for w, r in zip(weights, each, strict=True)]


def _each(rates: Rates, weights: Weights) -> Each:
    if isinstance(rates, float):
        return [rates] * len(weights)
    return [rate.detach() if isinstance(rate, Tensor) else rate for rate in rates]


def _learned(each: Each) -> bool:
    return any(isinstance(rate, Tensor) for rate in each)


def _of_rates(each: Each, gradient: Gradient, pulled: Gradient) -> Gradient:
    """Return what the gradient of the rates gets of a step, −v ∘ ∇L_t; None for a weight without a tensor of them."""
    return [
        _product(g, v) if isinstance(rate, Tensor) else None for rate, g, v in zip(each, gradient, pulled, strict=True)
    ]


def _sum(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    if first is None or second is None:
        return second if first is None else first
    # Not in place: the first inner gradient may be part of the result, too (`keep_inner`).
    return first + second


def _product(gradient: Tensor | None, pulled: Tensor | None) -> Tensor | None:
    """Return what a rate's gradient gets of a step."""
    return None if gradient is None or pulled is None else -gradient.detach() * pulled
