"""The fast forms of learners whose loss is one of sets: fine-tuning, MAML and Meta-SGD, and Reptile."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

import torch
from torch import Tensor

from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.fast.encoder import FastEncoder, Sum
from metasearch.fast.meta_batch import MetaBatch, longest_first
from metasearch.fast.network import Network
from metasearch.fast.transfer import Gradient, Transfer, descend, transfer
from metasearch.learners.base import Values
from metasearch.learners.fine_tune import FineTune
from metasearch.learners.gradients import Begun
from metasearch.learners.maml import MAML
from metasearch.learners.reptile import Reptile
from metasearch.learners.sets import Prepared

Job = TypeVar("Job")


def fine_tune(
    learner: FineTune, episodes: Sequence[Episode], shard: Sequence[LabelledSet], fast: FastEncoder, bf16: bool
) -> Begun:
    """Take the gradient of each set alone."""
    if not shard:
        # The last batch of an epoch may have fewer examples than there are shards.
        return Begun([], lambda pulled, everyone: None)
    batch = MetaBatch(fast, [shard], learner, bf16)
    start = batch.weights(fast.weights)
    whole = sum(len(examples.examples) for episode in episodes for examples in episode.sets)
    shares = [len(examples.examples) / whole for examples in shard]

    def work(network: Network, examples: Prepared) -> Transfer:
        return transfer(start, [], batch.objective(network, examples))

    losses, gradient, _ = _sum(batch, batch.episodes[0], shares, work, len(start))
    return Begun(losses, lambda pulled, everyone: batch.put(gradient, fast.weights))


def maml(learner: MAML, episodes: Sequence[Episode], shard: Sequence[Episode], fast: FastEncoder, bf16: bool) -> Begun:
    """Take the gradient of each transfer alone, in the weights and in rates that are learned."""
    batch = MetaBatch(fast, [episode.sets for episode in shard], learner, bf16)
    start, steps = batch.start(fast.weights), learner.options.inner_steps
    own = learner.adaptation.rates(learner.inner_lr)
    transfers = longest_first((pair for sets in batch.episodes for pair in pairwise(sets)), steps)
    rates = batch.rates(own)
    mode = batch.gradient_mode(start, rates, steps, len(transfers))

    def work(network: Network, pair: tuple[Prepared, Prepared]) -> Transfer:
        support, query = (batch.objective(network, examples) for examples in pair)
        return transfer(start, [support] * steps, query, rates, mode)

    count = sum(len(episode.sets) - 1 for episode in episodes)
    share = 1 / count if learner.options.reduction == "mean" else 1.0
    losses, gradient, of_rates = _sum(batch, transfers, [share] * len(transfers), work, len(start))

    def finish(pulled: Gradient, everyone: Sequence[Values]) -> None:
        batch.put(gradient[: len(fast.weights)], fast.weights)
        if not isinstance(own, float):
            batch.put(of_rates, own)

    return Begun(losses, finish)


def reptile(
    learner: Reptile, episodes: Sequence[Episode], shard: Sequence[Episode], fast: FastEncoder, bf16: bool
) -> Begun:
    """Take θ − θ_j of each episode alone."""
    batch, adaptation = MetaBatch(fast, [episode.sets for episode in shard], learner, bf16), learner.adaptation
    start, rates = batch.start(fast.weights), adaptation.rates(learner.options.inner_lr)
    first = adaptation.merged(start)

    def work(network: Network, sets: tuple[Prepared, ...]) -> tuple[Gradient, list[Tensor]]:
        inner = [batch.objective(network, examples) for examples in sets] * learner.options.inner_steps
        moved, losses = descend(start, inner, rates)
        ways = zip(first, adaptation.merged(moved), adaptation.shifts, strict=True)
        return [a - b.detach() if shifts else None for a, b, shifts in ways], losses

    total, inner = Sum(len(first)), []
    for moved, losses in fast.each(longest_first(batch.episodes), work):
        total.add(moved, 1 / len(episodes))
        inner += losses
    # The first value, whose gradient is the outer one, is not needed for it here.
    values = [torch.zeros_like(inner[0]), torch.stack(inner)]
    return Begun(values, lambda pulled, everyone: batch.put(total.gradient, fast.weights))


def _sum(
    batch: MetaBatch,
    jobs: Sequence[Job],
    shares: Iterable[float],
    work: Callable[[Network, Job], Transfer],
    count: int,
) -> tuple[list[Tensor], Gradient, Gradient]:
    """Return the losses of jobs, and the sums of a share of each one's gradient in `count` weights and in rates."""
    total, of_rates, losses = Sum(count), Sum(count), []
    for share, result in zip(shares, batch.fast.each(jobs, work), strict=True):
        total.add(result.gradient, share)
        of_rates.add(result.rates or (), share)
        losses.append(result.loss)
    return losses, total.gradient, of_rates.gradient
