"""Rewrite a sentence-transformers 6 folder for releases 3 to 6 and model servers, with the same embeddings.

Older releases fail at unknown keys and type paths of release 6. text-embeddings-inference and vLLM look for the older
type paths, pooling keys and `max_seq_length`. A module that an older release cannot express keeps the layout of release
6, so that older releases fail and say why. So does a network with rotary positions, which transformers 4 cannot read.
"""

import json
import logging
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules.transformer import TRANSFORMER_TASK_DEFAULTS
from sentence_transformers.util import load_file_path

from metasearch.config.roles import MaxLength
from metasearch.encoders.inputs import input_of
from metasearch.encoders.lengths import UNLIMITED
from metasearch.errors import EncoderError, first_line

log = logging.getLogger(__name__)

MODULES = "modules.json"
SETTINGS = "config_sentence_transformers.json"

_LENGTHS = "max_length"
"""Key of `config_sentence_transformers.json` with the length of each role, which sentence-transformers ignores."""
_TRANSFORMER = "sentence_bert_config.json"
_TOKENIZER = "tokenizer_config.json"
_OWN_LENGTHS = ("query_length", "document_length")
_OLDER_NAMES = ("Dense", "Normalize", "Pooling", "Transformer")
"""Modules that sentence-transformers 3 has in `sentence_transformers.models`, with the weights of release 6."""
_POOLINGS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
_SENTENCE = "sentence_embedding"


def read_settings(name: str, local: bool) -> dict[str, Any]:
    """Return sentence-transformers' own configuration of a checkpoint, such as its prompts; empty where it has none.

    `local` says whether `name` is a folder. `EncoderError` if it is no JSON object.
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


def write_older_layout(model: SentenceTransformer, folder: Path) -> None:
    """Rewrite a folder that `model.save_pretrained` just wrote.

    Older releases know one length for all texts: the longest of any role. The length of each role goes to
    `config_sentence_transformers.json`, where `restore_lengths` finds it.
    """
    modules = _read(folder / MODULES)
    for module in modules:
        library, _, name = module["type"].rpartition(".")
        if not library.startswith("sentence_transformers.") or name not in _OLDER_NAMES:
            continue
        path = folder / module["path"] / "config.json"
        if _convert(name, model, folder, path):
            module["type"] = f"sentence_transformers.models.{name}"
    _write(folder / MODULES, modules)
    _name_tokenizer(model, folder / _TOKENIZER)


def restore_lengths(model: SentenceTransformer, name: str, settings: Mapping[str, Any]) -> None:
    """Restore the lengths per role in a checkpoint's settings, if any; `EncoderError` for other values."""
    said = settings.get(_LENGTHS)
    if said is None:
        return
    roles = MaxLength.model_fields
    if not (isinstance(said, dict) and said.keys() == roles.keys() and all(map(_is_length, said.values()))):
        raise EncoderError(f"{name}: {SETTINGS}: {_LENGTHS}: {said!r}: expected tokens of {', '.join(roles)}")
    input_of(model).cut_at({role: UNLIMITED if length is None else length for role, length in said.items()})


def _is_length(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


def _convert(name: str, model: SentenceTransformer, folder: Path, path: Path) -> bool:
    """Rewrite a module's settings; returns whether older releases read them."""
    if name == "Transformer":
        return _convert_transformer(model, folder)
    if name == "Pooling":
        return _convert_pooling(path)
    if name in ("Dense", "Normalize"):
        settings = _read(path)
        places = {settings.pop(f"module_{end}_name", _SENTENCE) for end in ("input", "output")}
        if places != {_SENTENCE} or "use_residual" in settings:
            return False
        _write(path, settings)
    return True


def _convert_transformer(model: SentenceTransformer, folder: Path) -> bool:
    settings = {key: value for key, value in _read(folder / _TRANSFORMER).items() if key not in _OWN_LENGTHS}
    task = "feature-extraction"
    modality, output = TRANSFORMER_TASK_DEFAULTS[task]
    if settings != {"transformer_task": task, "modality_config": modality, "module_output_name": output}:
        return False
    if "rope_parameters" in _read(folder / "config.json"):
        return False  # transformers 4 would ignore them and compute other vectors
    reads = input_of(model)
    lengths = {role: min(length, reads.longest) for role, length in reads.lengths.model_dump().items()}
    longest = max(lengths.values())
    short = {"max_seq_length": longest if longest < UNLIMITED else None, "do_lower_case": False}
    _write(folder / _TRANSFORMER, short)
    if len(set(lengths.values())) > 1:
        said = {role: length if length < UNLIMITED else None for role, length in lengths.items()}
        _write(folder / SETTINGS, {**_read(folder / SETTINGS), _LENGTHS: said})
        each = ", ".join(f"{role} {length}" for role, length in said.items())
        log.info(
            "%s: plain sentence-transformers truncates all texts at %s tokens; metasearch: %s", folder, longest, each
        )
    return True


def _convert_pooling(path: Path) -> bool:
    settings = _read(path)
    if str(settings["pooling_mode"]) not in _POOLINGS:
        return False  # several, which older releases concatenate in an order of their own
    flags = {key: mode == settings["pooling_mode"] for mode, key in _POOLINGS.items()}
    prompt = settings["include_prompt"]
    _write(path, {"word_embedding_dimension": settings["embedding_dimension"], **flags, "include_prompt": prompt})
    return True


def _name_tokenizer(model: SentenceTransformer, path: Path) -> None:
    """Name a tokenizer that has only `tokenizer.json` as in transformers 4; transformers 5 knows both names.

    Transformers 4 passes all columns of the tokenizer to the network, so only columns that the network reads are kept.
    """
    if not path.is_file() or (settings := _read(path)).get("tokenizer_class") != "TokenizersBackend":
        return
    network = model[0].auto_model
    read = signature(getattr(network, "backbone", network).forward).parameters
    columns = [name for name in model.tokenizer.model_input_names if name in read]
    _write(path, {**settings, "tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": columns})


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
