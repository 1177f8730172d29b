"""MAML: adapt on the support set, and let the loss on the query set teach the initial weights.

MAML-Align paper, Algorithms 1 and 2, after Finn et al. (2017). An episode of three sets X→Y→Z counts as the two
transfers X→Y and Y→Z. Meta-SGD learns the inner rates, too.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from metasearch.algorithms.base import EpisodeLearner, OuterLoss, Values
from metasearch.algorithms.inner_loop import Model
from metasearch.algorithms.sets import Prepared
from metasearch.config.base import FrozenConfig, Positive, Rate
from metasearch.config.recipe import Loss
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.episode import Episode


class MAML(EpisodeLearner):
    """Model-agnostic meta-learning, first- or second-order."""

    class Options(FrozenConfig):
        """Hyper-parameters of MAML.

        Attributes:
            inner_lr: α, the rate of the inner steps (plain gradient descent on all trainable weights).
            inner_steps: n, inner steps on the support set.
            first_order: ignore how the inner gradients depend on the initial weights (FOMAML).
            reduction: of the query losses over the transfers of a meta-batch.
        """

        inner_lr: Rate = 1e-3
        inner_steps: Positive = 5
        first_order: bool = True
        reduction: Literal["mean", "sum"] = "mean"

    options: Options

    def losses(self, model: Model, sets: Sequence[Prepared]) -> Iterator[tuple[str, Tensor]]:
        """Yield each transfer's query loss, at weights adapted on its support set."""
        for support, query in pairwise(sets):
            yield "task", self.loss(self.adapted(model, support, self.options.inner_steps), query)

    def combine(self, values: Values, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the mean (or sum) over query losses."""
        losses = values["task"]
        total = losses.mean() if self.options.reduction == "mean" else losses.sum()
        return OuterLoss(total, {"task": total.item()})


class MetaSGD(MAML):
    """MAML with a learned rate for every weight, starting from its option `inner_lr`."""

    def __init__(self, encoder: Encoder, loss: Loss, options: MAML.Options) -> None:
        super().__init__(encoder, loss, options)
        self.rates = {
            name: nn.Parameter(torch.full_like(weight, options.inner_lr)) for name, weight in super().named_parameters()
        }

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the encoder's weights, then a rate for each."""
        yield from super().named_parameters()
        yield from ((f"rate.{name}", rate) for name, rate in self.rates.items())

    @property
    def inner_lr(self) -> Sequence[nn.Parameter]:
        """The rates, in the order of the weights."""
        return list(self.rates.values())


LEARNER_META_SGD = MetaSGD
"""Meta-SGD: MAML with a learned inner rate for each weight (Li et al., 2017)."""
LEARNER = MAML
