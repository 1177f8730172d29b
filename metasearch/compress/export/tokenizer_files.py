"""An encoder's tokenizer as files for programs without transformers, with its lengths and padding."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import is_static
from metasearch.errors import EncoderError

TOKENIZER = "tokenizer.json"
_CONFIG = "tokenizer_config.json"


def write_tokenizer(encoder: Encoder, folder: Path, longest: int) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json`: texts are cut at `longest` tokens, and padded in a batch.

    Raises:
        EncoderError: the tokenizer is written in Python; these files are of one in Rust.
    """
    if is_static(encoder.model):
        _write_static(encoder, folder, longest)
        return
    tokenizer = encoder.model.tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise EncoderError(
            f"{encoder.name}: its tokenizer is written in Python; ONNX needs a fast tokenizer (tokenizer.json)"
        )
    tokenizer.save_pretrained(folder)
    made = Tokenizer.from_str(backend.to_str())
    made.enable_truncation(longest, direction=tokenizer.truncation_side)
    made.enable_padding(
        direction=tokenizer.padding_side,
        pad_id=tokenizer.pad_token_id,
        pad_type_id=tokenizer.pad_token_type_id,
        pad_token=tokenizer.pad_token,
    )
    made.save(str(folder / TOKENIZER))
    _set(folder / _CONFIG, {"model_max_length": longest})


def _write_static(encoder: Encoder, folder: Path, longest: int) -> None:
    """Write a static encoder's tokenizer, without special tokens and padding."""
    tree: dict[str, Any] = json.loads(encoder.model.tokenizer.to_str())
    side = (tree.get("truncation") or {}).get("direction", "Right").lower()
    made = Tokenizer.from_str(json.dumps({**tree, "post_processor": None, "truncation": None}))
    made.enable_truncation(longest, direction=side)
    first = made.id_to_token(0)
    made.enable_padding(pad_id=0, pad_token=first)
    made.save(str(folder / TOKENIZER))
    _set(
        folder / _CONFIG,
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": longest, "pad_token": first},
    )


def _set(path: Path, values: dict[str, Any]) -> None:
    """Set keys in a JSON file; new keys are added."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps({**before, **values}, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
