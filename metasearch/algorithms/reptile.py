"""Reptile: move the initial weights towards the weights that each episode leads to (Nichol et al., 2018).

The outer gradient is θ − mean_j θ_j, with θ_j the weights after inner steps on all sets of episode j. The loss that is
logged is the mean of the inner losses.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from metasearch.algorithms.base import EpisodeLearner
from metasearch.algorithms.inner_loop import Model, with_gradient
from metasearch.algorithms.sets import Prepared
from metasearch.config.base import FrozenConfig, Positive, Rate


class Reptile(EpisodeLearner):
    """First-order meta-learning without a split into support and query."""

    class Options(FrozenConfig):
        """Hyper-parameters of Reptile.

        Attributes:
            inner_lr: rate of the inner steps (plain gradient descent on all trainable weights).
            inner_steps: how many times the sets of an episode are gone through, a step on each.
        """

        inner_lr: Rate = 1e-3
        inner_steps: Positive = 5

    options: Options
    second_order = False

    def losses(self, model: Model, sets: Sequence[Prepared]) -> Iterator[tuple[str, Tensor]]:
        """Yield the episode's mean inner loss, with θ − θ_j in place of its gradient."""
        adapted, inner = model.clone(), []
        for examples in [*sets] * self.options.inner_steps:
            loss = self.loss(adapted, examples)
            inner.append(loss.detach())
            adapted.adapt(loss)
        moved = [start.detach() - end.detach() for start, end in zip(model.weights, adapted.weights, strict=True)]
        yield "task", with_gradient(torch.stack(inner).mean(), model.weights, moved)


LEARNER = Reptile
