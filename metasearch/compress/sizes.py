"""Parameter counts by part, from an encoder or only its configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import nn
from transformers import AutoModel

from metasearch.encoders.compressed import CompressedConfig, CompressedModel
from metasearch.encoders.encoder import Encoder
from metasearch.errors import EncoderError

COMPONENTS = ("words", "projection", "positions", "types", "LayerNorm", "layers", "pooler", "other")
"""The parts of an encoder. `other` is what sentence-transformers puts after the transformer, such as a dense layer."""

# The first that a parameter's name begins with decides.
_PREFIXES = {
    "embeddings.word_embeddings.projection.": "projection",
    "embeddings.tok_embeddings.projection.": "projection",  # ModernBERT
    "embeddings_project.": "projection",  # ELECTRA, from the width of the tables to that of the layers
    "embeddings.word_embeddings.": "words",
    "embeddings.tok_embeddings.": "words",  # ModernBERT
    "embeddings.position_embeddings.": "positions",
    "embeddings.token_type_embeddings.": "types",
    "embeddings.LayerNorm.": "LayerNorm",
    "embeddings.norm.": "LayerNorm",  # ModernBERT
    "encoder.": "layers",
    "transformer.": "layers",  # DistilBERT
    "layers.": "layers",  # ModernBERT
    "final_norm.": "layers",  # ModernBERT; in the others it is part of the last layer
    "pooler.": "pooler",
}


@dataclass(frozen=True)
class Sizes:
    """Parameter counts, for each of `COMPONENTS` and their sums."""

    counts: Mapping[str, int]

    @classmethod
    def of(cls, encoder: Encoder) -> Self:
        """Return an encoder's sizes."""
        counts = _counts(encoder.model[0].auto_model)
        behind = sum(p.numel() for p in encoder.model.parameters()) - sum(counts.values())
        return cls({**counts, "other": counts["other"] + behind})

    @classmethod
    def of_config(cls, config: Any) -> Self:
        """Return the transformer sizes for a configuration, standard or compressed; `EncoderError` if it is invalid."""
        try:
            with torch.device("meta"):
                return cls(_counts(AutoModel.from_config(config)))
        except Exception as error:  # transformers raises what the model's own code does
            raise EncoderError(f"no model can be made of this configuration: {str(error).strip()}") from error

    @classmethod
    def planned(cls, config: Any, bottleneck: int | None, recurrent: int | None, repeats: int | None = None) -> Self:
        """Return the sizes that `make_student` would give, from the assistant's configuration; errors as there."""
        return cls.of_config(CompressedConfig(config, bottleneck, recurrent, repeats))

    @property
    def embedding(self) -> int:
        """Words, projection and positions: the papers' "embedding" column."""
        return sum(self.counts[part] for part in ("words", "projection", "positions"))

    @property
    def embedding_block(self) -> int:
        """All that comes before the first layer: `embedding` with types and LayerNorm."""
        return self.embedding + self.counts["types"] + self.counts["LayerNorm"]

    @property
    def total(self) -> int:
        """All weights."""
        return sum(self.counts.values())

    def rows(self) -> dict[str, int]:
        """Return the rows of a table, in order: each part, then the sums."""
        return {
            **self.counts,
            "embedding: words + projection + positions": self.embedding,
            "embedding + types + LayerNorm": self.embedding_block,
            "encoder: layers": self.counts["layers"],
            "whole model": self.total,
        }


def _counts(transformer: nn.Module) -> dict[str, int]:
    counts = dict.fromkeys(COMPONENTS, 0)
    for name, parameter in transformer.named_parameters():
        # A compressed model has the stock one, whose names the prefixes are, inside it.
        plain = name.removeprefix(f"{CompressedModel.base_model_prefix}.")
        component = next((part for prefix, part in _PREFIXES.items() if plain.startswith(prefix)), "other")
        counts[component] += parameter.numel()
    return counts
