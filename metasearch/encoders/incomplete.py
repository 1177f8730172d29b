"""Checkpoints with missing files or packages: problems and assumptions."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from sentence_transformers.util import load_file_path

from metasearch.errors import EncoderError, first_line

MODULES = "modules.json"
SETTINGS = "config_sentence_transformers.json"
_POOLINGS = {"mean": "means of tokens", "lasttoken": "states of the last token"}


def read_settings(name: str, local: bool) -> dict[str, Any]:
    """Return sentence-transformers' own configuration of a checkpoint, such as its prompts; empty where it has none.

    Args:
        name: folder or hub name of the checkpoint.
        local: whether it is a folder.

    Raises:
        EncoderError: it is no JSON object.
    """
    path = load_file_path(name, SETTINGS, local_files_only=local)
    if path is None:
        return {}
    try:
        settings = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise EncoderError(f"{path}: no JSON: {first_line(error)}") from None
    if not isinstance(settings, dict):
        raise EncoderError(f"{path}: expected a JSON object, got {type(settings).__name__}")
    return settings


def assumption(model: SentenceTransformer, name: str, local: bool) -> tuple[str, bool] | None:
    """Return the assumption for a checkpoint that does not describe its embeddings.

    sentence-transformers makes up the modules behind the transformer where `modules.json` is missing or belongs to
    another kind of model, and then reads neither the prompts nor the lengths of the checkpoint.

    Args:
        model: the model as sentence-transformers loaded it.
        name: folder or hub name of the checkpoint.
        local: whether it is a folder.

    Returns:
        One line, and whether files of the checkpoint contradict it; None where nothing was assumed.

    Raises:
        EncoderError: its configuration is damaged.
    """
    settings = read_settings(name, local)
    if load_file_path(name, MODULES, local_files_only=local) is None:
        pooling = load_file_path(name, "config.json", subfolder="1_Pooling", local_files_only=local)
        if found := [part for part, there in (("1_Pooling", pooling), (SETTINGS, settings)) if there]:
            return f"{MODULES} is missing, though it has {' and '.join(found)}; {_assumed(model)}", True
        return f"a plain transformers checkpoint; {_assumed(model)}", False
    kind = settings.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer":
        return f"it was saved as a {kind}, of which the transformer alone is used; {_assumed(model)}", True
    return None


def _assumed(model: SentenceTransformer) -> str:
    pooling = next((module.pooling_mode for module in model if isinstance(module, Pooling)), None)
    how = _POOLINGS.get(str(pooling), "the output of its transformer")
    return f"assumed: embeddings are {how}, without prompts"


def missing_part(folder: Path, error: Exception) -> str | None:
    """Return the missing module of an unloadable folder, or the reason its list is unreadable.

    Args:
        folder: of the checkpoint.
        error: what sentence-transformers raised.
    """
    path = folder / MODULES
    if not path.is_file():
        return None
    try:
        modules = [(str(each["type"]), str(each["path"])) for each in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, TypeError, KeyError) as wrong:
        return f"{path}: no list of modules: {first_line(wrong)}"
    for kind, place in modules:
        package = kind.partition(".")[0]
        if package and "--" not in kind and not (folder / f"{package}.py").is_file() and find_spec(package) is None:
            return f"its module {kind} needs the package '{package}', which is not installed"
        # A class is called without its required arguments; many folders of modules without settings are left away.
        if place and isinstance(error, TypeError) and not (folder / place / "config.json").is_file():
            return f"{folder / place / 'config.json'} is missing, the settings of its module {kind}"
    return None
