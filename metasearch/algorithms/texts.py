"""Learners without inner steps, whose loss uses only outputs of texts: distillation stages."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from metasearch.algorithms.base import Learner, OuterLoss, Values, contiguous
from metasearch.algorithms.sets import numbered
from metasearch.data.records import Example
from metasearch.episodes.episode import Episode
from metasearch.errors import ConfigError


@dataclass(frozen=True)
class Reading:
    """Distinct texts that an encoder reads.

    Attributes:
        texts: the texts.
        frozen: a copy of the encoder's network that reads them, without a gradient; None for the encoder itself.
    """

    texts: Sequence[str]
    frozen: nn.Module | None = None


class Outputs:
    """Encoder outputs by text.

    Args:
        texts: the distinct texts that were read.
        rows: the output of each text, `(texts, D)`; of an output by token, a row for each token, text after text.
    """

    def __init__(self, texts: Sequence[str], rows: Tensor) -> None:
        self.texts, self.rows = texts, rows
        self._row = numbered(texts)

    def __getitem__(self, texts: Sequence[str]) -> Tensor:
        """Return the outputs for some texts, `(len(texts), D)`."""
        places = torch.tensor([self._row[text] for text in texts], dtype=torch.long, device=self.rows.device)
        return self.rows[places]


class TextLearner(Learner):
    """A learner that encodes all texts of a meta-batch together, each distinct text once.

    Its options have `output`, the output of the encoder that is compared.
    """

    links = (1,)
    second_order = False
    learns_from: ClassVar[tuple[type[Example], str]]
    """Kind of the examples, and what messages call them."""

    def readings(self, pairs: Sequence[Any]) -> dict[str, Reading]:
        """Return the texts to read, by name for `combine`: `student` is trained."""
        return {"student": Reading(list(numbered(self.texts(pairs))))}

    def shards(self, episodes: Sequence[Episode], count: int) -> list[dict[str, Reading]]:
        """Return the texts to read in each shard; the loss needs the outputs from all shards."""
        shards: list[dict[str, Reading]] = [{} for _ in range(count)]
        for name, reading in self.readings(self.pairs(episodes)).items():
            for shard, texts in zip(shards, contiguous(reading.texts, count), strict=True):
                shard[name] = replace(reading, texts=texts)
        return shards

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the outer loss of a meta-batch on the encoder itself."""
        readings = self.readings(self.pairs(episodes))
        return self.combine({name: self._outputs(reading) for name, reading in readings.items()}, episodes)

    def _outputs(self, reading: Reading) -> Tensor:
        network = reading.frozen or self.encoder.embedder
        with torch.set_grad_enabled(torch.is_grad_enabled() and reading.frozen is None):
            outputs: Tensor = network(self.encoder.features(list(reading.texts), "text"), self.options.output)
        # In bfloat16 errors would be rounded away.
        return outputs.to(next(network.parameters()).dtype)

    def combine(self, values: Values, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the loss for all pairs in a meta-batch."""
        pairs = self.pairs(episodes)
        readings = self.readings(pairs).items()
        return self.loss(pairs, {name: Outputs(reading.texts, values[name]) for name, reading in readings})

    @abstractmethod
    def texts(self, pairs: Sequence[Any]) -> Iterable[str]:
        """Return the texts that the trained encoder reads."""

    @abstractmethod
    def loss(self, pairs: Sequence[Any], outputs: Mapping[str, Outputs]) -> OuterLoss:
        """Return the loss of pairs (examples of the meta-batch) from the encoder outputs."""

    def pairs(self, episodes: Sequence[Episode]) -> list[Any]:
        """Return the examples in a meta-batch; `ConfigError` for a kind that the learner does not use."""
        kind, called = self.learns_from
        pairs = [example for episode in episodes for examples in episode.sets for example in examples.examples]
        for example in pairs:
            if not isinstance(example, kind):
                name = type(self).__module__.rpartition(".")[2].replace("_", "-")
                raise ConfigError(f"learner '{name}' needs {called}; the data holds a {type(example).__name__}")
        return pairs
