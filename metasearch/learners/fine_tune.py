"""Plain fine-tuning on the same episodes: one step on all examples of an episode, support and query alike.

The paper's baseline: "jointly and directly on the support and query sets" (MAML-Align paper, section 4.3). Its authors'
code instead steps on the support and then on each query set, one after the other.
"""

from collections.abc import Sequence

from metasearch.episodes.episode import Episode
from metasearch.learners.base import Learner, OuterLoss, reduce
from metasearch.spec.recipe import Declared


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


LEARNER = FineTune
