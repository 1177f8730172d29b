"""Parameter counts by part, from an encoder or only its configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import AutoModel

from metasearch.encoders.compressed import CompressedConfig, CompressedModel
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import is_static
from metasearch.errors import EncoderError

COMPONENTS = ("words", "projection", "positions", "types", "LayerNorm", "layers", "pooler", "other")
"""The parts of an encoder. `other` is what sentence-transformers puts after the transformer, such as a dense layer."""

RULE = (
    "Counting rule of the papers: embedding = words + projection + positions (+ types + LayerNorm), encoder = layers "
    "that exist; pooler and other modules are in neither. A weight that is used several times counts once."
)

# The first that a parameter's name begins with decides.
_PREFIXES = {
    "embeddings.word_embeddings.projection.": "projection",
    "embeddings.tok_embeddings.projection.": "projection",  # ModernBERT
    "embeddings_project.": "projection",  # ELECTRA, from the width of the tables to that of the layers
    "embeddings.word_embeddings.": "words",
    "embeddings.tok_embeddings.": "words",  # ModernBERT
    "embedding.": "words",  # of a static encoder
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


def encoder_sizes(encoder: Encoder) -> Sizes:
    """Return an encoder's sizes."""
    first = encoder.model[0]
    sizes = _sizes(first if is_static(encoder.model) else first.auto_model)
    behind = sum(p.numel() for p in encoder.model.parameters()) - sizes.total
    return Sizes({**sizes.counts, "other": sizes.counts["other"] + behind})


def config_sizes(config: Any) -> Sizes:
    """Return the transformer sizes for a configuration, standard or compressed; `EncoderError` if it is invalid."""
    try:
        with torch.device("meta"):
            return _sizes(AutoModel.from_config(config))
    except Exception as error:  # transformers raises what the model's own code does
        raise EncoderError(f"no model can be made of this configuration: {str(error).strip()}") from error


def planned_sizes(config: Any, bottleneck: int | None, recurrent: int | None, repeats: int | None = None) -> Sizes:
    """Return the sizes that `make_student` would give, from the assistant's configuration; errors as there."""
    return config_sizes(CompressedConfig(config, bottleneck, recurrent, repeats))


def mebibytes(weights: int, bytes_each: int) -> float:
    """Return the memory for weights with 4 (fp32) or 2 (fp16) bytes, in MiB."""
    return weights * bytes_each / 2**20


def _sizes(transformer: nn.Module) -> Sizes:
    counts = dict.fromkeys(COMPONENTS, 0)
    for name, parameter in transformer.named_parameters():
        # A compressed model has the stock one, whose names the prefixes are, inside it.
        plain = name.removeprefix(f"{CompressedModel.base_model_prefix}.")
        component = next((part for prefix, part in _PREFIXES.items() if plain.startswith(prefix)), "other")
        counts[component] += parameter.numel()
    return Sizes(counts)
