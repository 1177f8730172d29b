"""e5-lite: multilingual-e5-small with the words of 29 languages, in 25 MB; comes with metasearch.

Made by `benchmarks/e5_lite`; the model card in `e5_lite_model/README.md` says of what and how good it is. All twelve
layers are those of `e5`, so it is as slow; characters of other scripts are unknown. The file, of the form of `e5`'s, is
unpacked once, into float32, and kept in the user's cache.
"""

from pathlib import Path

from metasearch.config.roles import MaxLength
from metasearch.encoders.builtin.e5 import read_file, unpack
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.packaged import open_packaged
from metasearch.io import cached

FOLDER = Path(__file__).parent / "e5_lite_model"
FILE = "e5-lite.bin"
SHA256 = "4b08774fba556821326e0062410998dced1b0a026970511cfc3a76b41cc641a5"

_CACHED = f"e5-lite-{SHA256[:8]}-1"
"""Folder in the cache. Its last number counts the ways in which the file was unpacked."""


def build(max_length: MaxLength | None = None, seed: int = 0) -> Encoder:
    """Return the encoder, the same for every seed; `EncoderError` where its file or its cache is not in order."""
    return open_packaged("e5-lite", folder(), max_length)


def folder() -> Path:
    """Return the folder of its checkpoint; errors as `build`."""
    return cached(_CACHED, _unpack)


def _unpack(folder: Path) -> None:
    unpack(read_file("e5-lite", FOLDER / FILE, SHA256, "install this package again"), folder)
