"""Meta-SGD: MAML with a learned inner rate for each weight (Li et al., 2017)."""

from collections.abc import Iterator, Sequence

import torch
from torch import nn

from metasearch.algorithms.maml import MAML
from metasearch.config.recipe import Loss
from metasearch.encoders.encoder import Encoder


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


LEARNER = MetaSGD
