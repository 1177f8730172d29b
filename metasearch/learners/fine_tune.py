"""Plain fine-tuning on the same episodes: one step on all examples of an episode, support and query alike.

The paper's baseline: "jointly and directly on the support and query sets" (MAML-Align paper, section 4.3). Its authors'
code instead steps on the support and then on each query set, one after the other.
"""

from collections.abc import Sequence

from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.learners.base import Learner, OuterLoss, Values, contiguous, reduce
from metasearch.spec.declared import Declared


class FineTune(Learner):
    """Minimises the mean loss over all examples of the meta-batch."""

    class Options(Declared):
        """Fine-tuning has no hyper-parameters of its own."""

    links = (1, 2, 3)
    second_order = False

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the mean over examples of their loss; each set counts by its size."""
        sets = [examples for episode in episodes for examples in episode.sets]
        total = sum(len(examples.examples) for examples in sets)
        losses = [
            self.loss(self.encoder.embedder, self.prepare(examples)) * (len(examples.examples) / total)
            for examples in sets
        ]
        loss = reduce(losses, "sum")
        return OuterLoss(loss, {"task": loss.item()})

    def shards(self, episodes: Sequence[Episode], count: int) -> list[list[LabelledSet]]:
        """Return the sets of each shard's episodes; the sets of a lone episode, a stage's batch, are cut themselves.

        A loss that compares the examples of a set with each other then compares those of a shard.
        """
        if count == 1 or len(episodes) > 1:
            return [[s for episode in part for s in episode.sets] for part in contiguous(episodes, count)]
        cut = [(whole.variant, contiguous(whole.examples, count)) for whole in episodes[0].sets]
        return [[LabelledSet(v, tuple(parts[i])) for v, parts in cut if parts[i]] for i in range(count)]

    def values(self, shard: Sequence[LabelledSet]) -> Values:
        """Return the loss of each set."""
        return [self.loss(self.encoder.embedder, self.prepare(examples)) for examples in shard]

    def combine(self, episodes: Sequence[Episode], values: Sequence[Values]) -> OuterLoss:
        """Return the mean over examples."""
        sizes = [len(examples.examples) for shard in self.shards(episodes, len(values)) for examples in shard]
        losses = [loss for shard in values for loss in shard]
        loss = reduce([loss * (size / sum(sizes)) for loss, size in zip(losses, sizes, strict=True)], "sum")
        return OuterLoss(loss, {"task": loss.item()})


LEARNER = FineTune
