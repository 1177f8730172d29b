"""Any transformer of transformers in bfloat16: a copy whose linear layers are converted.

Before the conversion, its vectors of texts in one row must be the vectors that transformers computes with padding.
Networks whose attention has more than softmax(Q Kᵀ) V are refused so, such as T5 (position bias) and GPT-2 (causal).

Notation used for tensor shapes: B texts in a batch, N tokens of all texts, D dimensions, d dimensions of a head.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from metasearch.encoders.checks import distance
from metasearch.encoders.features import Output
from metasearch.encoders.inputs import TransformerInput, input_of
from metasearch.encoders.low.base import PROBED, LowNetwork
from metasearch.encoders.low.bert import LowBert
from metasearch.encoders.low.layers import Bfloat16Linear, RowLinear
from metasearch.encoders.low.plain import plain_network
from metasearch.encoders.packed import packed
from metasearch.encoders.packed_attention import ATTENTION
from metasearch.encoders.probe import probe_rows
from metasearch.errors import EncoderError

_SAME = 1e-3
"""Largest relative distance of vectors that are equal up to the rounding of float32."""
_WIDENING = ("embeddings_project", "embedding_hidden_mapping_in")
"""Layers of ELECTRA and ALBERT that give the first residual sum, which is float32."""


class LowCopy(LowNetwork):
    """A copy of an encoder's network whose linear layers are converted; all other weights are shared.

    Args:
        embedder: the network, whose first module must hold a transformer.
    """

    def __init__(self, embedder: Any) -> None:
        super().__init__(embedder.parameters())
        model = embedder.model
        shared = [model.tokenizer, getattr(model[0], "processor", model.tokenizer), model.model_card_data]
        memo = {id(part): part for part in (*self._weights, *shared)}
        self._module = copy.deepcopy(embedder, memo).eval()
        read = input_of(self._module.model)
        self._first, self._padding = read.first_position, read.padding
        read.attend_with(ATTENTION)
        self._require_same(embedder, read)
        self._replace(read.backbone, Bfloat16Linear)
        for module in list(self._module.model)[1:]:
            self._replace(module, RowLinear)

    def _require_same(self, embedder: Any, read: TransformerInput) -> None:
        columns, rows = probe_rows(read, *PROBED, read.window + 8)
        with torch.no_grad():
            expected = embedder(read.padded(columns, rows), "pooled")
        apart = distance(self.vectors(columns, rows, "pooled"), expected)
        if not apart <= _SAME:
            raise EncoderError(f"'{read.kind}' has other vectors in one row than in transformers ({apart:.1%} apart)")

    def _replace(self, parent: nn.Module, other: Callable[[nn.Linear], nn.Module]) -> None:
        for name, child in parent.named_children():
            if type(child) is nn.Linear:
                made = other(child)
                if name in _WIDENING:
                    made.register_forward_hook(lambda module, inputs, output: output.float())
                setattr(parent, name, made)
            elif name == "embeddings":
                # A factorised table: all layers read what it gives, and it takes no time.
                self._replace(child, Bfloat16Linear)
            else:
                self._replace(child, other)

    def vectors(self, columns: Sequence[str], rows: Sequence[NDArray[np.int32]], output: Output) -> Tensor:
        """Return vectors as `LowNetwork.vectors`."""
        order = sorted(range(len(rows)), key=lambda i: rows[i].shape[1])
        features = packed([rows[i] for i in order], columns, self._first, self._padding)
        with torch.no_grad():
            found: Tensor = self._module(features, output).float()
        return found[torch.tensor(order).argsort()]


def converted(embedder: Any) -> LowNetwork:
    """Return an encoder's network with its linear layers converted: a BERT as `LowBert`, others as a copy.

    `EncoderError` for a network whose vectors in one row are others.
    """
    plain = plain_network(embedder.model)
    if plain is not None:
        return LowBert(plain, embedder.parameters())
    return LowCopy(embedder)
