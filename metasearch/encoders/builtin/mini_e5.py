"""metasearch-mini-e5: 12 languages, under 10 M parameters, cut out of multilingual-e5-small; included.

Made by `benchmarks/mini` with `--teacher e5`; the model card in `mini_e5_model/README.md` says of what and how good it
is. It finds more across languages than `mini`, and does not know characters that its training texts lack. Stored in
int8, float32 in memory.
"""

from pathlib import Path

from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.packaged import open_packaged

FOLDER = Path(__file__).parent / "mini_e5_model"


def build(max_length: MaxLength | None = None, seed: int = 0) -> Encoder:
    """Return the encoder, the same for every seed; `EncoderError` where its folder is missing or damaged."""
    return open_packaged("mini-e5", FOLDER, max_length)


def folder() -> Path:
    """Return the folder of its checkpoint."""
    return FOLDER
