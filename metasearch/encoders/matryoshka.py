"""Truncated dimensions that an encoder was trained for (Matryoshka).

The record stands with the module that makes the vectors, so that a map which is put behind it, and mixes the numbers,
leaves an encoder without one. In a checkpoint it is the key `matryoshka_dimensions` of sentence-transformers' own
configuration, which plain sentence-transformers passes over.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from metasearch.encoders.incomplete import SETTINGS, read_settings
from metasearch.errors import EncoderError

_KEY = "matryoshka_dimensions"


def trained_dimensions(model: SentenceTransformer) -> tuple[int, ...]:
    """Return the trained truncation dimensions, ascending; empty for other models."""
    found: tuple[int, ...] = getattr(model[-1], _KEY, ())
    return found


def set_trained_dimensions(model: SentenceTransformer, dimensions: Sequence[int]) -> None:
    """Set the trained truncation dimensions."""
    setattr(model[-1], _KEY, tuple(sorted(set(dimensions))))


def write_dimensions(model: SentenceTransformer, folder: Path) -> None:
    """Add the trained dimensions to a saved configuration, if there are any."""
    if dimensions := trained_dimensions(model):
        path = folder / SETTINGS
        settings = json.loads(path.read_text(encoding="utf-8")) | {_KEY: list(dimensions)}
        path.write_text(json.dumps(settings, indent=2, sort_keys=True), encoding="utf-8")


def read_dimensions(model: SentenceTransformer, name: str, local: bool) -> None:
    """Take the record from the checkpoint that a model was loaded from, where it has one.

    Args:
        model: the model, which ends in the module that makes its vectors.
        name: folder or hub name of the checkpoint.
        local: whether it is a folder.

    Raises:
        EncoderError: what it says is no list of whole numbers from 1 to the width of the vectors.
    """
    settings = read_settings(name, local)
    if _KEY not in settings:
        return
    said, width = settings[_KEY], model.get_embedding_dimension()
    if not (isinstance(said, list) and all(_is_cut(value, width) for value in said)):
        raise EncoderError(f"{name}: {SETTINGS}: {_KEY}: {said!r}: expected a list of whole numbers from 1 to {width}")
    set_trained_dimensions(model, said)


def _is_cut(value: Any, width: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= width
