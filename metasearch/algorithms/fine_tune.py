"""Plain fine-tuning on the same episodes: one step on all examples of an episode, support and query alike.

The paper's baseline: "jointly and directly on the support and query sets" (MAML-Align paper, section 4.3). Its authors'
code instead steps on the support and then on each query set, one after the other.
"""

from collections.abc import Iterator, Sequence

from torch import Tensor

from metasearch.algorithms.base import EpisodeLearner, OuterLoss, Values, contiguous
from metasearch.algorithms.sets import Forward, Prepared
from metasearch.config.base import FrozenConfig
from metasearch.episodes.episode import Episode, LabelledSet


class FineTune(EpisodeLearner):
    """Minimise the mean loss over all examples in the meta-batch."""

    class Options(FrozenConfig):
        """Fine-tuning has no hyper-parameters."""

    links = (1, 2, 3)
    second_order = False
    adapts = False

    def losses(self, model: Forward, sets: Sequence[Prepared]) -> Iterator[tuple[str, Tensor]]:
        """Yield each set's loss, summed over examples."""
        for examples in sets:
            yield "task", len(examples) * self.loss(model, examples)

    def combine(self, values: Values, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the mean over examples."""
        total = values["task"].sum() / sum(len(examples.examples) for episode in episodes for examples in episode.sets)
        return OuterLoss(total, {"task": total.item()})

    def shards(self, episodes: Sequence[Episode], count: int) -> list[list[Sequence[LabelledSet]]]:
        """Return the sets for each shard; a single episode (a stage's batch) is split into parts.

        A loss that compares the examples of a set with each other then compares those of a shard.
        """
        if count == 1 or len(episodes) > 1:
            return super().shards(episodes, count)
        cut = [(whole.variant, contiguous(whole.examples, count)) for whole in episodes[0].sets]
        return [[[LabelledSet(v, tuple(parts[i])) for v, parts in cut if parts[i]]] for i in range(count)]


LEARNER = FineTune
