"""metasearch-mini: 12 languages (ar de el en es fr hi it nl ru th tr), under 10 M parameters, comes with metasearch.

A student of all-MiniLM-L6-v2, made by `benchmarks/mini`; the model card in `mini_model/README.md` says of what and how
good it is. Stored in int8, float32 in memory.
"""

from pathlib import Path

from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.packaged import open_packaged

FOLDER = Path(__file__).parent / "mini_model"


def build(max_length: MaxLength | None = None, seed: int = 0) -> Encoder:
    """Return the encoder, the same for every seed; `EncoderError` where its folder is missing or damaged."""
    return open_packaged("mini", FOLDER, max_length)


def folder() -> Path:
    """Return the folder of its checkpoint."""
    return FOLDER
