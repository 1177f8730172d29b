"""Fit one layer to a group of layers, on the outputs of the layers below.

Notation used for tensor shapes: F neurons of the blocks of a group of layers, M that stay, H columns of their output.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import transformer_of
from metasearch.encoders.layers import layers_of, put_layers
from metasearch.errors import EncoderError

_BATCH = 64
_LEAST_SCALE = 1e-6
"""A column that LayerNorm scales by less counts as if it were scaled by this."""


@dataclass(frozen=True)
class Block:
    """The feed-forward block of a layer, and the normalisation of its residual sum."""

    into: nn.Linear
    activation: Any
    out: nn.Linear
    norm: nn.LayerNorm


def find_block(layer: Any) -> Block:
    """Return the feed-forward block of a layer."""
    if hasattr(layer, "ffn"):  # DistilBERT
        return Block(layer.ffn.lin1, layer.ffn.activation, layer.ffn.lin2, layer.output_layer_norm)
    inner = layer.intermediate
    return Block(inner.dense, inner.intermediate_act_fn, layer.output.dense, layer.output.LayerNorm)


@dataclass(frozen=True)
class FittedLayer:
    """A fitted layer, the share `left` of unexplained variance, and the number of tokens used."""

    layer: nn.Module
    left: float
    tokens: int


class LayerFitter:
    """Build the layers of a new encoder from the bottom up, fitted to an encoder's outputs for some texts."""

    def __init__(self, encoder: Encoder, texts: Sequence[str]) -> None:
        self.below: list[nn.Module] = []
        self._whole, self._made = _sharing(encoder), _sharing(encoder)
        self._layers = list(_stack(self._made))
        self._all = list(_stack(self._whole))
        # Texts of similar length share a batch, so that little of it is padding.
        order = sorted(texts, key=dict(zip(texts, encoder.lengths(texts, "text"), strict=True)).__getitem__)
        self._batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]

    @torch.no_grad()
    def fit(self, group: range, neurons: int) -> FittedLayer:
        """Fit a layer to a group of layers (numbered from 0), with the best of their attentions, and add it on top.

        `EncoderError` if a layer gives values that are not finite.
        """
        attention, equations = group[0], self._equations(group, group[0])
        for number in group[1:]:
            # One after the other, as the equations of many neurons are gigabytes.
            other = self._equations(group, number)
            if other.left() < equations.left():
                attention, equations = number, other
        blocks = self._blocks(group)
        chosen, weights = reconstruct(equations.covariance, equations.scale * equations.weights, neurons)
        weights = weights / equations.scale
        layer = copy.deepcopy(self._layers[attention])
        own = find_block(layer)
        weight, bias = self._into(group)
        _set(own.into, weight[chosen], bias[chosen])
        # The bias keeps the mean of the output; the covariance says nothing about it.
        _set(own.out, weights, equations.wanted - weights @ equations.mean[chosen])
        own.norm.load_state_dict(blocks[-1].norm.state_dict())
        self.below.append(layer)
        return FittedLayer(layer, equations.left(weights, chosen), equations.tokens)

    def _blocks(self, group: range) -> list[Block]:
        return [find_block(self._layers[number]) for number in group]

    def _into(self, group: range) -> tuple[Tensor, Tensor]:
        """Return weights `(F, H)` and biases `(F,)` for all neurons in a group."""
        blocks = self._blocks(group)
        return torch.cat([each.into.weight for each in blocks]), torch.cat([each.into.bias for each in blocks])

    def _equations(self, group: range, attention: int) -> "_Equations":
        """Return the regression targets for a group's neurons above the attention of one of its layers."""
        blocks = self._blocks(group)
        weight, bias = self._into(group)
        moments = Moments()
        for read, total in self._values(attention, group[-1]):
            moments.add(blocks[0].activation(nn.functional.linear(read, weight, bias)), total - read)
        mean, wanted = moments.means
        covariance, cross, variance = moments.covariances()
        if not (covariance.isfinite().all() and variance.isfinite().all()):
            name = self._whole.name
            raise EncoderError(f"{name}: a layer gives values that are not finite; its weights may be damaged")
        last = blocks[-1].out.weight.detach().cpu().double()
        weights = torch.zeros_like(cross)
        weights[:, -last.shape[1] :] = last
        # The ridge pulls to the weights of the last layer: with enough neurons a layer does not change.
        weights += torch.linalg.solve(with_ridge(covariance), (cross - weights @ covariance).T).T
        scale = blocks[-1].norm.weight.detach().cpu().double().abs().clamp(min=_LEAST_SCALE)[:, None]
        return _Equations(moments.tokens, mean, wanted, covariance, cross, variance, weights, scale)

    def _values(self, attention: int, last: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield a block's input above the new layers, and the residual sum of a group's last layer, `(tokens, H)`."""
        put_layers(transformer_of(self._made.model), nn.ModuleList([*self.below, self._layers[attention]]))
        put_layers(transformer_of(self._whole.model), nn.ModuleList(self._all[: last + 1]))
        into, norm = find_block(self._layers[attention]).into, find_block(self._all[last]).norm
        for texts in self._batches:
            features = self._whole.features(texts, "text")
            mask = features["attention_mask"].bool()
            with _seen(into) as read, _seen(norm) as total:
                self._made.embedder(dict(features))
                self._whole.embedder(features)
            yield read[0][mask], total[0][mask]


@dataclass(frozen=True)
class _Equations:
    """Targets `(H,)` per token for F neurons: moments, and weights `(H, F)` of all neurons."""

    tokens: int
    mean: Tensor
    wanted: Tensor
    covariance: Tensor
    cross: Tensor
    variance: Tensor
    weights: Tensor
    scale: Tensor

    def left(self, weights: Tensor | None = None, chosen: Tensor | None = None) -> float:
        """Return the share of scaled variance left by all neurons, or by chosen neurons with other weights."""
        own = self.weights if weights is None else weights
        at = slice(None) if chosen is None else chosen
        squares = (own @ self.covariance[at][:, at] * own).sum(1) - 2 * (own * self.cross[:, at]).sum(1)
        shares = self.scale[:, 0].square()
        whole = float(shares @ self.variance)
        return max(float(shares @ (self.variance + squares)) / whole, 0.0) if whole else 0.0


def _sharing(encoder: Encoder) -> Encoder:
    """Return an encoder with the same weights, in evaluation mode, with its own list of layers."""
    shared = {id(weight): weight for weight in transformer_of(encoder.model).parameters()}
    made = Encoder(copy.deepcopy(encoder.model, shared), encoder.name, encoder.max_length)
    made.embedder.eval()
    return made


def _stack(encoder: Encoder) -> nn.ModuleList:
    return layers_of(transformer_of(encoder.model))


@contextmanager
def _seen(module: nn.Module) -> Iterator[list[Tensor]]:
    """Return the first input of each call to a module."""
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


# Means and covariances of what a layer's neurons give and of what is wanted of them, over the tokens of texts.


class Moments:
    """Moments of values `(tokens, F)` and their targets `(tokens, H)`, in float64.

    Both are counted from the mean of the first batch: a difference of two large sums would be mostly rounding.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self._origin = self._sum = self._products = self._squares = torch.zeros(())
        self._width = 0

    def add(self, values: Tensor, wanted: Tensor) -> None:
        """Add values `(tokens, F)` and targets `(tokens, H)`."""
        both = torch.cat([values, wanted], dim=1)
        if not self.tokens:
            self._origin, self._width = both.mean(0), values.shape[1]
        moved = both - self._origin
        products = moved.T @ moved[:, : self._width]
        if not self.tokens:
            self._sum, self._squares = torch.zeros(2, both.shape[1], dtype=torch.float64)
            self._products = torch.zeros(products.shape, dtype=torch.float64)
        self.tokens += len(both)
        # Not every device has float64. In place, as the products of many neurons are gigabytes.
        self._sum += moved.cpu().double().sum(0)
        self._products += products.cpu()
        self._squares += moved.square().sum(0).cpu().double()

    @property
    def means(self) -> tuple[Tensor, Tensor]:
        """Means of the values `(F,)` and targets `(H,)`."""
        mean = self._origin.cpu().double() + self._sum / self.tokens
        return mean[: self._width], mean[self._width :]

    def covariances(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return covariances of values `(F, F)`, of targets with values `(H, F)`, and variances of targets `(H,)`."""
        mean = self._sum / self.tokens
        products = self._products.div_(self.tokens).addr_(mean, mean[: self._width], alpha=-1)
        variance = self._squares / self.tokens - mean.square()
        return products[: self._width], products[self._width :], variance[self._width :]


# Chooses channels of a layer, and the weights with which they stand for all of them.

RIDGE = 1e-4
"""Added to the variances, as a share of their mean: keeps the equations solvable where neurons never fire."""


def compute_ridge(covariance: Tensor) -> Tensor:
    """Return the ridge for a covariance `(F, F)`, one number."""
    # Above 0 also where no neuron of the layer ever varies, so that nothing is divided by 0.
    return (RIDGE * covariance.diagonal().mean()).clamp(min=torch.finfo(covariance.dtype).tiny)


def with_ridge(covariance: Tensor) -> Tensor:
    """Return a covariance `(F, F)` with the ridge on its diagonal."""
    return covariance + compute_ridge(covariance) * torch.eye(len(covariance)).to(covariance)


def reconstruct(covariance: Tensor, weight: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Choose M of F channels, and weights that reproduce the output of all channels.

    Returns numbers of the channels `(M,)`, ascending, and W' `(H, M)`, which minimises tr((W − W'P)·C·(W − W'P)ᵀ) for
    the matrix P that picks them. C is the covariance of the channels `(F, F)` with the ridge on its diagonal, and W
    `(H, F)` reads the channels, both in float64.
    """
    whole = with_ridge(covariance)
    if count == len(whole):
        return torch.arange(count), weight
    ridge = compute_ridge(covariance)
    # What the chosen channels do not explain, of C and of W·C. Choosing one is a step of a pivoted Cholesky
    # decomposition, so each costs a rank-one update where solving anew for every candidate would cost M systems.
    left, read = whole.clone(), weight @ whole
    chosen: list[int] = []
    for _ in range(count):
        alone = left.diagonal().clamp(min=ridge)  # below it by rounding only
        # How much smaller the squared error of the outputs gets with this channel.
        gain = read.square().sum(0) / alone
        # A gain is never negative, so none is chosen twice.
        gain[chosen] = -1
        best = int(gain.argmax())
        chosen.append(best)
        root = alone[best].sqrt()
        column, share = left[:, best] / root, read[:, best] / root
        left.addr_(column, column, alpha=-1)
        read.addr_(share, column, alpha=-1)
    # The greedy search only chooses: weights are solved from the whole matrix, free of the updates' rounding.
    numbers = torch.tensor(sorted(chosen))
    rows = whole[numbers]
    return numbers, torch.linalg.solve(rows[:, numbers], rows @ weight.T).T
