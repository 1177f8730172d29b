"""Plain fine-tuning on the same episodes: one step on all examples of an episode, support and query alike.

The paper's baseline: "jointly and directly on the support and query sets" (MAML-Align paper, section 4.3). Its authors'
code instead steps on the support and then on each query set, one after the other.
"""

from collections.abc import Sequence

from metasearch.episodes.episode import Episode
from metasearch.fast import Fast, Sum, Transfer, transfer
from metasearch.fast.network import Network
from metasearch.learners.base import Learner, OuterLoss, reduce
from metasearch.learners.sets import Prepared
from metasearch.spec.recipe import Declared


class FineTune(Learner):
    """Minimises the mean loss over all examples of the meta-batch."""

    class Options(Declared):
        """Fine-tuning has no hyper-parameters of its own."""

    links = (1, 2, 3)

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the mean over examples of their loss; each set counts by its size."""
        sets = [examples for episode in episodes for examples in episode.sets]
        total = sum(len(examples.examples) for examples in sets)
        with self.attention():
            losses = [
                self.loss(self.encoder.embedder, self.prepare(examples)) * (len(examples.examples) / total)
                for examples in sets
            ]
        loss = reduce(losses, "sum")
        return OuterLoss(loss, {"task": loss.item()})

    def fast_gradient(self, episodes: Sequence[Episode], fast: Fast, bf16: bool) -> OuterLoss:
        """Add the gradients of the sets, one after the other."""
        batch = self.laid_out(episodes, fast, bf16)
        start = batch.weights(self.weights)
        sizes = [len(examples.examples) for episode in episodes for examples in episode.sets]

        def work(network: Network, examples: Prepared) -> Transfer:
            return transfer(start, [], batch.objective(network, examples))

        total, losses = Sum(len(start)), []
        found = fast.each([examples for sets in batch.episodes for examples in sets], work)
        for size, one in zip(sizes, found, strict=True):
            total.add(one.gradient, size / sum(sizes))
            losses.append(one.loss * (size / sum(sizes)))
        batch.put(total.gradient, self.weights)
        loss = reduce(losses, "sum")
        return OuterLoss(loss, {"task": loss.item()})


LEARNER = FineTune
