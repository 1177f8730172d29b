"""The fast forms of learners whose loss is one of sets: fine-tuning, MAML and Meta-SGD, and Reptile."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from torch import Tensor

from metasearch.episodes.episode import Episode
from metasearch.fast.encoder import FastEncoder, Sum
from metasearch.fast.meta_batch import MetaBatch, longest_first
from metasearch.fast.network import Network
from metasearch.fast.transfer import Gradient, Transfer, Weights, descend, transfer
from metasearch.learners.base import OuterLoss, reduce
from metasearch.learners.fine_tune import FineTune
from metasearch.learners.maml import MAML
from metasearch.learners.reptile import Reptile
from metasearch.learners.sets import Prepared

Job = TypeVar("Job")


def fine_tune(learner: FineTune, episodes: Sequence[Episode], fast: FastEncoder, bf16: bool) -> OuterLoss:
    """Take the gradient of each set alone."""
    batch = MetaBatch(fast, episodes, learner.loss, bf16)
    start = batch.weights(fast.weights)
    sizes = [len(examples.examples) for episode in episodes for examples in episode.sets]
    shares = [size / sum(sizes) for size in sizes]

    def work(network: Network, examples: Prepared) -> Transfer:
        return transfer(start, [], batch.objective(network, examples))

    sets = [examples for episode in batch.episodes for examples in episode]
    losses, _ = _add(batch, sets, shares, work)
    loss = reduce([loss * share for loss, share in zip(losses, shares, strict=True)], "sum")
    return OuterLoss(loss, {"task": loss.item()})


def maml(learner: MAML, episodes: Sequence[Episode], fast: FastEncoder, bf16: bool) -> OuterLoss:
    """Take the gradient of each transfer alone, in the weights and in rates that are learned."""
    batch = MetaBatch(fast, episodes, learner.loss, bf16)
    start, steps, learned = batch.weights(fast.weights), learner.options.inner_steps, learner.inner_lr
    transfers = longest_first((pair for sets in batch.episodes for pair in pairwise(sets)), steps)
    rates = learned if isinstance(learned, float) else batch.weights(learned)
    mode = batch.gradient_mode(learner.second_order, start, steps, len(transfers))

    def work(network: Network, pair: tuple[Prepared, Prepared]) -> Transfer:
        support, query = (batch.objective(network, examples) for examples in pair)
        return transfer(start, [support] * steps, query, rates, mode)

    share = 1 / len(transfers) if learner.options.reduction == "mean" else 1.0
    losses, of_rates = _add(batch, transfers, [share] * len(transfers), work)
    if not isinstance(learned, float):
        batch.put(of_rates, learned)
    loss = reduce(losses, learner.options.reduction)
    return OuterLoss(loss, {"task": loss.item()})


def reptile(learner: Reptile, episodes: Sequence[Episode], fast: FastEncoder, bf16: bool) -> OuterLoss:
    """Take θ − θ_j of each episode alone."""
    batch = MetaBatch(fast, episodes, learner.loss, bf16)
    start = batch.weights(fast.weights)

    def work(network: Network, sets: tuple[Prepared, ...]) -> tuple[Weights, list[Tensor]]:
        inner = [batch.objective(network, examples) for examples in sets] * learner.options.inner_steps
        moved, losses = descend(start, inner, learner.options.inner_lr)
        return [first - last.detach() for first, last in zip(start, moved, strict=True)], losses

    total, inner = Sum(len(start)), []
    for moved, losses in fast.each(longest_first(batch.episodes), work):
        total.add(moved, 1 / len(episodes))
        inner += losses
    # Rows outside the slice have not moved, so they add nothing to the norm.
    loss = 0.5 * reduce([moved.square().sum() for moved in total.gradient if moved is not None], "sum")
    batch.put(total.gradient, fast.weights)
    return OuterLoss(loss, {"task": reduce(inner, "mean").item()})


def _add(
    batch: MetaBatch, jobs: Sequence[Job], shares: Iterable[float], work: Callable[[Network, Job], Transfer]
) -> tuple[list[Tensor], Gradient]:
    """Put a share of each job's gradient into `.grad`; return the losses, and the same sum of gradients in rates."""
    count = len(batch.fast.weights)
    total, of_rates, losses = Sum(count), Sum(count), []
    for share, result in zip(shares, batch.fast.each(jobs, work), strict=True):
        total.add(result.gradient, share)
        of_rates.add(result.rates or (), share)
        losses.append(result.loss)
    batch.put(total.gradient, batch.fast.weights)
    return losses, of_rates.gradient
