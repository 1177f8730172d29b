"""A hash of everything that affects an encoder's embeddings."""

import hashlib
import json
from typing import Any

from sentence_transformers import SentenceTransformer

from metasearch.encoders.inputs import input_of
from metasearch.encoders.prompts import written_out

# What changes no vector: where and with which release a checkpoint was saved; how texts were cut and padded last, which
# a tokenizer remembers; and the lengths that a model was saved with, as an encoder cuts texts at lengths of its own.
_IGNORED = (
    "_name_or_path", "transformers_version", "dtype", "architectures", "truncation", "padding",
    "max_seq_length", "query_length", "document_length", "processing_kwargs",
)  # fmt: skip


def fingerprint(model: SentenceTransformer) -> str:
    """Return 16 hexadecimal digits that change with weights, architecture, tokenizer, pooling or prompts."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        # Equal bytes in another shape or type are other weights.
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    read = input_of(model)
    digest.update(settings_text(read.settings).encode())
    for module in model:
        settings = module.get_config_dict() if hasattr(module, "get_config_dict") else {}
        if "include_prompt" in settings:
            settings["include_prompt"] = True  # an encoder has no prompts where they are not to be pooled
        digest.update((type(module).__name__ + settings_text(settings)).encode())
    digest.update(settings_text(read.vocabulary).encode())
    digest.update(settings_text(written_out(model)).encode())
    if model.default_prompt_name is not None:
        digest.update(model.default_prompt_name.encode())
    return digest.hexdigest()[:16]


def tokenizer_fingerprint(model: SentenceTransformer) -> str:
    """Return 16 hexadecimal digits that change with the tokenizer; where it cuts texts, and prompts, are not in it."""
    return hashlib.sha256(settings_text(input_of(model).vocabulary).encode()).hexdigest()[:16]


def settings_text(settings: dict[str, Any]) -> str:
    """Return settings as JSON, without those that change no vector."""
    relevant = {key: value for key, value in settings.items() if key not in _IGNORED}
    return json.dumps(relevant, sort_keys=True, default=str)
