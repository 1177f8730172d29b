"""What a card says of encoders: how the model is used, and what it was made of."""

import logging
from collections.abc import Iterator
from math import isinf
from pathlib import Path
from typing import Any, get_args

from huggingface_hub import try_to_load_from_cache

from metasearch.encoders.encoder import Encoder
from metasearch.encoders.matryoshka import trained_dimensions
from metasearch.encoders.open import is_path
from metasearch.errors import MetasearchError
from metasearch.export.plain import is_compressed
from metasearch.publish.about import Base, Reading, Usage
from metasearch.publish.header import title_of
from metasearch.publish.licence import CARD, UNKNOWN, licence_in
from metasearch.spec import registry
from metasearch.spec.recipe import Role

log = logging.getLogger(__name__)

_LOCAL = "a local checkpoint"


def usage_of(encoder: Encoder) -> Usage:
    """Return how an encoder, as it was saved, is used with plain sentence-transformers."""
    return Usage(
        tuple(Reading(role, encoder.prompt(role), _length(encoder, role)) for role in get_args(Role)),
        encoder.dimension(),
        encoder.parameter_count,
        needs_metasearch=is_compressed(encoder),
        cuts=trained_dimensions(encoder.model),
    )


def _length(encoder: Encoder, role: Role) -> int | None:
    """Return where sentence-transformers cuts texts of a role: at the role's length, or at the model's one, if any."""
    own = encoder.input.lengths
    length = encoder.model.max_seq_length if own is None else getattr(own, role)
    return None if length is None or isinf(length) else int(length)


def base_of(role: str, name: str, fingerprint: str = "") -> Base:
    """Return what a card says of an encoder by the name that a run had for it; the path of a folder is not told."""
    if name in registry.names("encoders"):
        module = registry.load("encoders", name)
        return _described(Base(role, f"`{name}`", fingerprint=fingerprint), module)
    folder = Path(name)
    if folder.is_dir() or is_path(name):
        card = folder / CARD
        return Base(role, _LOCAL, None, licence_in(card), fingerprint, _title(card))
    cached = try_to_load_from_cache(name, CARD)
    licence = licence_in(Path(cached)) if isinstance(cached, str) else UNKNOWN
    return Base(role, f"`{name}`", name, licence, fingerprint)


def _described(base: Base, module: Any) -> Base:
    """Return a built-in encoder with what its module says: `HUB`, `LICENCE`, or `FOLDER` with a card."""
    folder = getattr(module, "FOLDER", None)
    card = Path(folder) / CARD if folder is not None else None
    licence = getattr(module, "LICENCE", None) or (licence_in(card) if card else UNKNOWN)
    return Base(
        base.role, base.name, getattr(module, "HUB", None), licence, base.fingerprint, _title(card) if card else ""
    )


def _title(card: Path) -> str:
    try:
        return title_of(card) if card.is_file() else ""
    except MetasearchError as error:
        log.warning("%s: left out of the new card: %s", card, error)
        return ""


def limits_of(usage: Usage, bases: tuple[Base, ...], languages: tuple[str, ...]) -> Iterator[str]:
    """Yield the limits that any model made in this way has."""
    if languages:
        yield (f"It was made with texts in {', '.join(languages)}. How good it is in other languages was not measured.")
    if lengths := [each.length for each in usage.readings if each.length]:
        yield f"Texts are cut: nothing beyond {max(lengths)} tokens is read, and of some roles less (see above)."
    if bases:
        names = ", ".join(base.name for base in bases)
        yield f"It has the errors and biases of what it was made of ({names}), unless training happened to change them."
    yield "Questions may prefer answers in their own language; `metasearch report RUN` shows by how much."
