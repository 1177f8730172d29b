"""MAML: adapt on the support set, and let the loss on the query set teach the initial weights.

MAML-Align paper, Algorithms 1 and 2, after Finn et al. (2017). An episode of three sets X→Y→Z counts as the two
transfers X→Y and Y→Z.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from torch import nn

from metasearch.episodes.episode import Episode
from metasearch.fast import Fast, Sum, Transfer, transfer
from metasearch.fast.meta_batch import longest_first
from metasearch.fast.network import Network
from metasearch.learners.base import Learner, OuterLoss, reduce
from metasearch.learners.sets import Prepared
from metasearch.spec.recipe import Declared, Positive, Rate


class MAML(Learner):
    """Model-agnostic meta-learning, first- or second-order."""

    class Options(Declared):
        """Hyper-parameters of MAML.

        Attributes:
            inner_lr: α, the rate of the inner steps (plain gradient descent on all weights).
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
        """The rate of the inner steps, or one for each trainable weight."""
        return self.options.inner_lr

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the mean (or sum) over transfers of the query loss at the adapted weights."""
        losses = []
        with self.attention():
            for episode in episodes:
                for support, query in episode.transfers():
                    fast = self.adapted(self.prepare(support), self.options.inner_steps, self.inner_lr)
                    losses.append(self.loss(fast, self.prepare(query)))
        total = reduce(losses, self.options.reduction)
        return OuterLoss(total, {"task": total.item()})

    def fast_gradient(self, episodes: Sequence[Episode], fast: Fast, bf16: bool) -> OuterLoss:
        """Add the gradients of the transfers, one after the other."""
        batch = self.laid_out(episodes, fast, bf16)
        start, steps, learned = batch.weights(self.weights), self.options.inner_steps, self.inner_lr
        transfers = longest_first((pair for sets in batch.episodes for pair in pairwise(sets)), steps)
        rates = learned if isinstance(learned, float) else batch.weights(learned)
        way = batch.way(self.second_order, start, steps, len(transfers))

        def work(network: Network, pair: tuple[Prepared, Prepared]) -> Transfer:
            support, query = (batch.objective(network, examples) for examples in pair)
            return transfer(start, [support] * steps, query, rates, way)

        share = 1 / len(transfers) if self.options.reduction == "mean" else 1.0
        total, of_rates, losses = Sum(len(start)), Sum(len(start)), []
        for found in fast.each(transfers, work):
            total.add(found.gradient, share)
            of_rates.add(found.rates or (), share)
            losses.append(found.loss)
        batch.put(total.gradient, self.weights)
        if not isinstance(learned, float):
            batch.put(of_rates.gradient, learned)
        loss = reduce(losses, self.options.reduction)
        return OuterLoss(loss, {"task": loss.item()})


LEARNER = MAML
