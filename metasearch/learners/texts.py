"""Learners without inner steps, whose loss is one of the outputs of texts: stages of a distillation."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from metasearch.data.example import Example
from metasearch.episodes.episode import Episode
from metasearch.errors import ConfigError
from metasearch.learners.base import Learner, OuterLoss, Values, contiguous
from metasearch.learners.sets import numbered

RowOf = Mapping[str, int]
"""Text → its row among the outputs."""


class TextLearner(Learner):
    """A learner that encodes all texts of a meta-batch together, each distinct one once.

    Its options have `output`, the output of the encoder that is compared.
    """

    links = (1,)
    second_order = False
    learns_from: ClassVar[tuple[type[Example], str]]
    """Kind of the examples, and what messages call them."""

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the loss of all pairs of a meta-batch."""
        pairs = self.pairs(episodes)
        row_of = numbered(self.texts(pairs))
        outputs = self.encoder.embedder(self.encoder.features(list(row_of), "text"), self.options.output)
        return self.loss_of(pairs, row_of, outputs)

    def shards(self, episodes: Sequence[Episode], count: int) -> list[Any]:
        """Return the distinct texts that each shard reads: the loss is then one of the outputs of all of them."""
        return contiguous(list(numbered(self.texts(self.pairs(episodes)))), count)

    def values(self, shard: Any) -> Values:
        """Return the outputs of texts, `(texts, D)`."""
        return [self.outputs(self.encoder.embedder, shard)]

    def outputs(self, embedder: nn.Module, texts: Sequence[str]) -> Tensor:
        """Return the outputs of texts by the encoder's network or a copy of it, `(texts, D)`; there may be none."""
        if texts:
            return embedder(self.encoder.features(texts, "text"), self.options.output)  # type: ignore[no-any-return]
        weight = next(embedder.parameters())
        return weight.new_zeros(0, self.encoder.dimension(self.options.output))

    def combine(self, episodes: Sequence[Episode], values: Sequence[Values]) -> OuterLoss:
        """Return the loss of all pairs of a meta-batch from the outputs of all texts."""
        pairs = self.pairs(episodes)
        return self.loss_of(pairs, numbered(self.texts(pairs)), joined(values))

    @abstractmethod
    def texts(self, pairs: Sequence[Any]) -> Iterable[str]:
        """Return the texts of pairs that the trained encoder reads."""

    @abstractmethod
    def loss_of(self, pairs: Sequence[Any], row_of: RowOf, outputs: Tensor) -> OuterLoss:
        """Return the loss of pairs.

        Args:
            pairs: examples of the meta-batch.
            row_of: row of each text that was read.
            outputs: output of the trained encoder for each of them, `(texts, D)`; or a row for each token.
        """

    def pairs(self, episodes: Sequence[Episode]) -> list[Any]:
        """Return the examples of a meta-batch; `ConfigError` where one is of another kind than the learner's."""
        kind, called = self.learns_from
        pairs = [example for episode in episodes for examples in episode.sets for example in examples.examples]
        for example in pairs:
            if not isinstance(example, kind):
                name = type(self).__module__.rpartition(".")[2].replace("_", "-")
                raise ConfigError(f"learner '{name}' needs {called}; the data holds a {type(example).__name__}")
        return pairs


def joined(values: Sequence[Values], place: int = 0) -> Tensor:
    """Return the tensors at a place among the values of shards as one, in float32 where they are in bfloat16."""
    found = torch.cat([shard[place] for shard in values])
    # Outside of autocast, where a loss is taken: weights beside it have another type, and errors would be rounded away.
    return found.float() if found.dtype == torch.bfloat16 else found


def rows(row_of: RowOf, texts: Sequence[str], outputs: Tensor) -> Tensor:
    """Return the output of each text, `(len(texts), D)`."""
    return outputs[torch.tensor([row_of[text] for text in texts], dtype=torch.long, device=outputs.device)]
