"""A meta-batch on the fast engine, as learners see it."""

from collections.abc import Callable, Sequence

from torch import Tensor

from metasearch.encoders._layout import lay_out
from metasearch.encoders._network import Network
from metasearch.episodes.episode import Episode
from metasearch.fast import Batch, Fast
from metasearch.fast.transfer import Objective, Way, Weights
from metasearch.learners._sets import Forward, Prepared, group_of, together


class MetaBatch(Batch):
    """Episodes whose sets are laid out together.

    Args:
        fast: engine of the encoder.
        episodes: of the meta-batch.
        loss: of a set.
        bf16: run forward passes in bfloat16.

    Attributes:
        episodes: the prepared sets of each episode.
    """

    def __init__(
        self, fast: Fast, episodes: Sequence[Episode], loss: Callable[[Forward, Prepared], Tensor], bf16: bool = False
    ) -> None:
        sets = [examples for episode in episodes for examples in episode.sets]
        super().__init__(fast, *lay_out(fast.encoder, fast.form, [group_of(examples) for examples in sets]))
        prepared = iter([together(fast.encoder, *pair) for pair in zip(sets, self.texts, strict=True)])
        self.episodes = [tuple(next(prepared) for _ in episode.sets) for episode in episodes]
        self._loss, self._bf16 = loss, bf16

    def objective(self, network: Network, examples: Prepared) -> Objective:
        """Return the loss of a set as a function of the weights."""

        def loss(weights: Weights) -> Tensor:
            return self._loss(lambda texts: network.run(weights, texts, bf16=self._bf16), examples)

        return loss

    def way(self, second_order: bool, start: Weights, steps: int) -> Way:
        """Return how inner gradients are differentiated."""
        if not second_order or not steps:
            return "first"
        largest = max((sets[i] for sets in self.episodes for i in range(len(sets) - 1)), key=_size)
        return self.fast.way(lambda network: self.objective(network, largest), start, steps, len(self.episodes))


def _size(examples: Prepared) -> int:
    return sum(tower.tokens for tower in examples.towers)
