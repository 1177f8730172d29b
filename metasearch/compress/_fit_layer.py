"""Fits one layer to what several did, on what the layers below it give.

Notation used for tensor shapes: F neurons of the blocks of a group of layers, M that stay, H columns of their output.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from metasearch.compress._moments import Moments
from metasearch.compress._reconstruct import reconstruct, with_ridge
from metasearch.encoders.compressed import layers_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import transformer_of
from metasearch.errors import EncoderError

_BATCH = 64
_LEAST_SCALE = 1e-6
"""A column that LayerNorm scales by less counts as if it were scaled by this."""


@dataclass(frozen=True)
class Block:
    """The feed-forward block of a layer, and what normalises its sum with what it reads."""

    into: nn.Linear
    activation: Any
    out: nn.Linear
    norm: nn.LayerNorm


def block_of(layer: Any) -> Block:
    """Return the feed-forward block of a layer."""
    if hasattr(layer, "ffn"):  # DistilBERT
        return Block(layer.ffn.lin1, layer.ffn.activation, layer.ffn.lin2, layer.output_layer_norm)
    inner = layer.intermediate
    return Block(inner.dense, inner.intermediate_act_fn, layer.output.dense, layer.output.LayerNorm)


@dataclass(frozen=True)
class Fitted:
    """A layer, and the share `left` of the variance of what it was to give that it does not give."""

    layer: nn.Module
    left: float


class LayerFitter:
    """Makes the layers of a new encoder from the lowest on.

    Args:
        encoder: the whole encoder.
        texts: on which its layers are compared with new ones.
    """

    def __init__(self, encoder: Encoder, texts: Sequence[str]) -> None:
        self.below: list[nn.Module] = []
        self._whole, self._made = _sharing(encoder), _sharing(encoder)
        self._layers = list(_stack(self._made).layer)
        self._all = list(_stack(self._whole).layer)
        # Texts of similar length share a batch, so that little of it is padding.
        order = sorted(texts, key=dict(zip(texts, encoder.lengths(texts, "text"), strict=True)).__getitem__)
        self._batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]

    @torch.no_grad()
    def fit(self, group: range, neurons: int) -> Fitted:
        """Return the layer for a group of layers, by numbers from 0, and put it above those that there are.

        Raises:
            EncoderError: a layer gives values that are not finite.
        """
        best = min((self._fitted(group, attention, neurons) for attention in group), key=lambda each: each.left)
        self.below.append(best.layer)
        return best

    def _fitted(self, group: range, attention: int, neurons: int) -> Fitted:
        """Return the layer that has the attention of one of a group, and some of the neurons of all of them."""
        blocks = [block_of(self._layers[number]) for number in group]
        weight, bias = (torch.cat([getattr(block.into, name) for block in blocks]) for name in ("weight", "bias"))
        moments = Moments()
        for read, total in self._values(attention, group[-1]):
            moments.add(blocks[0].activation(nn.functional.linear(read, weight, bias)), total - read)
        if not (moments.covariance.isfinite().all() and moments.variance.isfinite().all()):
            name = self._whole.name
            raise EncoderError(f"{name}: a layer gives values that are not finite; its weights may be damaged")
        scale = blocks[-1].norm.weight.detach().cpu().double().abs().clamp(min=_LEAST_SCALE)[:, None]
        chosen, new, left = _solved(moments, scale, neurons)
        mean, wanted = moments.means
        layer = copy.deepcopy(self._layers[attention])
        own = block_of(layer)
        _set(own.into, weight[chosen], bias[chosen])
        # The bias keeps the mean of the output; the covariance says nothing about it.
        _set(own.out, new, wanted - new @ mean[chosen])
        own.norm.load_state_dict(blocks[-1].norm.state_dict())
        return Fitted(layer, left)

    def _values(self, attention: int, last: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield what a block reads above the new layers, and the sum that the last layer of a group normalises.

        Both are `(tokens, H)` of the tokens of a batch, padding left out.
        """
        _stack(self._made).layer = nn.ModuleList([*self.below, self._layers[attention]])
        _stack(self._whole).layer = nn.ModuleList(self._all[: last + 1])
        into, norm = block_of(self._layers[attention]).into, block_of(self._all[last]).norm
        for texts in self._batches:
            features = self._whole.features(texts, "text")
            mask = features["attention_mask"].bool()
            with _seen(into) as read, _seen(norm) as total:
                self._made.embedder(dict(features))
                self._whole.embedder(features)
            yield read[0][mask], total[0][mask]


def _solved(moments: Moments, scale: Tensor, count: int) -> tuple[Tensor, Tensor, float]:
    """Return the neurons that stay `(M,)`, their output weights `(H, M)`, and what these leave unexplained."""
    covariance, cross = moments.covariance, moments.cross
    every = torch.linalg.solve(with_ridge(covariance), cross.T).T
    chosen, scaled = reconstruct(covariance, scale * every, count)
    new = scaled / scale
    squares = (new @ covariance[chosen][:, chosen] * new).sum(1) - 2 * (new * cross[:, chosen]).sum(1)
    weights = scale[:, 0].square()
    whole = float(weights @ moments.variance)
    return chosen, new, float(weights @ (moments.variance + squares)) / whole if whole else 0.0


def _sharing(encoder: Encoder) -> Encoder:
    """Return an encoder around the same weights, in evaluation, whose list of layers can be changed."""
    shared = {id(weight): weight for weight in transformer_of(encoder.model).parameters()}
    made = Encoder(copy.deepcopy(encoder.model, shared), encoder.name, encoder.max_length)
    made.embedder.eval()
    return made


def _stack(encoder: Encoder) -> Any:
    return layers_of(transformer_of(encoder.model))


@contextmanager
def _seen(module: nn.Module) -> Iterator[list[Tensor]]:
    """Give the first input of each call of a module."""
    seen: list[Tensor] = []
    handle = module.register_forward_pre_hook(lambda _, values: seen.append(values[0]))
    try:
        yield seen
    finally:
        handle.remove()


def _set(linear: nn.Linear, weight: Tensor, bias: Tensor) -> None:
    # Solved weights come transposed, and safetensors refuses what is not contiguous.
    linear.weight, linear.bias = (
        nn.Parameter(new.detach().to(linear.weight).clone().contiguous()) for new in (weight, bias)
    )
    linear.out_features, linear.in_features = weight.shape
