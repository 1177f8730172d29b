"""Sentence vectors from entailment: Sentence-BERT's classification objective (Reimers & Gurevych 2019, section 3).

A linear head decides from (u, v, |u − v|) whether a premise entails a hypothesis, contradicts it, or neither. The head
is trained too and kept in checkpoints, but is not part of the encoder.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import torch
from torch import nn
from torch.nn import functional as F

from metasearch.algorithms.base import OuterLoss, Outputs, TextLearner
from metasearch.config.base import FrozenConfig
from metasearch.config.recipe import Loss
from metasearch.config.seeding import seed_of
from metasearch.data.entailment import LABELS, EntailmentPair
from metasearch.encoders.encoder import Encoder


class Entailment(TextLearner):
    """Minimise the cross entropy on labelled entailment pairs."""

    class Options(FrozenConfig):
        """Output for u and v: `pooled` (the paper) or `sentence` (unit length); and seed of the head."""

        output: Literal["pooled", "sentence"] = "pooled"
        seed: int = 0

    options: Options
    data = ("entailment",)

    def __init__(self, encoder: Encoder, loss: Loss, options: Options) -> None:
        super().__init__(encoder, loss, options)
        width = 3 * encoder.dimension(options.output)
        bound = width**-0.5  # as torch.nn.Linear begins
        # Drawn on the CPU, so that the head is the same on every device.
        generator = torch.Generator().manual_seed(seed_of(options.seed, "entailment head"))
        weight = (2 * torch.rand(len(LABELS), width, generator=generator) - 1) * bound
        self.head = nn.Parameter(weight.to(encoder.device, next(encoder.embedder.parameters()).dtype))

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the encoder's weights, then W `(3, 3D)`."""
        yield from super().named_parameters()
        yield "head.weight", self.head

    def texts(self, pairs: Sequence[EntailmentPair]) -> Iterable[str]:
        """Return premise and hypothesis for each pair, alternating."""
        return (text for pair in pairs for text in pair.texts)

    def loss(self, pairs: Sequence[EntailmentPair], outputs: Mapping[str, Outputs]) -> OuterLoss:
        """Return the mean over all pairs; `accuracy` is the share whose label has the highest logit."""
        first, second = (outputs["student"][[pair.texts[side] for pair in pairs]] for side in (0, 1))
        labels = torch.tensor([LABELS.index(pair.label) for pair in pairs], device=first.device)
        logits = F.linear(torch.cat([first, second, (first - second).abs()], dim=-1), self.head)
        loss = F.cross_entropy(logits, labels)
        right = (logits.argmax(dim=-1) == labels).float().mean()
        return OuterLoss(loss, {"task": loss.item(), "accuracy": right.item()})


LEARNER = Entailment
