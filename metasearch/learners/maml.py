"""MAML: adapt on the support set, and let the loss on the query set teach the initial weights.

MAML-Align paper, Algorithms 1 and 2, after Finn et al. (2017). An episode of three sets X→Y→Z counts as the two
transfers X→Y and Y→Z.
"""

from collections.abc import Sequence
from typing import Literal

from torch import nn

from metasearch.episodes.episode import Episode
from metasearch.learners.adapt import InnerOptions
from metasearch.learners.base import Learner, OuterLoss, Values, reduce
from metasearch.spec.declared import Positive, Rate


class MAML(Learner):
    """Model-agnostic meta-learning, first- or second-order."""

    class Options(InnerOptions):
        """Hyper-parameters of MAML.

        Attributes:
            inner_lr: α, the rate of the inner steps (plain gradient descent on the weights that adapt).
            inner_steps: n, inner steps on the support set.
            first_order: ignore how the inner gradients depend on the initial weights (FOMAML).
            reduction: of the query losses over the transfers of a meta-batch.
        """

        inner_lr: Rate = 1e-3
        inner_steps: Positive = 5
        first_order: bool = True
        reduction: Literal["mean", "sum"] = "mean"

    options: Options

    @property
    def inner_lr(self) -> float | Sequence[nn.Parameter]:
        """The rate of the inner steps, or one for each weight that adapts."""
        return self.options.inner_lr

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the mean (or sum) over transfers of the query loss at the adapted weights."""
        return self.combine(episodes, [self.values(episodes)])

    def values(self, shard: Sequence[Episode]) -> Values:
        """Return the query loss of each transfer of some episodes."""
        losses = []
        for support, query in (transfer for episode in shard for transfer in episode.transfers()):
            fast = self.adapted(self.prepare(support), self.options.inner_steps, self.inner_lr)
            losses.append(self.loss(fast, self.prepare(query)))
        return losses

    def combine(self, episodes: Sequence[Episode], values: Sequence[Values]) -> OuterLoss:
        """Return the mean (or sum) of the query losses."""
        total = reduce([loss for losses in values for loss in losses], self.options.reduction)
        return OuterLoss(total, {"task": total.item()})


LEARNER = MAML
