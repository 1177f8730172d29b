"""Weighted averages of encoders with the same architecture.

Averages of an encoder before and after training (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models",
equation 1), or of several encoders trained from the same start (Wortsman et al. 2022, "Model soups", section 2).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from metasearch.encoders.encoder import Encoder
from metasearch.encoders.fingerprint import settings_text
from metasearch.encoders.inputs import input_of
from metasearch.encoders.prompts import written_out
from metasearch.errors import ConfigError, EncoderError

State = Mapping[str, Tensor]
"""Name → tensor, as of `state_dict`."""
_SUM = 1e-9
"""How far from 1 the sum of shares may be, which are written in decimals."""


def average(states: Iterable[tuple[float, State]]) -> dict[str, Tensor]:
    """Return Σ share · weight of each tensor, summed in float64 in the order given and then rounded to its own type.

    A share of 1 changes no bit. Integers come from the first state. Shares sum to 1.
    """
    first: State | None = None
    total: dict[str, Tensor] = {}
    for share, state in states:
        first = state if first is None else first
        for name, weight in state.items():
            if weight.is_floating_point() and share:
                term = weight.detach().double() * share
                total[name] = total[name] + term if name in total else term
    return {name: total[name].to(weight.dtype) if name in total else weight for name, weight in (first or {}).items()}


def put(encoder: Encoder, state: State) -> None:
    """Give an encoder other weights, in place."""
    with torch.no_grad():
        for name, weight in encoder.model.state_dict().items():
            weight.copy_(state[name])


def resolve_shares(count: int, alpha: float | None, shares: Sequence[float] | None) -> tuple[float, ...]:
    """Return the weight of each of `count` encoders: `1 − α` and `α` for two, the given ones, or equal ones.

    `ConfigError` for fewer than two encoders, α with more than two, or shares of a wrong number, sign or sum.
    """
    if count < 2:
        raise ConfigError("name at least two encoders")
    if alpha is not None and shares is not None:
        raise ConfigError("use either --alpha or --weights")
    if alpha is not None:
        if count != 2:
            raise ConfigError(f"--alpha is for two encoders; for {count} pass --weights, or neither for equal shares")
        # NaN passes the range of the option, as every comparison with it is false.
        if not 0 <= alpha <= 1:
            raise ConfigError(f"--alpha: expected a number from 0 to 1, got {alpha:g}")
        return 1 - alpha, alpha
    if shares is None:
        return (1 / count,) * count
    if len(shares) != count:
        raise ConfigError(f"--weights: expected {count} numbers, one for each encoder; got {len(shares)}")
    # Written so that NaN is refused, too.
    if not all(share >= 0 for share in shares) or not abs(fsum(shares) - 1) <= _SUM:
        said = " + ".join(f"{share:g}" for share in shares)
        raise ConfigError(f"--weights: expected numbers from 0 on that sum to 1; {said} = {fsum(shares):g}")
    return tuple(shares)


def require_same_form(one: Encoder, other: Encoder) -> None:
    """Raise `EncoderError` with the first difference between two encoders, apart from weights.

    Compared are modules, architecture, names and shapes of weights, tokenizer and prompts; lengths may differ.
    """
    for (what, own), (_, its) in zip(_form(one.model), _form(other.model), strict=False):
        if own != its:
            # A value that both have says more than a key that one of them lacks.
            keys = sorted((key for key in own | its if own.get(key) != its.get(key)), key=lambda key: key not in its)
            values = (json.dumps(each.get(keys[0]), ensure_ascii=False)[:60] for each in (own, its))
            raise EncoderError(
                f"{one.name} and {other.name} cannot be merged: {what}: {keys[0]}: {' and '.join(values)}"
            )


def _form(model: SentenceTransformer) -> Iterator[tuple[str, dict[Any, Any]]]:
    """Yield everything that must be equal, by name; modules come first, because the others depend on them."""
    read, state = input_of(model), model.state_dict()
    yield "modules", {place: type(module).__name__ for place, module in enumerate(model)}
    yield "architecture", {"kind": read.kind, **json.loads(settings_text(read.settings))}
    for place, module in enumerate(model):
        settings = module.get_config_dict() if hasattr(module, "get_config_dict") else {}
        yield f"module {place} ({type(module).__name__})", json.loads(settings_text(settings))
    yield "weights", {name: f"{list(weight.shape)} {weight.dtype}" for name, weight in state.items()}
    yield "tokenizer", json.loads(settings_text(read.vocabulary))
    yield "prompts", {**written_out(model), "default": model.default_prompt_name}
    yield "buffers", {name: weight.tolist() for name, weight in state.items() if not weight.is_floating_point()}
