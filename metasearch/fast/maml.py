"""The fast form of MAML and Meta-SGD."""

from collections.abc import Sequence
from itertools import pairwise

from metasearch.episodes.episode import Episode
from metasearch.fast.encoder import FastEncoder, Sum
from metasearch.fast.meta_batch import MetaBatch, longest_first
from metasearch.fast.network import Network
from metasearch.fast.transfer import Transfer, transfer
from metasearch.learners.base import OuterLoss, reduce
from metasearch.learners.maml import MAML
from metasearch.learners.sets import Prepared


def gradient(learner: MAML, episodes: Sequence[Episode], fast: FastEncoder, bf16: bool) -> OuterLoss:
    """Add the gradients of the transfers, one after the other, each by `transfer`."""
    batch = MetaBatch(fast, episodes, learner.loss, bf16)
    start, steps, learned = batch.weights(fast.weights), learner.options.inner_steps, learner.inner_lr
    transfers = longest_first((pair for sets in batch.episodes for pair in pairwise(sets)), steps)
    rates = learned if isinstance(learned, float) else batch.weights(learned)
    mode = batch.gradient_mode(learner.second_order, start, steps, len(transfers))

    def work(network: Network, pair: tuple[Prepared, Prepared]) -> Transfer:
        support, query = (batch.objective(network, examples) for examples in pair)
        return transfer(start, [support] * steps, query, rates, mode)

    share = 1 / len(transfers) if learner.options.reduction == "mean" else 1.0
    total, of_rates, losses = Sum(len(start)), Sum(len(start)), []
    for result in fast.each(transfers, work):
        total.add(result.gradient, share)
        of_rates.add(result.rates or (), share)
        losses.append(result.loss)
    batch.put(total.gradient, fast.weights)
    if not isinstance(learned, float):
        batch.put(of_rates.gradient, learned)
    loss = reduce(losses, learner.options.reduction)
    return OuterLoss(loss, {"task": loss.item()})
