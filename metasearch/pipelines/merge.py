"""`metasearch merge`: average encoders with the same architecture.

Averages of an encoder before and after training (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models",
equation 1), or of several encoders trained from the same start (Wortsman et al. 2022, "Model soups", section 2).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sentence_transformers import SentenceTransformer
from torch import Tensor

from metasearch.config.run import EncoderConfig
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.fingerprint import settings_text
from metasearch.encoders.inputs import input_of
from metasearch.encoders.load import load_encoder
from metasearch.encoders.prompts import written_out
from metasearch.errors import ConfigError, EncoderError
from metasearch.io import atomic_write
from metasearch.io.output import claim, whole
from metasearch.pipelines.card_file import CARD
from metasearch.pipelines.cards import find_base, make_card
from metasearch.runs.markdown import markdown

State = Mapping[str, Tensor]
"""Name → tensor, as of `state_dict`."""


class Part(NamedTuple):
    """An encoder that goes into a merged one, its share of the mean, and the fingerprint of its checkpoint."""

    name: str
    share: float
    fingerprint: str


@dataclass(frozen=True)
class MergeResult:
    """The merged encoders in their order, and the fingerprint of the result."""

    parts: tuple[Part, ...]
    fingerprint: str

    def table(self) -> str:
        """Return the parts in Markdown."""
        lines = [[part.name, f"{part.share:g}", part.fingerprint] for part in self.parts]
        return markdown(["encoder", "share", "fingerprint"], lines)


def merge(encoders: Sequence[EncoderConfig | str], folder: Path, alpha: float | None = None) -> MergeResult:
    """Write an encoder with averaged weights, summed in float64 and rounded once.

    Tokenizer, modules, prompts and lengths come from the first encoder. Encoders are loaded one after the other.
    With `alpha` the mean of two encoders is (1 − α) · first + α · second; by default all have the same share.
    """
    refs = [EncoderConfig.of(each) for each in encoders]
    shares = resolve_shares(len(refs), alpha)
    claim(folder)
    made = load_encoder(refs[0], identify=True, plain_for="merge", device="cpu")
    parts = [Part(refs[0].name, shares[0], made.origin)]

    def states() -> Iterator[tuple[float, State]]:
        yield shares[0], made.model.state_dict()
        for ref, share in zip(refs[1:], shares[1:], strict=True):
            other = load_encoder(ref, identify=True, plain_for="merge", device="cpu")
            require_same_form(made, other)
            parts.append(Part(ref.name, share, other.origin))
            yield share, other.model.state_dict()

    made.model.load_state_dict(average(states()))
    with whole(folder) as partial:
        made.write(partial)
        atomic_write(partial / CARD, _card(made, parts))
    return MergeResult(tuple(parts), made.fingerprint)


def _card(encoder: Encoder, parts: Sequence[Part]) -> str:
    """Return the card for an encoder of `metasearch merge`."""
    bases = tuple(find_base("merged", name, fingerprint) for name, _, fingerprint in parts)
    shares = [f"{part.share:g} of {base.short} ({part.fingerprint})" for part, base in zip(parts, bases, strict=True)]
    return make_card(
        encoder,
        bases,
        ["It was neither trained nor scored after the merge."],
        command="merge",
        title=f"Between {' and '.join(base.short for base in bases)}",
        summary="A sentence encoder whose weights are a weighted mean, made by metasearch from "
        f"{', '.join(base.name for base in bases)}.",
        facts={"weights": " + ".join(shares)},
        tags=("merge",),
    )


def resolve_shares(count: int, alpha: float | None) -> tuple[float, ...]:
    """Return the share of each of `count` encoders; `ConfigError` for fewer than two, or α with more than two."""
    if count < 2:
        raise ConfigError("name at least two encoders")
    if alpha is None:
        return (1 / count,) * count
    if count != 2:
        raise ConfigError(f"--alpha is for two encoders; {count} have equal shares, or are merged two at a time")
    # NaN passes the range of the option, as every comparison with it is false.
    if not 0 <= alpha <= 1:
        raise ConfigError(f"--alpha: expected a number from 0 to 1, got {alpha:g}")
    return 1 - alpha, alpha


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
