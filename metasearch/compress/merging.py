"""Make an encoder shallower and narrower: merge successive layers and keep few neurons.

A group of layers l … m becomes one layer, with the attention of one of them. Of the neurons of all their feed-forward
blocks some stay. Their output weights and bias are chosen so that the layer gives what layer m gave in the whole
encoder, nearest in the mean of squares over the tokens of some texts. Groups are made from the lowest on, each on the
output of the new ones below, so that a layer corrects their errors. Training continues from there.

- New weights: the reconstruction of a layer's output from some of its channels by He, Zhang & Sun, "Channel Pruning for
  Accelerating Very Deep Neural Networks" (2017), equation 1.
- Which neurons stay: the next is always the one that explains most of the rest; Chen, Billings & Luo, "Orthogonal
  least squares methods and their application to non-linear system identification" (1989). The columns of the output
  count as LayerNorm scales them.

With s the sum that layer m normalises at its end, and y the output of the new layer's attention, its neurons h have to
give s − y: W·h + b. Notation used for tensor shapes: F neurons of the blocks, M that stay, H columns of the output.
"""

import copy
import logging
from collections.abc import Iterable
from typing import Any

from torch import nn

from metasearch.compress._fit_layer import LayerFitter
from metasearch.compress.plan import Layers
from metasearch.compress.student import with_transformer
from metasearch.config.seeding import stream
from metasearch.encoders.compressed import backbone_config
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import transformer_of
from metasearch.encoders.layers import check_fewer, describe, first_stays_first, layers_of, put_layers
from metasearch.errors import ConfigError, DataError, EncoderError

log = logging.getLogger(__name__)

TEXTS = 4000
"""Largest number of texts that are used; of more, a random part."""
_GATED = ("modernbert",)
"""Backbones whose neurons are products of two values (GLU), whose output has no bias that could keep a mean."""
_TOKENS = 10
"""Tokens for each neuron, below which a fit is rather of the texts than of the encoder."""


def merge(
    encoder: Encoder, layers: Layers | None, feed_forward: int | None, texts: Iterable[str], seed: int = 0
) -> Encoder:
    """Return a stock encoder with fewer layers, or fewer neurons in the feed-forward block of each.

    Args:
        encoder: of a kind in `metasearch.encoders.compressed.BACKBONES`.
        layers: number of groups of equal size if possible; or the numbers of the last layers of the groups, from 1.
            None merges none.
        feed_forward: neurons M of each; None keeps all.
        texts: in languages that the encoder knows; of more than `TEXTS` a part is drawn.
        seed: of that part.

    Raises:
        EncoderError: the encoder is of another kind, compressed already, or gives values that are not finite.
        ConfigError: a number does not fit the encoder.
        DataError: there are no texts.
    """
    source = transformer_of(encoder.model)
    config = merged(source.config, layers, feed_forward)
    drawn = _drawn(texts, seed)
    fitter = LayerFitter(encoder, drawn)
    for group in group_layers(source.config, layers):
        found = fitter.fit(group, getattr(config, _neurons(config)))
        names = f"layer {group[0] + 1}" if len(group) == 1 else f"layers {group[0] + 1} to {group[-1] + 1}"
        log.info(f"{names}: {100 * found.left:.1f} % of the output variance is lost")
    if found.tokens < _TOKENS * getattr(config, _neurons(config)):
        log.warning(f"layers were fitted on {found.tokens:,} tokens, too few for other texts; give more")
    made = copy.deepcopy(source)
    put_layers(made, nn.ModuleList(copy.deepcopy(fitter.below)))
    # Its modules share this object and would not see a new one.
    for name in ("num_hidden_layers", _neurons(config)):
        setattr(made.config, name, getattr(config, name))
    for module in made.modules():
        if hasattr(module, "config"):
            module.config = made.config
    name = encoder.name + (f"-l{len(fitter.below)}" if layers else "") + (f"-f{feed_forward}" if feed_forward else "")
    return Encoder(with_transformer(encoder.model, made), name, encoder.max_length)


def merged(config: Any, layers: Layers | None, feed_forward: int | None) -> Any:
    """Return the configuration of a model with fewer layers or neurons; raises as `merge` does."""
    changed = backbone_config(config)
    if changed.model_type in _GATED:
        raise EncoderError(
            f"layers of '{changed.model_type}' have gated feed-forward blocks: --merge and --feed-forward are not "
            "possible; --layers, --bottleneck, --trim-vocab and --static are possible"
        )
    if layers is not None:
        changed.num_hidden_layers = len(group_layers(config, layers))
    if feed_forward is not None:
        name = _neurons(changed)
        neurons = getattr(changed, name)
        check_fewer("feed-forward", feed_forward, neurons, f"a layer has {neurons} neurons")
        setattr(changed, name, feed_forward)
    return changed


def group_layers(config: Any, layers: Layers | None) -> list[range]:
    """Return an encoder's layers in groups to merge; `ConfigError` for impossible groups."""
    depth = backbone_config(config).num_hidden_layers
    if layers is None:
        return [range(number, number + 1) for number in range(depth)]
    count = layers if isinstance(layers, int) else len(layers)
    check_fewer("merge", count, depth, f"the encoder has {depth} layer{'s' * (depth > 1)}")
    ends = [round(i * depth / count) for i in range(1, count + 1)] if isinstance(layers, int) else list(layers)
    starts = [0, *ends[:-1]]
    if ends[-1] != depth or any(start >= end for start, end in zip(starts, ends, strict=True)):
        written = ",".join(map(str, ends))
        raise ConfigError(f"merge {written}: expected increasing numbers from 1 that end with {depth}")
    return [range(start, end) for start, end in zip(starts, ends, strict=True)]


def _neurons(config: Any) -> str:
    """Return the configuration key for the number of neurons."""
    return "hidden_dim" if config.model_type == "distilbert" else "intermediate_size"


def _drawn(texts: Iterable[str], seed: int) -> list[str]:
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        raise DataError("no texts to fit layers on")
    if len(distinct) <= TEXTS:
        return distinct
    return [distinct[i] for i in stream(seed, "merging").choice(len(distinct), TEXTS, replace=False)]


# Makes an encoder shallower: some of its layers stay, unchanged and in order.
#
# Every other layer of a teacher is where DistilBERT starts from (Sanh et al. 2019, section 3); training continues from
# there.


def thin(encoder: Encoder, layers: Layers) -> Encoder:
    """Return a standard encoder with some of an encoder's layers; everything else is a copy.

    Of a number of layers, these are the first, the last, and others at equal distances.

    Raises:
        EncoderError: the encoder is of another kind, or compressed already.
        ConfigError: there is no such layer, one is named twice or out of order, or all stay.
    """
    source = transformer_of(encoder.model)
    chosen = chosen_layers(source.config, layers)
    made = copy.deepcopy(source)
    describe(made.config, chosen)
    stack = layers_of(made)
    put_layers(made, nn.ModuleList(stack[number - 1] for number in chosen))
    name = f"{encoder.name}-l{len(chosen)}"
    return Encoder(with_transformer(encoder.model, made), name, encoder.max_length).to(encoder.device)


def thinned(config: Any, layers: Layers) -> Any:
    """Return a model's configuration with some of its layers; raises as `thin` does."""
    changed = backbone_config(config)
    describe(changed, chosen_layers(changed, layers))
    return changed


def chosen_layers(config: Any, layers: Layers) -> list[int]:
    """Return the layers to keep, numbered from 1; raises as `thin` does."""
    backbone = backbone_config(config)
    depth = backbone.num_hidden_layers
    count = layers if isinstance(layers, int) else len(layers)
    check_fewer("layers", count, depth, f"the encoder has {depth} layer{'s' * (depth > 1)}")
    if isinstance(layers, int):
        return [1 + round(i * (depth - 1) / max(1, count - 1)) for i in range(count)]
    for before, number in zip([0, *layers], layers, strict=False):
        if not before < number <= depth:
            raise ConfigError(f"layers {_join(layers)}: expected increasing numbers from 1 to {depth}")
    if layers[0] != 1 and first_stays_first(backbone):
        raise ConfigError(
            f"layers {_join(layers)}: layer 1 of '{backbone.model_type}' has to stay: only it reads words without a "
            f"LayerNorm before it; choose {_join((1, *layers[1:]))}"
        )
    return list(layers)


def _join(layers: tuple[int, ...]) -> str:
    return ",".join(map(str, layers))
