"""Reptile: move the initial weights towards the weights that each episode leads to (Nichol et al., 2018).

The outer gradient is θ − mean_j θ_j, with θ_j the weights after inner steps on all sets of episode j. It is handed to
the training loop as the loss ½ ‖θ − mean_j θ_j‖², θ_j held constant, whose gradient is exactly that.
"""

from collections.abc import Sequence

import torch

from metasearch.episodes.episode import Episode
from metasearch.learners.base import Learner, OuterLoss, reduce
from metasearch.learners.inner_loop import FastModel
from metasearch.spec.recipe import Declared, Positive, Rate


class Reptile(Learner):
    """First-order meta-learning without a split into support and query."""

    class Options(Declared):
        """Hyper-parameters of Reptile.

        Attributes:
            inner_lr: rate of the inner steps (plain gradient descent on all weights).
            inner_steps: how many times the sets of an episode are gone through, a step on each.
        """

        inner_lr: Rate = 1e-3
        inner_steps: Positive = 5

    options: Options
    second_order = False

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return ½ ‖θ − mean_j θ_j‖², and the mean inner loss as the term `task`."""
        weights = [parameter for _, parameter in self.named_parameters()]
        moved = [torch.zeros_like(weight) for weight in weights]
        inner: list[float] = []
        for episode in episodes:
            sets = [self.prepare(examples) for examples in episode.sets]
            fast = FastModel(self.encoder.embedder, first_order=True)
            for _ in range(self.options.inner_steps):
                for examples in sets:
                    loss = self.loss(fast, examples)
                    fast.adapt(loss, self.options.inner_lr)
                    inner.append(loss.item())
            adapted = [weight for weight in fast.parameters() if weight.requires_grad]
            for total, start, end in zip(moved, weights, adapted, strict=True):
                total += (start.detach() - end.detach()) / len(episodes)
        # ½ ‖θ − target‖² with target = θ − moved, written so that `moved` is not lost to rounding.
        halves = [0.5 * (w - w.detach() + move).square().sum() for w, move in zip(weights, moved, strict=True)]
        return OuterLoss(reduce(halves, "sum"), {"task": sum(inner) / len(inner)})


LEARNER = Reptile
