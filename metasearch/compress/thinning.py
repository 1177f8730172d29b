"""Make an encoder shallower: some of its layers stay, unchanged and in order.

Every other layer of a teacher is where DistilBERT starts from (Sanh et al. 2019, section 3); training continues from
there.
"""

import copy
from itertools import pairwise
from typing import Any

from torch import nn

from metasearch.compress.student import with_transformer
from metasearch.encoders.compressed import (
    backbone_config,
    check_fewer,
    describe,
    first_stays_first,
    layers_of,
    put_layers,
)
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError

Layers = int | tuple[int, ...]
"""Number of layers to keep, or their numbers; 1 is the first."""


def thin(encoder: Encoder, layers: Layers) -> Encoder:
    """Return a standard encoder with some of an encoder's layers; everything else is a copy.

    Of a number of layers, these are the first, the last, and others at equal distances.

    Raises:
        EncoderError: the encoder is of another kind, or compressed already.
        ConfigError: there is no such layer, one is named twice or out of order, or all stay.
    """
    source = encoder.model[0].auto_model
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
    named = ",".join(map(str, layers))
    if not all(before < number <= depth for before, number in pairwise([0, *layers])):
        raise ConfigError(f"layers {named}: expected increasing numbers from 1 to {depth}")
    if layers[0] != 1 and first_stays_first(backbone):
        raise ConfigError(
            f"layers {named}: layer 1 of '{backbone.model_type}' has to stay: only it reads words without a LayerNorm "
            f"before it; choose {','.join(map(str, (1, *layers[1:])))}"
        )
    return list(layers)
