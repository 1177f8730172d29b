"""Reptile: move the initial weights towards the weights that each task leads to (Nichol et al., 2018).

The outer gradient is θ − mean_j θ_j, with θ_j the weights after inner steps on all sets of episode j. It is handed to
the engine as the loss ½ ‖θ − mean_j θ_j‖², θ_j held constant, whose gradient is exactly that.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from metasearch.episodes.episode import Episode
from metasearch.fast import Fast, Sum, descend
from metasearch.fast.meta_batch import longest_first
from metasearch.fast.network import Network
from metasearch.fast.transfer import Weights
from metasearch.learners.base import Learner, OuterLoss, reduce
from metasearch.learners.inner_loop import FastModel
from metasearch.learners.sets import Prepared
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

    def fast_gradient(self, episodes: Sequence[Episode], fast: Fast, bf16: bool) -> OuterLoss:
        """Add θ − θ_j of the episodes, one after the other."""
        batch = self.laid_out(episodes, fast, bf16)
        start = batch.weights(self.weights)

        def work(network: Network, sets: tuple[Prepared, ...]) -> tuple[Weights, list[Tensor]]:
            inner = [batch.objective(network, examples) for examples in sets] * self.options.inner_steps
            moved, losses = descend(start, inner, self.options.inner_lr)
            return [first - last.detach() for first, last in zip(start, moved, strict=True)], losses

        total, inner = Sum(len(start)), []
        for moved, losses in fast.each(longest_first(batch.episodes), work):
            total.add(moved, 1 / len(episodes))
            inner += losses
        loss = 0.5 * reduce([moved.square().sum() for moved in total.gradient if moved is not None], "sum")
        batch.put(total.gradient, self.weights)
        return OuterLoss(loss, {"task": reduce(inner, "mean").item()})


LEARNER = Reptile
