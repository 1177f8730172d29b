"""A meta-batch on the fast engine, as learners see it."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from torch import Tensor

from metasearch.episodes.episode import Episode
from metasearch.fast import Batch, Fast
from metasearch.fast.layout import lay_out
from metasearch.fast.network import Network
from metasearch.fast.transfer import Objective, Way, Weights
from metasearch.learners.sets import Forward, Prepared, group_of, together

Task = TypeVar("Task", bound=tuple[Prepared, ...])


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

    def way(self, second_order: bool, start: Weights, steps: int, tasks: int) -> Way:
        """Return how inner gradients are differentiated, of so many inner steps in so many tasks."""
        if not second_order or not steps:
            return "first"
        largest = max((examples for sets in self.episodes for examples in sets[:-1]), key=_tokens)
        return self.fast.way(lambda network: self.objective(network, largest), start, steps, tasks)


def longest_first(tasks: Iterable[Task], steps: int = 1) -> list[Task]:
    """Return tasks, each some sets, by descending work, so that no thread begins the longest one when others are done.

    Args:
        tasks: sets of which all but the last are gone through in every inner step.
        steps: inner steps.
    """

    def work(task: Task) -> int:
        return steps * sum(map(_tokens, task[:-1])) + _tokens(task[-1])

    return sorted(tasks, key=work, reverse=True)


def _tokens(examples: Prepared) -> int:
    return sum(tower.tokens for tower in examples.towers)
