"""The layers of a backbone, and their entries in its configuration."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from metasearch.errors import ConfigError

_STACKS = {"distilbert": "transformer", "modernbert": ""}
"""Modules that hold the list of layers where that is not `encoder`; none where the backbone itself does."""

_BARE_FIRST = ("modernbert",)
"""Backbones whose first layer reads the embedding block directly, and whose other layers normalise what they read."""


def layers_of(backbone: Any) -> nn.ModuleList:
    """Return a backbone's list of layers."""
    owner, name = _place(backbone)
    layers: nn.ModuleList = getattr(owner, name)
    return layers


def put_layers(backbone: Any, layers: nn.ModuleList) -> None:
    """Replace a backbone's list of layers; `describe` changes the configuration."""
    owner, name = _place(backbone)
    setattr(owner, name, layers)


def describe(config: Any, numbers: Sequence[int]) -> None:
    """Change a configuration to keep only these layers, numbered from 1, each with its kind of attention."""
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


# Which numbers a compressed encoder can have: columns of its word table, and layers that run.

DEEPER = 4
"""Layers may run so many times as often as the encoder is deep; more is taken for a typing error."""


def check_fewer(name: str, value: object, present: int, size: str) -> None:
    """Raise `ConfigError` unless a value is a whole number from 1 to one less than the present number."""
    _check_whole(name, value)
    if not 1 <= value < present:  # type: ignore[operator]  # a whole number
        fewer = f"choose a number from 1 to {present - 1}" if present > 1 else "there cannot be fewer"
        raise ConfigError(f"{name} {value}: {size}; {fewer}")


def check_repeats(depth: int, recurrent: int | None, repeats: int | None) -> int | None:
    """Return how often M layers run: the given number, or L/M so that the depth L stays; None where all layers stay.

    `ConfigError` if there are fewer than M layers, L is no multiple of M, or more than 4·L layers would run.
    """
    _check_whole("repeats", repeats)
    if recurrent is None:
        if repeats is not None:
            raise ConfigError(f"repeats {repeats}: needs the number of recurrent layers")
        return None
    _check_whole("recurrent", recurrent)
    fitting = " or ".join(str(m) for m in range(1, depth + 1) if depth % m == 0)
    if not 1 <= recurrent <= depth:
        raise ConfigError(f"recurrent {recurrent}: the encoder has {depth} layers; choose {fitting}")
    if repeats is None:
        if depth % recurrent:
            raise ConfigError(
                f"recurrent {recurrent}: {depth} layers are no multiple of it; choose {fitting}, or set repeats"
            )
        return depth // recurrent
    most = DEEPER * depth // recurrent
    if not 1 <= repeats <= most:
        raise ConfigError(
            f"repeats {repeats}: the encoder has {depth} layers, and at most {DEEPER} times as many may run; with "
            f"{recurrent} recurrent ones choose a number from 1 to {most}"
        )
    return repeats


def _check_whole(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ConfigError(f"{name} {value!r}: expected a whole number")
