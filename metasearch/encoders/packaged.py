"""Encoders whose checkpoint comes in a Python package: opened from there, under their own name."""

from importlib.util import find_spec
from pathlib import Path

from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.errors import EncoderError


def open_packaged(name: str, folder: Path, max_length: MaxLength | None) -> Encoder:
    """Open the checkpoint in a folder as the encoder `name`; `EncoderError` where it is missing or damaged."""
    from metasearch.encoders.open import open_checkpoint

    encoder = open_checkpoint(str(folder), max_length)
    encoder.name = name
    return encoder


def package_folder(encoder: str, package: str, needed: str) -> Path:
    """Return the folder of the package of an encoder, which is not imported.

    `EncoderError` where it is missing; `needed` is its distribution, and how to install it.
    """
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise EncoderError(f"encoder '{encoder}' needs the package {needed}")
    return Path(found.submodule_search_locations[0])
