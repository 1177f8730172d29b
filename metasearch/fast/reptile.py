"""The fast form of Reptile."""

from collections.abc import Sequence

from torch import Tensor

from metasearch.episodes.episode import Episode
from metasearch.fast.encoder import FastEncoder, Sum
from metasearch.fast.meta_batch import MetaBatch, longest_first
from metasearch.fast.network import Network
from metasearch.fast.transfer import Weights, descend
from metasearch.learners.base import OuterLoss, reduce
from metasearch.learners.reptile import Reptile
from metasearch.learners.sets import Prepared


def gradient(learner: Reptile, episodes: Sequence[Episode], fast: FastEncoder, bf16: bool) -> OuterLoss:
    """Add θ − θ_j of the episodes, one after the other."""
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
    loss = 0.5 * reduce([moved.square().sum() for moved in total.gradient if moved is not None], "sum")
    batch.put(total.gradient, fast.weights)
    return OuterLoss(loss, {"task": reduce(inner, "mean").item()})
