"""A meta-batch laid out for fast gradients."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from torch import Tensor

from metasearch.episodes.episode import LabelledSet
from metasearch.fast.encoder import Batch, FastEncoder
from metasearch.fast.network import Network
from metasearch.fast.transfer import GradientMode, Objective, Weights
from metasearch.learners.sets import Forward, Prepared, prepare, texts_of

Sets = TypeVar("Sets", bound=tuple[Prepared, ...])


class MetaBatch(Batch):
    """Episodes whose sets are laid out together, with the loss of a set.

    Attributes:
        episodes: the prepared sets of each episode.
    """

    def __init__(
        self,
        fast: FastEncoder,
        episodes: Sequence[Sequence[LabelledSet]],
        loss: Callable[[Forward, Prepared], Tensor],
        bf16: bool = False,
    ) -> None:
        sets = [examples for episode in episodes for examples in episode]
        super().__init__(fast, [texts_of(examples) for examples in sets])
        prepared = iter([prepare(fast.encoder, *pair) for pair in zip(sets, self.texts, strict=True)])
        self.episodes = [tuple(next(prepared) for _ in episode) for episode in episodes]
        self._loss, self._bf16 = loss, bf16

    def objective(self, network: Network, examples: Prepared) -> Objective:
        """Return the loss of a set as a function of the weights."""

        def loss(weights: Weights) -> Tensor:
            return self._loss(lambda texts: network.run(weights, texts, bf16=self._bf16), examples)

        return loss

    def gradient_mode(self, second_order: bool, start: Weights, steps: int, jobs: int) -> GradientMode:
        """Return how inner gradients are differentiated; see `FastEncoder.gradient_mode`."""
        # Without inner steps there is nothing to differentiate twice.
        if not second_order or not steps:
            return "first"
        # Inner steps are on all sets but the last; what fits for the largest fits for all.
        largest = max((examples for sets in self.episodes for examples in sets[:-1]), key=_tokens)
        return self.fast.gradient_mode(lambda network: self.objective(network, largest), start, steps, jobs)


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
