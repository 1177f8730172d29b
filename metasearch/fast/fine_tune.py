"""The fast form of fine-tuning."""

from collections.abc import Sequence

from metasearch.episodes.episode import Episode
from metasearch.fast.encoder import FastEncoder, Sum
from metasearch.fast.meta_batch import MetaBatch
from metasearch.fast.network import Network
from metasearch.fast.transfer import Transfer, transfer
from metasearch.learners.base import OuterLoss, reduce
from metasearch.learners.fine_tune import FineTune
from metasearch.learners.sets import Prepared


def gradient(learner: FineTune, episodes: Sequence[Episode], fast: FastEncoder, bf16: bool) -> OuterLoss:
    """Add the gradients of the sets, one after the other."""
    batch = MetaBatch(fast, episodes, learner.loss, bf16)
    start = batch.weights(fast.weights)
    sizes = [len(examples.examples) for episode in episodes for examples in episode.sets]

    def work(network: Network, examples: Prepared) -> Transfer:
        return transfer(start, [], batch.objective(network, examples))

    total, losses = Sum(len(start)), []
    results = fast.each([examples for sets in batch.episodes for examples in sets], work)
    for size, result in zip(sizes, results, strict=True):
        total.add(result.gradient, size / sum(sizes))
        losses.append(result.loss * (size / sum(sizes)))
    batch.put(total.gradient, fast.weights)
    loss = reduce(losses, "sum")
    return OuterLoss(loss, {"task": loss.item()})
