"""An encoder as a function of tensors alone, which can be written as a graph.

Notation used for tensor shapes: B texts in a batch, T tokens, D dimensions.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import is_static


class Network(nn.Module):
    """An encoder with a transformer: columns of its tokenizer in, unit vectors out."""

    def __init__(self, encoder: Encoder, columns: Sequence[str]) -> None:
        super().__init__()
        self.embedder = encoder.embedder
        self.columns = tuple(columns)

    def forward(self, *columns: Tensor) -> Tensor:
        """Return unit vectors `(B, D)` of columns `(B, T)`, such as token ids and attention mask."""
        vectors: Tensor = self.embedder(dict(zip(self.columns, columns, strict=True)))
        return vectors


class StaticNetwork(nn.Module):
    """A static encoder: token ids and attention mask in, unit vectors out."""

    columns = ("input_ids", "attention_mask")

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.words = encoder.input.words
        self.further = nn.ModuleList(list(encoder.model)[1:])

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return unit vectors `(B, D)` of ids and mask `(B, T)`; that of no token is zero."""
        rows = nn.functional.embedding(ids, self.words.weight) * mask.unsqueeze(-1)
        state: Any = {"sentence_embedding": rows.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)}
        for module in self.further:
            state = module(state)
        vectors: Tensor = state["sentence_embedding"]
        return vectors


def network_of(encoder: Encoder, columns: Sequence[str]) -> Network | StaticNetwork:
    """Return the function of an encoder, around the same weights; `columns` are what its tokenizer gives."""
    return StaticNetwork(encoder) if is_static(encoder.model) else Network(encoder, columns)
