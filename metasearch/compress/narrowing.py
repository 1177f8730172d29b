"""Makes the feed-forward blocks of an encoder narrower: few of their neurons stay, and take over what the others did.

A block computes W·h + b from the values h of its neurons. A part h' of them stays, and W' and b' are chosen so that
W'·h' + b' is nearest to it in the mean of squares over the tokens of some texts, each layer as if the others were
whole. Training continues from there.

- New weights of the neurons that stay: the reconstruction of a layer's output from some of its channels by He, Zhang &
  Sun, "Channel Pruning for Accelerating Very Deep Neural Networks" (2017), equation 1.
- Which neurons stay: the next is always the one that explains most of what is left; Chen, Billings & Luo, "Orthogonal
  least squares methods and their application to non-linear system identification" (1989).

Notation used for tensor shapes: F neurons of a block, M that stay, H columns of its output.
"""

import copy
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from metasearch.compress.student import with_transformer
from metasearch.encoders.compressed import backbone_config, layers_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import transformer_of
from metasearch.encoders.limits import check_fewer
from metasearch.errors import DataError, EncoderError
from metasearch.spec.seeding import stream

TEXTS = 4000
"""Largest number of texts that are used; of more, a random part."""

_BATCH = 64
_RIDGE = 1e-4
"""Added to the variances, as a share of their mean: keeps the equations solvable where neurons never fire."""


def narrow(encoder: Encoder, feed_forward: int, texts: Iterable[str], seed: int = 0) -> Encoder:
    """Return a stock encoder with M (`feed_forward`) neurons in the feed-forward block of each layer, else a copy.

    Neurons are chosen by texts, which should be in languages that the encoder knows; of more than `TEXTS` by a part
    that is drawn with the seed.

    Raises:
        EncoderError: the encoder is of another kind, compressed already, or gives values that are not finite.
        ConfigError: `feed_forward` is below 1, or not below the neurons that there are.
        DataError: there are no texts.
    """
    source = transformer_of(encoder.model)
    name = _neurons(source.config, feed_forward)
    moments = _moments(encoder, _drawn(texts, seed))
    made = copy.deepcopy(source)
    # Its modules share this object and would not see a new one.
    setattr(made.config, name, feed_forward)
    for layer, seen in zip(layers_of(made).layer, moments, strict=True):
        into, out = _block(layer)
        weight, bias = (values.detach().cpu().double() for values in (out.weight, out.bias))
        covariance = seen.covariance
        if not covariance.isfinite().all():
            raise EncoderError(f"{encoder.name}: a layer gives values that are not finite; its weights may be damaged")
        chosen, weights = reconstruct(covariance, weight, feed_forward)
        # The new bias keeps the mean of the block's output; the covariance says nothing about it.
        _set(into, into.weight.detach()[chosen], into.bias.detach()[chosen])
        _set(out, weights, bias + weight @ seen.mean - weights @ seen.mean[chosen])
    return Encoder(with_transformer(encoder.model, made), f"{encoder.name}-f{feed_forward}", encoder.max_length)


def narrowed(config: Any, feed_forward: int) -> Any:
    """Return the configuration of a model with narrower feed-forward blocks; raises as `narrow` does."""
    changed = backbone_config(config)
    setattr(changed, _neurons(changed, feed_forward), feed_forward)
    return changed


def _neurons(config: Any, feed_forward: int) -> str:
    """Return what a configuration calls the number of neurons, which must be above the wanted one."""
    name = "hidden_dim" if backbone_config(config).model_type == "distilbert" else "intermediate_size"
    neurons = getattr(config, name)
    check_fewer("feed-forward", feed_forward, neurons, f"a layer has {neurons} neurons")
    return name


def reconstruct(covariance: Tensor, weight: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Choose channels, and the weights with which they give what all of them gave.

    Args:
        covariance: C of the channels, `(F, F)`, float64.
        weight: W, which reads the channels, `(H, F)`, float64.
        count: number M of channels to keep.

    Returns:
        Numbers of the channels `(M,)`, ascending, and W' `(H, M)`, which minimises tr((W − W'P)·C·(W − W'P)ᵀ) for the
        matrix P that picks them, C having the ridge on its diagonal.
    """
    # Above 0 also where no neuron of the layer ever varies, so that nothing is divided by 0.
    ridge = (_RIDGE * covariance.diagonal().mean()).clamp(min=torch.finfo(covariance.dtype).tiny)
    whole = covariance + ridge * torch.eye(len(covariance)).to(covariance)
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


class _Moments:
    """Mean `(F,)` and covariance `(F, F)` over tokens of the values of a block's neurons.

    Values are counted from the mean of the first ones: where neurons vary less than they are high, the difference of
    two large sums would have nothing but rounding in it.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self._origin = self._first = self._second = torch.zeros(())

    def add(self, values: Tensor) -> None:
        """Count values `(tokens, F)`."""
        if not self.tokens:
            self._origin = values.mean(0)
        moved = values - self._origin
        self.tokens += len(values)
        # Not every device has float64.
        self._first = self._first + moved.cpu().double().sum(0)
        self._second = self._second + (moved.T @ moved).cpu().double()

    @property
    def mean(self) -> Tensor:
        return self._origin.cpu().double() + self._first / self.tokens

    @property
    def covariance(self) -> Tensor:
        mean = self._first / self.tokens
        return self._second / self.tokens - torch.outer(mean, mean)


def _moments(encoder: Encoder, texts: list[str]) -> list[_Moments]:
    """Return the moments of each layer's neurons over the tokens of texts, padding left out."""
    blocks = [_block(layer)[1] for layer in layers_of(transformer_of(encoder.model)).layer]
    moments = [_Moments() for _ in blocks]
    mask = torch.ones(0, dtype=torch.bool)
    with ExitStack() as hooks, torch.no_grad():
        hooks.callback(encoder.embedder.train, encoder.embedder.training)
        encoder.embedder.eval()
        for block, seen in zip(blocks, moments, strict=True):
            # `mask` is looked up when the hook runs: it is that of the present batch.
            handle = block.register_forward_pre_hook(lambda _, values, seen=seen: seen.add(values[0][mask]))
            hooks.callback(handle.remove)
        # Texts of similar length share a batch, so that little of it is padding.
        texts = sorted(texts, key=dict(zip(texts, encoder.lengths(texts, "text"), strict=True)).__getitem__)
        for start in range(0, len(texts), _BATCH):
            features = encoder.features(texts[start : start + _BATCH], "text")
            mask = features["attention_mask"].bool()
            encoder.embedder(features)
    return moments


def _drawn(texts: Iterable[str], seed: int) -> list[str]:
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        raise DataError("there are no texts that could choose the neurons of feed-forward blocks")
    if len(distinct) <= TEXTS:
        return distinct
    return [distinct[i] for i in stream(seed, "narrowing").choice(len(distinct), TEXTS, replace=False)]


def _block(layer: nn.Module) -> tuple[nn.Linear, nn.Linear]:
    """Return the linear maps into and out of the neurons of a layer."""
    parts: Any = layer
    return (parts.ffn.lin1, parts.ffn.lin2) if hasattr(parts, "ffn") else (parts.intermediate.dense, parts.output.dense)


def _set(linear: nn.Linear, weight: Tensor, bias: Tensor) -> None:
    # Solved weights come transposed, and safetensors refuses what is not contiguous.
    linear.weight, linear.bias = (nn.Parameter(new.to(linear.weight).contiguous()) for new in (weight, bias))
    linear.out_features, linear.in_features = weight.shape
