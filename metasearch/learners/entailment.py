"""Sentence vectors from entailment: Sentence-BERT's classification objective (Reimers & Gurevych 2019, section 3).

A linear head tells from (u, v, |u − v|) whether a premise entails a hypothesis, contradicts it, or neither. The head is
trained along, and kept in checkpoints, but is no part of the encoder that comes out.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from torch import nn

from metasearch.config import Declared, Loss
from metasearch.data.entailment import LABELS, EntailmentPair
from metasearch.encoders.base import Encoder
from metasearch.episodes.episode import Episode
from metasearch.errors import ConfigError
from metasearch.learners.base import Learner, OuterLoss
from metasearch.losses.entailment import entailment_logits, entailment_loss
from metasearch.seeding import seed_of


class Entailment(Learner):
    """Minimises the cross entropy of the labels of entailment pairs."""

    class Options(Declared):
        """How pairs are classified.

        Attributes:
            output: the vectors u and v: `pooled`, as the paper has them, or `sentence`, of unit length.
            seed: of the head's first weights.
        """

        output: Literal["pooled", "sentence"] = "pooled"
        seed: int = 0

    options: Options
    links = (1,)
    data = ("entailment",)

    def __init__(self, encoder: Encoder, loss: Loss, options: Options) -> None:
        super().__init__(encoder, loss, options)
        width = 3 * encoder.dimension(options.output)
        bound = width**-0.5  # as torch.nn.Linear begins
        generator = torch.Generator().manual_seed(seed_of(options.seed, "entailment head"))
        weight = (2 * torch.rand(len(LABELS), width, generator=generator) - 1) * bound
        self.head = nn.Parameter(weight.to(encoder.device, next(encoder.embedder.parameters()).dtype))

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the encoder's weights, then W `(3, 3D)`."""
        yield from super().named_parameters()
        yield "head.weight", self.head

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the mean over all pairs; `accuracy` is the share whose label has the highest logit.

        Raises:
            ConfigError: the examples are not entailment pairs.
        """
        pairs = _pairs(episodes)
        row = {text: i for i, text in enumerate(dict.fromkeys(t for p in pairs for t in (p.premise, p.hypothesis)))}
        device = self.encoder.device
        first = torch.tensor([row[pair.premise] for pair in pairs], device=device)
        second = torch.tensor([row[pair.hypothesis] for pair in pairs], device=device)
        labels = torch.tensor([LABELS.index(pair.label) for pair in pairs], device=device)
        with self.attention():
            vectors = self.encoder.embedder(self.encoder.features(list(row), "text"), self.options.output)
        logits = entailment_logits(vectors[first], vectors[second], self.head)
        loss = entailment_loss(logits, labels)
        right = (logits.argmax(dim=-1) == labels).float().mean()
        return OuterLoss(loss, {"task": loss.item(), "accuracy": right.item()})


def _pairs(episodes: Sequence[Episode]) -> list[EntailmentPair]:
    examples: list[object] = [e for episode in episodes for found in episode.sets for e in found.examples]
    pairs = [example for example in examples if isinstance(example, EntailmentPair)]
    if len(pairs) < len(examples):
        other = next(example for example in examples if not isinstance(example, EntailmentPair))
        raise ConfigError(f"learner 'entailment' needs entailment pairs; the data holds a {type(other).__name__}")
    return pairs


LEARNER = Entailment
