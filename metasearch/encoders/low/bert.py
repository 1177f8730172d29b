"""A BERT in bfloat16, which needs no transformers.

The layers of queries, keys and values are one product, and GELU is part of the product before it.

Notation used for tensor shapes: B texts in a batch, N tokens of all texts, D dimensions.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from metasearch.encoders.features import Output
from metasearch.encoders.low.attention import Attention
from metasearch.encoders.low.base import PROBED, LowNetwork
from metasearch.encoders.low.layers import Bfloat16Linear, RowLinear
from metasearch.encoders.low.network import CLS, Layer, StoredNetwork

_STEP = 16
"""Rows of products are a multiple of it: oneDNN compiles and keeps a kernel for each number of rows."""


class LowBert(LowNetwork):
    """The linear layers of a network converted; all other weights are shared.

    Args:
        network: the network.
        weights: the weights that it has them from, which may be trained; by default its own.
    """

    probed = PROBED[:1]  # positions are added to words, so that short texts show all

    def __init__(self, network: StoredNetwork, weights: Iterable[Tensor] | None = None) -> None:
        super().__init__(network.parameters() if weights is None else weights)
        self._network = network
        self._words = network.words
        if isinstance(self._words, nn.Sequential):  # a factorised table
            table, projection = self._words
            assert isinstance(projection, nn.Linear)
            self._words = nn.Sequential(table, Bfloat16Linear(projection))
        self._layers = [_LowLayer(layer) for layer in network.layers if isinstance(layer, Layer)]
        self._maps = [RowLinear(each) for each in network.maps if isinstance(each, nn.Linear)]

    def vectors(self, columns: Sequence[str], rows: Sequence[NDArray[np.int32]], output: Output) -> Tensor:
        """Return vectors as `LowNetwork.vectors`."""
        network = self._network
        order = sorted(range(len(rows)), key=lambda i: rows[i].shape[1])
        lengths = [rows[i].shape[1] for i in order]
        count = sum(lengths)
        empty = -count % _STEP
        tokens = np.concatenate([*(rows[i] for i in order), np.zeros((len(columns), empty), np.int32)], axis=1)
        named = dict(zip(columns, torch.from_numpy(tokens.astype(np.int64)), strict=True))
        places = torch.from_numpy(np.concatenate([np.arange(length) for length in (*lengths, empty)]))
        with torch.no_grad():
            states = network.embedded(self._words, named["input_ids"], named.get("token_type_ids"), places)
            attention = Attention(lengths, network.heads, count + empty)
            for _ in range(network.repeats):
                for layer in self._layers:
                    states = layer(states, attention)
            found = network.finished(_pooled(states[:count], lengths, network.after[0]), output, self._maps)
        return found[torch.tensor(order).argsort()]


class _LowLayer:
    def __init__(self, layer: Layer) -> None:
        self._joined = Bfloat16Linear(_joined(layer))
        self._out, self._out_norm = Bfloat16Linear(layer.out), layer.out_norm
        self._wide = Bfloat16Linear(layer.wide, gelu=True)
        self._narrow, self._norm = Bfloat16Linear(layer.narrow), layer.norm

    def __call__(self, states: Tensor, attention: Attention) -> Tensor:
        """Return states `(N, D)` in float32."""
        states = self._out_norm(self._out(attention(self._joined(states))) + states)
        found: Tensor = self._norm(self._narrow(self._wide(states)) + states)
        return found


def _joined(layer: Layer) -> nn.Linear:
    """Return scaled queries, keys and values as one linear layer."""
    parts, scale = (layer.query, layer.key, layer.value), (layer.query.weight.shape[0] // layer.heads) ** -0.5
    rows, columns = 3 * layer.query.weight.shape[0], layer.query.weight.shape[1]
    found = nn.Linear(columns, rows, device="meta")
    for name in ("weight", "bias"):
        query, *others = (getattr(part, name).detach() for part in parts)
        setattr(found, name, nn.Parameter(torch.cat([query * scale, *others]), requires_grad=False))
    return found


def _pooled(states: Tensor, lengths: Sequence[int], how: str) -> Tensor:
    """Return the mean over each text's tokens, or its first token, `(B, D)`, for states `(N, D)`."""
    counts = torch.tensor(lengths)
    if how == CLS:
        return states[counts.cumsum(0) - counts]
    found: Tensor = torch.segment_reduce(states, "mean", lengths=counts)
    return found
