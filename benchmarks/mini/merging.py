"""Makes an encoder shallower and narrower: merges successive layers and keeps few neurons.

    python -m benchmarks.mini.merging e5 --layers 6 --feed-forward 512 --texts ~/data/parallel -o merged

A group of layers l … m becomes one layer with the attention of one of them and some of their feed-forward neurons.
Least squares over the tokens of some texts fit the output weights and bias to the output of layer m in the whole
encoder. Groups are made from the lowest on. Each reads the output of the new layers below, and so corrects their
errors. Training continues from there.

- New weights: the reconstruction of a layer's output from some of its channels by He, Zhang & Sun, "Channel Pruning for
  Accelerating Very Deep Neural Networks" (2017), equation 1.
- Which neurons stay: the next is always the one that explains most of the rest; Chen, Billings & Luo, "Orthogonal
  least squares methods and their application to non-linear system identification" (1989). The columns of the output
  count as LayerNorm scales them.

With s the sum that layer m normalises at its end, and y the output of the new layer's attention, its neurons h have to
give s − y: W·h + b. Notation used for tensor shapes: F neurons of the blocks, M that stay, H columns of the output.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import torch
from torch import Tensor, nn

from benchmarks.common.command import Command
from metasearch.compress.student import with_transformer
from metasearch.config.seeding import stream
from metasearch.data.formats.given import each_text
from metasearch.data.texts import read_texts, text_files
from metasearch.encoders.compressed import backbone_config, check_fewer, layers_of, put_layers
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import transformer_of
from metasearch.encoders.load import load_encoder
from metasearch.errors import DataError, EncoderError
from metasearch.io.output import whole

TEXTS = 4000
"""Largest number of texts that are used; of more, a random part."""
_GATED = ("modernbert",)
"""Backbones whose neurons are products of two values (GLU), whose output has no bias that could keep a mean."""
_TOKENS = 10
"""Tokens for each neuron, below which a fit is rather of the texts than of the encoder."""
_BATCH = 64
_LEAST_SCALE = 1e-6
"""A column that LayerNorm scales by less counts as if it were scaled by this."""
RIDGE = 1e-4
"""Added to the variances of neurons, as a share of their mean: keeps equations solvable where neurons never fire."""


def merge(encoder: Encoder, layers: int | None, feed_forward: int, texts: Iterable[str], seed: int = 0) -> Encoder:
    """Return a stock encoder with fewer layers, and fewer neurons in the feed-forward block of each.

    Args:
        encoder: of a kind in `metasearch.encoders.compressed.BACKBONES`.
        layers: number of groups of equal size if possible; None merges none.
        feed_forward: neurons M of each.
        texts: in languages that the encoder knows; of more than `TEXTS` a part is drawn.
        seed: of that part.

    Raises:
        EncoderError: the encoder is of another kind, compressed already, or gives values that are not finite.
        ConfigError: a number does not fit the encoder.
        DataError: there are no texts.
    """
    source = transformer_of(encoder.model)
    config = backbone_config(source.config)
    if config.model_type in _GATED:
        raise EncoderError(f"layers of '{config.model_type}' have gated feed-forward blocks, which cannot be merged")
    groups = group_layers(config.num_hidden_layers, layers)
    key = "hidden_dim" if config.model_type == "distilbert" else "intermediate_size"
    check_fewer("feed-forward", feed_forward, getattr(config, key), f"a layer has {getattr(config, key)} neurons")
    fitter = _LayerFitter(encoder, _drawn(texts, seed))
    for group in groups:
        lost, tokens = fitter.fit(group, feed_forward)
        click.echo(f"layers {group[0] + 1} to {group[-1] + 1}: {100 * lost:.1f} % of the variance is lost", err=True)
    if tokens < _TOKENS * feed_forward:
        click.echo(f"layers were fitted on {tokens:,} tokens, too few for other texts; give more", err=True)
    made = copy.deepcopy(source)
    put_layers(made, nn.ModuleList(copy.deepcopy(fitter.below)))
    made.config.num_hidden_layers = len(groups)
    setattr(made.config, key, feed_forward)
    # Its modules share this object and would not see a new one.
    for module in made.modules():
        if hasattr(module, "config"):
            module.config = made.config
    name = encoder.name + (f"-l{len(groups)}" if layers else "") + f"-f{feed_forward}"
    return Encoder(with_transformer(encoder.model, made), name, encoder.max_length)


def group_layers(depth: int, count: int | None) -> list[range]:
    """Return the layers of an encoder in groups to merge; None merges none, `ConfigError` for too many groups."""
    if count is None:
        return [range(number, number + 1) for number in range(depth)]
    check_fewer("layers", count, depth, f"the encoder has {depth} layer{'s' * (depth > 1)}")
    ends = [round(i * depth / count) for i in range(count + 1)]
    return [range(start, end) for start, end in pairwise(ends)]


def _drawn(texts: Iterable[str], seed: int) -> list[str]:
    distinct = list(dict.fromkeys(each_text(texts)))
    if not distinct:
        raise DataError("no texts to fit layers on")
    if len(distinct) <= TEXTS:
        return distinct
    return [distinct[i] for i in stream(seed, "merging").choice(len(distinct), TEXTS, replace=False)]


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


class _LayerFitter:
    """Builds the layers of a new encoder from the bottom up, fitted to an encoder's outputs for some texts."""

    def __init__(self, encoder: Encoder, texts: Sequence[str]) -> None:
        self.below: list[nn.Module] = []
        self._whole, self._made = _share_weights(encoder), _share_weights(encoder)
        self._layers = list(layers_of(transformer_of(self._made.model)))
        self._all = list(layers_of(transformer_of(self._whole.model)))
        # Texts of similar length share a batch, so that little of it is padding.
        order = sorted(texts, key=dict(zip(texts, encoder.lengths(texts, "text"), strict=True)).__getitem__)
        self._batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]

    @torch.no_grad()
    def fit(self, group: range, neurons: int) -> tuple[float, int]:
        """Add a layer fitted to a group of layers (numbered from 0), with the best of their attentions.

        Returns the share of variance that is lost, and the number of tokens used. `EncoderError` if a layer gives
        values that are not finite.
        """
        attention, fit = group[0], self._least_squares(group, group[0])
        for number in group[1:]:
            # One after the other, as the equations of many neurons are gigabytes.
            other = self._least_squares(group, number)
            if other.error() < fit.error():
                attention, fit = number, other
        kept = fit.choose(neurons)
        weights, last = fit.solve(kept), find_block(self._layers[group[-1]])
        layer = copy.deepcopy(self._layers[attention])
        own, scale = find_block(layer), _column_scale(last)
        weight, bias = self._into(group)
        _set(own.into, weight[kept], bias[kept])
        # The bias keeps the mean of the output; the covariance says nothing about it.
        _set(own.out, weights / scale[:, None], (fit.wanted - weights @ fit.mean[kept]) / scale)
        own.norm.load_state_dict(last.norm.state_dict())
        self.below.append(layer)
        variance = float(fit.variance.sum())
        return (fit.error(kept) / variance if variance else 0.0), fit.tokens

    def _into(self, group: range) -> tuple[Tensor, Tensor]:
        """Return weights `(F, H)` and biases `(F,)` for all neurons in a group."""
        linears = [find_block(self._layers[number]).into for number in group]
        return torch.cat([each.weight for each in linears]), torch.cat([each.bias for each in linears])

    def _least_squares(self, group: range, attention: int) -> "LeastSquares":
        """Return the regression of a group's output on its neurons, above the attention of one of its layers."""
        last = find_block(self._layers[group[-1]])
        weight, bias = self._into(group)
        scale = _column_scale(last)
        moments = Moments()
        for read, total in self._values(attention, group[-1]):
            neurons = last.activation(nn.functional.linear(read, weight, bias))
            moments.add(torch.cat([neurons, (total - read) * scale.to(read)], dim=1))
        pull = torch.zeros(len(scale), len(weight), dtype=torch.float64)
        # The ridge pulls to the weights of the last layer: with enough neurons a layer does not change.
        pull[:, -last.out.in_features :] = scale[:, None] * last.out.weight.cpu().double()
        found = LeastSquares(moments, pull)
        if not (found.covariance.isfinite().all() and found.variance.isfinite().all()):
            name = self._whole.name
            raise EncoderError(f"{name}: a layer gives values that are not finite; its weights may be damaged")
        return found

    def _values(self, attention: int, last: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield a block's input above the new layers, and the residual sum of a group's last layer, `(tokens, H)`."""
        put_layers(transformer_of(self._made.model), nn.ModuleList([*self.below, self._layers[attention]]))
        put_layers(transformer_of(self._whole.model), nn.ModuleList(self._all[: last + 1]))
        into, norm = find_block(self._layers[attention]).into, find_block(self._all[last]).norm
        for texts in self._batches:
            features = self._whole.features(texts, "text")
            mask = features["attention_mask"].bool()
            with _first_inputs(into) as read, _first_inputs(norm) as total:
                self._made.embedder(dict(features))
                self._whole.embedder(features)
            yield read[0][mask], total[0][mask]


def _share_weights(encoder: Encoder) -> Encoder:
    """Return an encoder with the same weights, in evaluation mode, with its own list of layers."""
    shared = {id(weight): weight for weight in transformer_of(encoder.model).parameters()}
    made = Encoder(copy.deepcopy(encoder.model, shared), encoder.name, encoder.max_length)
    made.embedder.eval()
    return made


@contextmanager
def _first_inputs(module: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the first input of each call to a module."""
    seen: list[Tensor] = []
    handle = module.register_forward_pre_hook(lambda _, values: seen.append(values[0]))
    try:
        yield seen
    finally:
        handle.remove()


def _column_scale(block: Block) -> Tensor:
    """Return how LayerNorm scales the columns of a block's output `(H,)`."""
    return block.norm.weight.detach().cpu().double().abs().clamp(min=_LEAST_SCALE)


def _set(linear: nn.Linear, weight: Tensor, bias: Tensor) -> None:
    # Solved weights come transposed, and safetensors refuses what is not contiguous.
    linear.weight, linear.bias = (
        nn.Parameter(new.detach().to(linear.weight).clone().contiguous()) for new in (weight, bias)
    )
    linear.out_features, linear.in_features = weight.shape


class Moments:
    """Mean and covariance of rows, in float64.

    Rows are counted from the mean of the first batch: a difference of two large sums would be mostly rounding.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self._origin = self._sum = self._products = torch.zeros(())

    def add(self, rows: Tensor) -> None:
        """Add rows `(tokens, C)`."""
        if not self.tokens:
            self._origin = rows.mean(0)
            self._sum = torch.zeros(rows.shape[1], dtype=torch.float64)
            self._products = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.float64)
        moved = rows - self._origin
        self.tokens += len(rows)
        # Not every device has float64. In place, as the products of many neurons are gigabytes.
        self._sum += moved.cpu().double().sum(0)
        self._products += (moved.T @ moved).cpu()

    def finish(self) -> tuple[Tensor, Tensor]:
        """Return the mean `(C,)` and the covariance `(C, C)` of all rows; to be called once."""
        mean = self._sum / self.tokens
        covariance = self._products.div_(self.tokens).addr_(mean, mean, alpha=-1)
        return self._origin.cpu().double() + mean, covariance


class LeastSquares:
    """Ridge regression of targets `(H,)` on neurons `(F,)`, of all or of chosen ones, from their moments.

    Minimises the variance of y − W·h, plus ρ·|W − W₀|² with the ridge ρ and the weights W₀ `(H, F)` that it pulls to.
    """

    def __init__(self, moments: Moments, pull: Tensor) -> None:
        count = pull.shape[1]
        mean, covariance = moments.finish()
        self.tokens = moments.tokens
        self.mean, self.wanted = mean[:count], mean[count:]
        self.covariance, self.cross = covariance[:count, :count], covariance[count:, :count]
        self.variance = covariance.diagonal()[count:]
        # Above 0 also where no neuron ever varies, so that nothing is divided by 0.
        least = torch.finfo(torch.float64).tiny
        self.ridge = float((RIDGE * self.covariance.diagonal().mean()).clamp(min=least))
        self._read = self.cross + self.ridge * pull

    def solve(self, chosen: Sequence[int] | slice = slice(None)) -> Tensor:
        """Return the weights `(H, M)` of the chosen neurons."""
        system = self.covariance[chosen][:, chosen].clone()
        system.diagonal().add_(self.ridge)
        transposed: Tensor = torch.linalg.solve(system, self._read[:, chosen].T)
        return transposed.T

    def error(self, chosen: Sequence[int] | slice = slice(None)) -> float:
        """Return the variance of the targets that chosen neurons leave, summed over columns."""
        weights = self.solve(chosen)
        explained = 2 * weights * self.cross[:, chosen] - (weights @ self.covariance[chosen][:, chosen]) * weights
        return max(float(self.variance.sum() - explained.sum()), 0.0)

    def choose(self, count: int) -> list[int]:
        """Return the numbers of M neurons, ascending: the next is always the one that lowers the error most.

        Choosing one is a step of a pivoted Cholesky decomposition, so each costs a rank-one update where solving anew
        for every candidate would cost M systems.
        """
        if count == len(self.covariance):
            return list(range(count))
        left, read = self.covariance.clone(), self._read.clone()
        left.diagonal().add_(self.ridge)
        chosen: list[int] = []
        for _ in range(count):
            alone = left.diagonal().clamp(min=self.ridge)  # below it by rounding only
            gain = read.square().sum(0) / alone
            # A gain is never negative, so none is chosen twice.
            gain[chosen] = -1
            best = int(gain.argmax())
            chosen.append(best)
            root = alone[best].sqrt()
            column, share = left[:, best] / root, read[:, best] / root
            left.addr_(column, column, alpha=-1)
            read.addr_(share, column, alpha=-1)
        return sorted(chosen)


@click.command(cls=Command)
@click.argument("encoder")
@click.option("--layers", type=click.IntRange(min=1), help="Layers after merging; all by default.")
@click.option("--feed-forward", type=click.IntRange(min=1), required=True, help="Neurons of each layer.")
@click.option("--texts", multiple=True, required=True, type=click.Path(path_type=Path), help="Files or folders.")
@click.option("--seed", default=0, show_default=True)
@click.option("--device", default="auto", show_default=True)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="New folder of the encoder.")
def main(
    encoder: str, layers: int | None, feed_forward: int, texts: Sequence[Path], seed: int, device: Any, output: Path
) -> None:
    """Merge layers of ENCODER and keep few neurons of each, fitted to texts in languages that it knows."""
    loaded = load_encoder(encoder, device=device, seed=seed)
    made = merge(loaded, layers, feed_forward, read_texts(text_files(texts)), seed)
    with whole(output) as folder:
        made.write(folder)


if __name__ == "__main__":
    main()
