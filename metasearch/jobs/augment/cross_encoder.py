"""Opens cross-encoders, which read two sentences at once and give them one score."""

import json
from pathlib import Path

import torch
from sentence_transformers import CrossEncoder

from metasearch.encoders.loading import recorded, require_fit
from metasearch.encoders.open import is_path, quiet
from metasearch.errors import EncoderError, first_line

EXAMPLE = "cross-encoder/stsb-roberta-base"
"""One that scores the similarity of two sentences."""

_HEADS = ("ForSequenceClassification", "ForCausalLM")


def load_cross_encoder(name: str, device: str | torch.device = "cpu", trust_remote_code: bool = False) -> CrossEncoder:
    """Return a cross-encoder that gives two sentences one score, from a local folder or by its hub name.

    Raises:
        EncoderError: it cannot be loaded, is a sentence encoder, has more than one label, or has not learnt to score.
    """
    local = Path(name).exists()
    if not local and is_path(name):
        raise EncoderError(f"cross-encoder '{name}': no such folder")
    if _is_sentence_encoder(Path(name)):
        raise EncoderError(f"cross-encoder '{name}' is a sentence encoder, which reads one text; try {EXAMPLE}")
    quiet()
    try:
        with recorded() as loaded:
            model = CrossEncoder(
                name,
                device=str(device),
                local_files_only=local,
                trust_remote_code=trust_remote_code,
                model_kwargs={"dtype": torch.float32},
            )
        labels, heads = model.num_labels, model.config.architectures or ()
    except Exception as error:  # the libraries below raise anything from OSError to bare Exception
        where = "" if local else "is no folder here, and "
        raise EncoderError(f"cross-encoder '{name}' {where}cannot be loaded: {first_line(error)}") from error
    if labels != 1:
        raise EncoderError(f"cross-encoder '{name}' has {labels} labels; one that gives a single score is needed")
    # A checkpoint without a head gets a random one, whose scores mean nothing.
    if not any(head.endswith(_HEADS) for head in heads):
        raise EncoderError(
            f"cross-encoder '{name}' is a {', '.join(heads) or 'model'} without a head that scores pairs; try {EXAMPLE}"
        )
    require_fit(f"cross-encoder '{name}'", loaded, pooled=True)
    return model


def _is_sentence_encoder(folder: Path) -> bool:
    """Return whether a folder says that it is one; what cannot be read is left to who loads it."""
    if not (folder / "modules.json").is_file():
        return False
    try:
        about = json.loads((folder / "config_sentence_transformers.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        about = {}
    # Folders of older releases name no type; cross-encoders had no modules then.
    return not isinstance(about, dict) or about.get("model_type", "SentenceTransformer") != "CrossEncoder"
