"""Opens any sentence-transformers or transformers checkpoint, by hub name or local folder."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, HFValidationError, RepositoryNotFoundError
from safetensors import SafetensorError, safe_open
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling
from sentence_transformers.util import load_file_path
from transformers import PreTrainedModel

from metasearch.config import registry
from metasearch.config.roles import MaxLength
from metasearch.data.locate import require_hub_cache
from metasearch.encoders import compressed as compressed
from metasearch.encoders import int8 as int8
from metasearch.encoders.adapted import encoder_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.loader_log import warnings_as_lines
from metasearch.encoders.random_state import seeded
from metasearch.encoders.saved_layout import MODULES, read_settings, restore_lengths
from metasearch.errors import EncoderError, first_line
from metasearch.io import near

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

    A folder is read without touching the network. Assumptions about a checkpoint without `modules.json` are logged.
    Python code that comes with a checkpoint is run with `trust_remote_code` only.

    Raises:
        EncoderError: the checkpoint is missing, lacks weights, does not fit its configuration, or cannot be loaded or
            used.
    """
    local, what = check_name(name) or only_cached(name), f"encoder '{name}'"
    try:
        # Weights that a checkpoint lacks, such as a pooler, are drawn: the same ones every time it is opened.
        with warnings_as_lines(log, what), recorded() as loaded, seeded(0):
            model = SentenceTransformer(
                name,
                device="cpu",
                local_files_only=local,
                trust_remote_code=trust_remote_code,
                # The default takes the checkpoint's own type; in half precision an inner step of 1e-3 is rounding.
                model_kwargs={"dtype": torch.float32},
            )
    except Exception as error:  # the libraries below raise anything from OSError to bare Exception
        raise EncoderError(_why(name, local, error)) from error
    require_fit(what, loaded, pooled=uses_pooler(model))
    settings = read_settings(name, local)
    if assumed := _assumption(model, name, local, settings):
        log.warning("%s: %s", what, assumed)
    elif not trust_remote_code:
        _require_activations(model, name, local)
    restore_lengths(model, name, settings)
    return encoder_of(model, name, max_length)


def check_name(name: str) -> bool:
    """Return whether a name is a local folder; other names belong to a model hub, which is not contacted.

    `EncoderError` if the folder is missing or holds no checkpoint, or the name resembles a built-in encoder's.
    """
    folder = Path(name)
    if folder.exists():
        _check_folder(folder)
    elif is_path(name):
        raise EncoderError(f"encoder '{name}': no such folder{near(folder)}")
    elif close := get_close_matches(name, registry.names("encoders"), cutoff=0.7):
        raise EncoderError(f"unknown encoder '{name}'. Did you mean '{close[0]}'? See `metasearch ls encoders`")
    return folder.exists()


def is_path(name: str) -> bool:
    """Return whether a name is a path and cannot be a hub name."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1


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
    # Where transformers looks for one; a folder of checkpoints inside may hold others.
    if any((folder / place / "adapter_config.json").is_file() for place in ("", "0_Transformer")):
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
    if found := (_damage(Path(name)) if local else None) or _foreign_module(name, local, error):
        return f"encoder '{name}' cannot be loaded: {found}"
    if "trust_remote_code" in str(error):
        return f"encoder '{name}' comes with its own Python code; pass --trust-remote-code if you trust its source"
    if not local:
        return _not_on_hub(name, first_line(error))
    missing = _missing_settings(Path(name), str(error))
    return f"encoder '{name}' cannot be loaded: {f'{missing} is missing' if missing else first_line(error)}"


def _damage(folder: Path) -> str | None:
    """Return which file of modules or weights in a checkpoint is no such file, and why."""
    if (folder / MODULES).is_file() and not _listed(str(folder), True):
        return f"{folder / MODULES}: expected a JSON list of modules, each with type and path"
    for path in sorted(folder.rglob("*.safetensors")):
        try:
            with safe_open(path, framework="pt"):
                pass
        except (OSError, SafetensorError) as error:
            return f"{path}: {first_line(error)}"
    return None


def _listed(name: str, local: bool) -> list[dict[str, str]]:
    """Return what a checkpoint's `modules.json` lists; nothing where it is missing or damaged."""
    path = load_file_path(name, MODULES, local_files_only=local)
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8")) if path else []
    except (OSError, ValueError):
        return []
    whole = isinstance(found, list) and all(
        isinstance(each, dict)
        and isinstance(each.get("path"), str)
        and isinstance(each.get("type"), str)
        and each["type"]
        for each in found
    )
    return found if whole else []


def _require_activations(model: SentenceTransformer, name: str, local: bool) -> None:
    """Raise `EncoderError` for an activation of another library than torch, which was opened as Tanh."""
    for module, entry in zip(model, _listed(name, local), strict=False):
        if isinstance(module, Dense):
            path = load_file_path(name, str(Path(entry["path"]) / "config.json"), local_files_only=local)
            said = json.loads(Path(path).read_text(encoding="utf-8")).get("activation_function") if path else None
            if said and not said.startswith("torch."):
                raise EncoderError(
                    f"encoder '{name}': its activation '{said}' is not of torch; use an activation of torch in "
                    f"{entry['path']}/config.json"
                )


def _foreign_module(name: str, local: bool, error: Exception) -> str | None:
    """Return the module of a checkpoint whose package is not installed, or is but not trusted; or None."""
    asks = "trust_remote_code" in str(error)
    if not isinstance(error, ImportError) and not asks:
        return None
    for each in _listed(name, local):
        kind = each["type"]
        package = kind.partition(".")[0]
        # Code that comes with a checkpoint is one file beside its modules.json, or in another repository.
        if not package or "--" in kind or package == "sentence_transformers":
            continue
        if load_file_path(name, f"{package}.py", local_files_only=local):
            continue
        found = f"module '{kind}' of its {MODULES} is of the package '{package}'"
        if not find_spec(package):
            return f"{found}, which is not installed"
        # Whether the package has this class is known only when its code is run.
        if asks and kind in str(error):
            return f"{found}, which is imported with --trust-remote-code only; pass it if you trust that package"
    return None


def _missing_settings(folder: Path, error: str) -> Path | None:
    """Return the settings file of a module whose class was called without its required arguments."""
    called, missing, _ = error.partition(".__init__() missing")
    if not missing:
        return None
    modules = _listed(str(folder), True)
    files = [folder / each["path"] / "config.json" for each in modules if each["type"].endswith(f".{called}")]
    return next((file for file in files if not file.is_file()), None)


def only_cached(name: str, what: str = "encoder") -> bool:
    """Return whether the model hub cannot be reached and a checkpoint is in its cache; asks for one file's headers.

    `EncoderError` if the cache does not have the weights either. `what` names the kind of checkpoint in messages.
    """
    require_hub_cache(name)
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
        f"{near(Path(name))}"
    )


# Compare a checkpoint's weights with its model: transformers initialises missing ones and ignores the rest.

_ONE_AT_A_TIME = Lock()
_POOLER = "pooler"
_BUFFERS = ("position_ids", "token_type_ids")
"""Counters that older releases of transformers wrote to files; models make them themselves now."""


@dataclass(frozen=True)
class LoadReport:
    """A transformer, names of its weights that the checkpoint lacks, and names of unknown weights in the checkpoint."""

    model: Any
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]


@contextmanager
def recorded() -> Iterator[list[LoadReport]]:
    """Collect every transformer loaded inside the context.

    Other libraries drop the loading report of transformers, so `from_pretrained` is replaced by one that asks for it.
    """
    found: list[LoadReport] = []
    with _ONE_AT_A_TIME:
        before = PreTrainedModel.__dict__["from_pretrained"]

        def reporting(cls: Any, /, *args: Any, output_loading_info: bool = False, **kwargs: Any) -> Any:
            model, info = before.__func__(cls, *args, output_loading_info=True, **kwargs)
            missing, unexpected = (tuple(sorted(info[key])) for key in ("missing_keys", "unexpected_keys"))
            found.append(LoadReport(model, missing, unexpected))
            return (model, info) if output_loading_info else model

        PreTrainedModel.from_pretrained = classmethod(reporting)
        try:
            yield found
        finally:
            PreTrainedModel.from_pretrained = before


def require_fit(what: str, loaded: Sequence[LoadReport], pooled: bool) -> None:
    """Raise `EncoderError` where weights of a transformer are missing, or weights of its own parts are left over.

    A line names weights beside the transformer, such as the head of a language model. `pooled` says whether embeddings
    use the pooler; else it may be missing or left over. `what` is such as `encoder 'NAME'`.
    """
    for each in loaded:
        missing = [key for key in each.missing if pooled or not _is_pooler(key)]
        left = [key for key in each.unexpected if key.rpartition(".")[2] not in _BUFFERS and not _is_pooler(key)]
        own = {key.partition(".")[0] for key in each.model.state_dict()}
        # With every weight under another name, what is left over tells what is wrong.
        unexpected = left if missing else [key for key in left if key.partition(".")[0] in own]
        if any(f"encoder.{key}" in left for key in missing) and each.model.config.is_encoder_decoder:
            raise EncoderError(
                f"{what} cannot be loaded: sentence-transformers opens only the encoder of a "
                f"'{each.model.config.model_type}', without the prefix 'encoder.' of its weights. Save "
                "model.get_encoder() to another folder, with the tokenizer, and name that"
            )
        if missing or unexpected:
            said = [_join(keys, how) for keys, how in ((missing, "missing"), (unexpected, "unexpected")) if keys]
            why = ", and random numbers in their place would give meaningless scores" if missing else ""
            raise EncoderError(
                f"{what} cannot be loaded: its weights do not fit its config.json: {'; '.join(said)}{why}. Were its "
                "files changed, or written by another program?"
            )
        if left:
            log.warning("%s: ignored %s", what, _join(left, "beside the encoder"))


def uses_pooler(model: SentenceTransformer) -> bool:
    """Return whether a model's embeddings use the transformer's pooler."""
    settings = getattr(model[0], "modality_config", None) or {}
    outputs = [params.get("method_output_name") for params in settings.values() if isinstance(params, dict)]
    return any("pooler_output" in ([name] if isinstance(name, str) else name or ()) for name in outputs)


def _join(keys: Sequence[str], what: str) -> str:
    """Return such as `2 weights missing, the first 'encoder.layer.0.output.dense.bias'`."""
    return f"{len(keys)} weight{'s' * (len(keys) > 1)} {what}, the first '{keys[0]}'"


def _is_pooler(key: str) -> bool:
    return _POOLER in key.split(".")


_POOLINGS = {"mean": "means of tokens", "lasttoken": "states of the last token"}


def _assumption(model: SentenceTransformer, name: str, local: bool, settings: Mapping[str, Any]) -> str | None:
    """Return the assumption for a checkpoint that does not describe its embeddings; None where nothing was assumed.

    Where `modules.json` is missing or of another kind, sentence-transformers makes up the modules and reads neither
    prompts nor lengths.
    """
    kind = settings.get("model_type", "SentenceTransformer")
    if load_file_path(name, MODULES, local_files_only=local) is None:
        what = f"it has no {MODULES}"
    elif kind != "SentenceTransformer":
        what = f"it was saved as a {kind}, of which the transformer alone is used"
    else:
        return None
    pooling = next((module.pooling_mode for module in model if isinstance(module, Pooling)), None)
    how = _POOLINGS.get(str(pooling), "the output of its transformer")
    return f"{what}; assumed: embeddings are {how}, without prompts"
