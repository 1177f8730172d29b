"""Sentence vectors from entailment: Sentence-BERT's classification objective (Reimers & Gurevych 2019, section 3).

A linear head tells from (u, v, |u − v|) whether a premise entails a hypothesis, contradicts it, or neither. The head is
trained along, and kept in checkpoints, but is no part of the encoder that comes out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from metasearch.data.entailment import LABELS, EntailmentPair
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.episode import Episode
from metasearch.errors import ConfigError
from metasearch.fast import Fast
from metasearch.learners.base import Learner, OuterLoss
from metasearch.learners.losses.entailment import entailment_logits, entailment_loss
from metasearch.spec.recipe import Declared, Loss
from metasearch.spec.seeding import seed_of


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
        pairs, row = _rows(episodes)
        with self.attention():
            vectors = self.encoder.embedder(self.encoder.features(list(row), "text"), self.options.output)
        return self._outer(pairs, row, vectors)

    def fast_gradient(self, episodes: Sequence[Episode], fast: Fast, bf16: bool) -> OuterLoss:
        """Do the same on the fast engine."""
        pairs, row = _rows(episodes)
        return self.of_texts(
            fast, list(row), self.options.output, bf16, lambda found: self._outer(pairs, row, found), [self.head]
        )

    def _outer(self, pairs: Sequence[EntailmentPair], row: Mapping[str, int], vectors: Tensor) -> OuterLoss:
        """Return the loss of vectors, of which each text has a row."""
        first = torch.tensor([row[pair.premise] for pair in pairs], device=vectors.device)
        second = torch.tensor([row[pair.hypothesis] for pair in pairs], device=vectors.device)
        labels = torch.tensor([LABELS.index(pair.label) for pair in pairs], device=vectors.device)
        logits = entailment_logits(vectors[first], vectors[second], self.head)
        loss = entailment_loss(logits, labels)
        right = (logits.argmax(dim=-1) == labels).float().mean()
        return OuterLoss(loss, {"task": loss.item(), "accuracy": right.item()})


def _rows(episodes: Sequence[Episode]) -> tuple[list[EntailmentPair], dict[str, int]]:
    """Return the pairs, and a number for each distinct text."""
    pairs = _pairs(episodes)
    return pairs, {t: i for i, t in enumerate(dict.fromkeys(t for p in pairs for t in (p.premise, p.hypothesis)))}


def _pairs(episodes: Sequence[Episode]) -> list[EntailmentPair]:
    examples: list[object] = [e for episode in episodes for found in episode.sets for e in found.examples]
    pairs = [example for example in examples if isinstance(example, EntailmentPair)]
    if len(pairs) < len(examples):
        other = next(example for example in examples if not isinstance(example, EntailmentPair))
        raise ConfigError(f"learner 'entailment' needs entailment pairs; the data holds a {type(other).__name__}")
    return pairs


LEARNER = Entailment
