"""Opens cross-encoders, which read two sentences at once and give them one score."""

from pathlib import Path

import torch
from sentence_transformers import CrossEncoder

from metasearch.encoders._checkpoint import quiet
from metasearch.errors import EncoderError

_HEADS = ("ForSequenceClassification", "ForCausalLM")


def load_cross_encoder(name: str, device: str | torch.device = "cpu", trust_remote_code: bool = False) -> CrossEncoder:
    """Return a cross-encoder that gives two sentences one score.

    Args:
        name: local folder or hub name.
        device: where it runs.
        trust_remote_code: run code that comes with the checkpoint.

    Raises:
        EncoderError: it cannot be loaded, has more than one label, or has not learnt to score.
    """
    local = Path(name).exists()
    if not local and (name.startswith((".", "/", "~")) or name.count("/") > 1):
        raise EncoderError(f"cross-encoder '{name}': no such folder")
    quiet()
    try:
        model = CrossEncoder(
            name,
            device=str(device),
            local_files_only=local,
            trust_remote_code=trust_remote_code,
            model_kwargs={"dtype": torch.float32},
        )
        labels, heads = model.num_labels, model.config.architectures or ()
    except Exception as error:  # the libraries below raise anything from OSError to bare Exception
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        where = "" if local else "is no folder here, and "
        raise EncoderError(f"cross-encoder '{name}' {where}cannot be loaded: {first}") from error
    if labels != 1:
        raise EncoderError(f"cross-encoder '{name}' has {labels} labels; one that gives a single score is needed")
    # A checkpoint without a head gets a random one, whose scores mean nothing.
    if not any(head.endswith(_HEADS) for head in heads):
        raise EncoderError(
            f"cross-encoder '{name}' is a {', '.join(heads) or 'model'} without a head that scores pairs"
        )
    return model
