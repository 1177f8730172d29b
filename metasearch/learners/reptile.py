"""Reptile: move the initial weights towards the weights that each episode leads to (Nichol et al., 2018).

The outer gradient is θ − mean_j θ_j, with θ_j the weights after inner steps on all sets of episode j. It is handed to
the training loop as the loss ½ ‖θ − mean_j θ_j‖², θ_j held constant, whose gradient is exactly that. It is of the
weights alone that the inner loop moves: the others have no gradient. With low-rank updates θ_j is W + B_j A_j.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from metasearch.episodes.episode import Episode
from metasearch.learners.adapt import InnerOptions
from metasearch.learners.base import Learner, OuterLoss, Values, reduce
from metasearch.spec.declared import Positive, Rate


class Reptile(Learner):
    """First-order meta-learning without a split into support and query."""

    class Options(InnerOptions):
        """Hyper-parameters of Reptile.

        Attributes:
            inner_lr: rate of the inner steps (plain gradient descent on the weights that adapt).
            inner_steps: how many times the sets of an episode are gone through, a step on each.
        """

        inner_lr: Rate = 1e-3
        inner_steps: Positive = 5

    options: Options
    second_order = False

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return ½ ‖θ − mean_j θ_j‖², and the mean inner loss as the term `task`."""
        weights = self._shifting()
        moved, inner = self._moved(episodes, len(episodes))
        # ½ ‖θ − target‖² with target = θ − moved, written so that `moved` is not lost to rounding.
        halves = [0.5 * (w - w.detach() + move).square().sum() for w, move in zip(weights, moved, strict=True)]
        return OuterLoss(reduce(halves, "sum"), {"task": sum(inner) / len(inner)})

    def values(self, shard: Sequence[Episode]) -> Values:
        """Return Σ_j ⟨θ, θ − θ_j⟩ with θ − θ_j held constant, whose gradient is Σ_j (θ − θ_j), and the inner losses."""
        weights = self._shifting()
        moved, inner = self._moved(shard, 1)
        towards = reduce([(w * move).sum() for w, move in zip(weights, moved, strict=True)], "sum")
        return [towards, towards.new_tensor(inner)]

    def combine(self, episodes: Sequence[Episode], values: Sequence[Values]) -> OuterLoss:
        """Return a loss with the outer gradient; its value is known with the gradient only, see `reported`."""
        total = reduce([towards for towards, _ in values], "sum") / len(episodes)
        inner = [loss for _, losses in values for loss in losses]
        return OuterLoss(total, {"task": reduce(inner, "mean").item()})

    def reported(self, loss: OuterLoss, gradient: Sequence[Tensor]) -> OuterLoss:
        """Return ½ ‖θ − mean_j θ_j‖², half the square of the gradient's length."""
        return OuterLoss(0.5 * reduce([part.square().sum() for part in gradient], "sum"), loss.terms)

    def _shifting(self) -> list[nn.Parameter]:
        """Return the weights that the inner loop changes."""
        return [p for (_, p), shifts in zip(self.named_parameters(), self.adaptation.shifts, strict=True) if shifts]

    def _moved(self, episodes: Sequence[Episode], count: int) -> tuple[list[Tensor], list[float]]:
        """Return Σ_j (θ − θ_j) / `count` of the weights that the inner loop changes, and the inner losses."""
        weights, rates = self._shifting(), self.adaptation.rates(self.options.inner_lr)
        moved = [torch.zeros_like(weight) for weight in weights]
        inner: list[float] = []
        for episode in episodes:
            sets = [self.prepare(examples) for examples in episode.sets]
            fast = self.fast()
            for _ in range(self.options.inner_steps):
                for examples in sets:
                    loss = self.loss(fast, examples)
                    fast.adapt(loss, rates)
                    inner.append(loss.item())
            end_point = self.adaptation.merged([weight for weight in fast.parameters() if weight.requires_grad])
            adapted = [weight for weight, shifts in zip(end_point, self.adaptation.shifts, strict=True) if shifts]
            for total, start, end in zip(moved, weights, adapted, strict=True):
                total += (start.detach() - end.detach()) / count
        return moved, inner


LEARNER = Reptile
