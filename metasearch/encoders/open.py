"""Opens any sentence-transformers or transformers checkpoint, by hub name or local folder."""

import logging
from difflib import get_close_matches
from pathlib import Path

import torch
from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, HFValidationError, RepositoryNotFoundError
from sentence_transformers import SentenceTransformer
from transformers.utils import logging as transformers_logging

from metasearch.config import registry
from metasearch.config.recipe import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.incomplete import assumption, missing_part
from metasearch.encoders.loading import recorded, require_fit, uses_pooler
from metasearch.encoders.matryoshka import read_dimensions
from metasearch.encoders.saved_layout import restore_lengths
from metasearch.errors import EncoderError, first_line

log = logging.getLogger(__name__)

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_HUB_WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_SECONDS = 5.0
"""Time for the model hub to answer."""


def open_checkpoint(name: str, max_length: MaxLength | None = None, trust_remote_code: bool = False) -> Encoder:
    """Load an encoder in float32 from a local folder or by its hub name.

    A folder is read without touching the network. What is assumed of a checkpoint without `modules.json`, such as one
    of plain transformers, is logged. Python code that comes with a checkpoint is run with `trust_remote_code` only.

    Raises:
        EncoderError: there is no such checkpoint, it has no weights or others than its configuration asks for, or
            it cannot be loaded or used.
    """
    local = check_name(name) or only_cached(name)
    quiet()
    try:
        # Weights that a checkpoint lacks, such as a pooler, are drawn: the same ones every time it is opened.
        with recorded() as loaded, torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = SentenceTransformer(
                name,
                device="cpu",
                local_files_only=local,
                trust_remote_code=trust_remote_code,
                # The default takes the checkpoint's own type; in half precision an inner step of 1e-3 is rounding.
                model_kwargs={"dtype": torch.float32},
            ).float()  # which a static encoder does not ask for
    except Exception as error:  # the libraries below raise anything from OSError to bare Exception
        raise EncoderError(_why(name, local, error)) from error
    require_fit(f"encoder '{name}'", loaded, pooled=uses_pooler(model))
    if assumed := assumption(model, name, local):
        line, wrong = assumed
        log.log(logging.WARNING if wrong else logging.INFO, "encoder '%s': %s", name, line)
    restore_lengths(model, name, local)
    encoder = Encoder(model, name, max_length)
    read_dimensions(model, name, local)
    return encoder


def check_name(name: str) -> bool:
    """Return whether a name is a local folder; any other belongs to a model hub, which is not contacted.

    Raises:
        EncoderError: the folder is not there or holds no checkpoint, or the name is nearly that of a built-in encoder.
    """
    folder = Path(name)
    if folder.exists():
        _check_folder(folder)
    elif is_path(name):
        raise EncoderError(f"encoder '{name}': no such folder")
    elif close := get_close_matches(name, registry.names("encoders"), cutoff=0.7):
        raise EncoderError(f"unknown encoder '{name}'. Did you mean '{close[0]}'? See `metasearch ls encoders`")
    return folder.exists()


def is_path(name: str) -> bool:
    """Return whether a name is a path and cannot be a hub name."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1


def quiet() -> None:
    """Stop the libraries from printing progress bars, reports and warnings between a command's own lines."""
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise EncoderError(f"encoder '{folder}': expected a folder, got a file")
    if (folder / "metasearch.json").is_file():
        raise EncoderError(
            f"encoder '{folder}' is an ONNX export, which only `metasearch evaluate` and onnxruntime read; name the "
            "encoder that it was made from"
        )
    if not _holds_modules(folder) and _holds_modules(folder / "model"):
        raise EncoderError(f"encoder '{folder}': this is a run folder; name its model, {folder / 'model'}")
    if any(folder.rglob("adapter_config.json")):
        raise EncoderError(
            f"encoder '{folder}' is a PEFT adapter; merge it into its base with merge_and_unload of peft, and save that"
        )
    if not any(next(folder.rglob(pattern), None) for pattern in _WEIGHTS):
        inside = ", ".join(sorted(path.name for path in folder.iterdir())[:6]) or "nothing"
        raise EncoderError(
            f"encoder '{folder}': no weights (*.safetensors or pytorch_model.bin) in it; it holds {inside}"
        )


def _holds_modules(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("modules.json", "config.json"))


def _why(name: str, local: bool, error: Exception) -> str:
    if local and (missing := missing_part(Path(name), error)):
        return f"encoder '{name}' cannot be loaded: {missing}"
    if "trust_remote_code" in str(error):
        return f"encoder '{name}' comes with its own Python code; pass --trust-remote-code if you trust its source"
    return f"encoder '{name}' cannot be loaded: {first_line(error)}" if local else _not_on_hub(name, first_line(error))


def only_cached(name: str, what: str = "encoder") -> bool:
    """Return whether the model hub cannot be reached and a checkpoint is in its cache; asks for one file's headers.

    Args:
        name: hub name.
        what: kind of the checkpoint, for messages.

    Raises:
        EncoderError: the hub cannot be reached, and the cache does not have the weights.
    """
    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=_SECONDS)
    except (EntryNotFoundError, RepositoryNotFoundError, HFValidationError):
        return False  # the hub answers, and loading names what is wrong
    except Exception as error:  # the client raises errors of its own, of its HTTP library and of the system
        if any(isinstance(try_to_load_from_cache(name, file), str) for file in _HUB_WEIGHTS):
            log.info("%s '%s' comes from the cache: the model hub cannot be reached", what, name)
            return True
        reason = f"{type(error).__name__}: {first_line(error)}"
        if what != "encoder":
            raise EncoderError(
                f"{what} '{name}' is not a local folder, and the model hub cannot be reached ({reason})"
            ) from error
        raise EncoderError(_not_on_hub(name, reason)) from error
    return False


def _not_on_hub(name: str, reason: str) -> str:
    return (
        f"encoder '{name}' is no built-in encoder, no folder here, and cannot be loaded from the model hub ({reason}). "
        "Built-in encoders need no network, such as --encoder mini-e5; see `metasearch ls encoders`"
    )
