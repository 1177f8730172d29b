"""A meta-batch laid out for fast gradients."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from torch import Tensor

from metasearch.episodes.episode import LabelledSet
from metasearch.fast.encoder import Batch, FastEncoder
from metasearch.fast.network import Network
from metasearch.fast.transfer import GradientMode, Objective, Weights
from metasearch.learners.base import Learner
from metasearch.learners.inner_loop import Rates
from metasearch.learners.sets import Prepared, prepare, texts_of

Sets = TypeVar("Sets", bound=tuple[Prepared, ...])


class MetaBatch(Batch):
    """Episodes whose sets are laid out together, with the loss of a set.

    Args:
        fast: the encoder.
        episodes: the sets of each episode.
        learner: gives the loss of a set, and what adapts.
        bf16: whether forward passes run in bfloat16.

    Attributes:
        episodes: the prepared sets of each episode.
    """

    def __init__(
        self,
        fast: FastEncoder,
        episodes: Sequence[Sequence[LabelledSet]],
        learner: Learner,
        bf16: bool = False,
    ) -> None:
        sets = [examples for episode in episodes for examples in episode]
        super().__init__(fast, [texts_of(examples) for examples in sets])
        prepared = iter([prepare(fast.encoder, *pair) for pair in zip(sets, self.texts, strict=True)])
        self.episodes = [tuple(next(prepared) for _ in episode) for episode in episodes]
        self._learner, self._bf16 = learner, bf16

    def start(self, values: Sequence[Tensor]) -> Weights:
        """Return Θ, where inner steps begin, from values of the trainable weights; see `Adaptation`."""
        return self._learner.adaptation.start(self.weights(values))

    def objective(self, network: Network, examples: Prepared) -> Objective:
        """Return the loss of a set as a function of Θ."""

        def loss(point: Weights) -> Tensor:
            weights = self._learner.adaptation.merged(point)
            return self._learner.loss(lambda texts: network.run(weights, texts, bf16=self._bf16), examples)

        return loss

    def gradient_mode(self, start: Weights, rates: Rates, steps: int, jobs: int) -> GradientMode:
        """Return how inner gradients are differentiated; see `FastEncoder.gradient_mode`."""
        # Without inner steps there is nothing to differentiate twice.
        if not self._learner.second_order or not steps:
            return "first"
        # Inner steps are on all sets but the last; what fits for the largest fits for all.
        largest = max((examples for sets in self.episodes for examples in sets[:-1]), key=_tokens)
        return self.fast.gradient_mode(lambda network: self.objective(network, largest), start, steps, jobs, rates)


def longest_first(jobs: Iterable[Sets], steps: int = 1) -> list[Sets]:
    """Return jobs by descending work, so that no thread begins the longest one when others are done.

    A job is some sets, of which all but the last are gone through in every inner step.
    """

    def work(sets: Sets) -> int:
        return steps * sum(map(_tokens, sets[:-1])) + _tokens(sets[-1])

    # `sorted` is stable, so jobs of equal work keep their order, and sums over them their bits.
    return sorted(jobs, key=work, reverse=True)


def _tokens(examples: Prepared) -> int:
    return sum(tower.tokens for tower in examples.towers)
