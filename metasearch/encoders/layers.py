"""The layers of a backbone: where they stand, and what its configuration says of each of them."""

from collections.abc import Sequence
from typing import Any

from torch import nn

_STACKS = {"distilbert": "transformer", "modernbert": ""}
"""Modules that hold the list of layers where that is not `encoder`; none where the backbone itself does."""

_BARE_FIRST = ("modernbert",)
"""Backbones whose first layer reads the embedding block as it is, and whose other layers normalise what they read."""


def layers_of(backbone: Any) -> nn.ModuleList:
    """Return the list of a backbone's layers."""
    owner, name = _place(backbone)
    layers: nn.ModuleList = getattr(owner, name)
    return layers


def put_layers(backbone: Any, layers: nn.ModuleList) -> None:
    """Give a backbone another list of layers; what its configuration says of them is `describe`'s."""
    owner, name = _place(backbone)
    setattr(owner, name, layers)


def describe(config: Any, numbers: Sequence[int]) -> None:
    """Let a configuration be that of a model with these of its layers, by numbers from 1, one above the other.

    A layer keeps its kind of attention: where a configuration names one for each layer (`layer_types`), theirs stay.
    """
    types = getattr(config, "layer_types", None)
    config.num_hidden_layers = len(numbers)
    if types is None:
        return
    config.layer_types = [types[number - 1] for number in numbers]
    every = getattr(config, "global_attn_every_n_layers", None)
    # The older way to say it: a program that reads it alone shall not take another kind of attention for a layer's own.
    if every and config.layer_types != [_type(place, every) for place in range(len(numbers))]:
        del config.global_attn_every_n_layers


def first_stays_first(config: Any) -> bool:
    """Return whether the first layer of a backbone can stand below all others only, and no other layer there."""
    return config.model_type in _BARE_FIRST


def _place(backbone: Any) -> tuple[Any, str]:
    stack = _STACKS.get(backbone.config.model_type, "encoder")
    return (getattr(backbone, stack), "layer") if stack else (backbone, "layers")


def _type(place: int, every: int) -> str:
    return "sliding_attention" if place % every else "full_attention"
