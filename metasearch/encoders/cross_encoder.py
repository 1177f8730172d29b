"""Loads cross-encoders, which read two texts together and give them one score."""

from pathlib import Path

import torch
from sentence_transformers import CrossEncoder

from metasearch.config import registry
from metasearch.encoders.loading import recorded, require_fit
from metasearch.encoders.open import is_path, only_cached, quiet
from metasearch.errors import ConfigError, EncoderError, first_line


def load_cross_encoder(
    name: str, device: str | torch.device = "cpu", trust_remote_code: bool = False, what: str = "cross-encoder"
) -> CrossEncoder:
    """Load a sentence-transformers `CrossEncoder` of one score in float32.

    Args:
        name: local folder or hub name.
        device: device to run on.
        trust_remote_code: run Python code that comes with the model.
        what: purpose of the model, for messages.

    Raises:
        EncoderError: there is no such model, it cannot be loaded, has several labels, or has not learnt to score.
        ConfigError: the name belongs to a built-in encoder.
    """
    local = Path(name).is_dir()
    if not local and name in registry.names("encoders"):
        raise ConfigError(f"{what} '{name}' is a built-in encoder; expected a sentence-transformers CrossEncoder")
    if not local and (is_path(name) or Path(name).exists()):
        raise EncoderError(f"{what} '{name}': no such folder")
    quiet()
    offline = local or only_cached(name, what)
    try:
        with recorded() as loaded, torch.random.fork_rng(devices=[]):
            model = CrossEncoder(
                name,
                device=str(device),
                local_files_only=offline,
                trust_remote_code=trust_remote_code,
                model_kwargs={"dtype": torch.float32},
            )
        labels = model.num_labels
    except Exception as error:  # the libraries below raise anything from OSError to bare Exception
        raise EncoderError(_explain(what, name, error)) from error
    # A checkpoint without a head, such as an encoder, gets a random one, whose scores mean nothing.
    if heads := [key for each in loaded for key in each.missing]:
        raise EncoderError(
            f"{what} '{name}' is not a cross-encoder: it lacks the weights '{heads[0]}', which score a pair of texts"
        )
    if labels != 1:
        raise EncoderError(f"{what} '{name}' has {labels} labels; expected a single score")
    require_fit(f"{what} '{name}'", loaded, pooled=True)
    return model


def _explain(what: str, name: str, error: Exception) -> str:
    if "trust_remote_code" in str(error):
        return f"{what} '{name}' comes with its own Python code; pass --trust-remote-code if you trust its source"
    return f"{what} '{name}' cannot be loaded as a sentence-transformers CrossEncoder: {first_line(error)}"
