"""What sentence-transformers does with a model and an encoder does not: it is refused, or changed with a line."""

import copy
import logging

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

from metasearch.errors import EncoderError

log = logging.getLogger(__name__)

_ALIKE = ("max_length", "padding", "return_tensors", "truncation")
"""Options of a tokenizer that change no vector: an encoder truncates and pads by itself."""


def require_alike(model: SentenceTransformer) -> None:
    """Raise `EncoderError` if sentence-transformers computes a model's embeddings in an unsupported way."""
    first = model[0]
    if getattr(getattr(first, "auto_model", None), "peft_config", None):
        raise EncoderError("its transformer has an unmerged PEFT adapter; merge it with peft's merge_and_unload")
    with model.truncate_embeddings(None):
        whole = model.get_embedding_dimension()
    if model.truncate_dim is not None and model.truncate_dim < whole:
        raise EncoderError(
            f"truncate_dim (first {model.truncate_dim} of {whole} dimensions) is not supported; remove it from "
            "config_sentence_transformers.json"
        )
    if "task" in model.get_model_kwargs():
        raise EncoderError("task-specific modules of sentence-transformers are not supported")
    if getattr(first, "query_expansion", None):
        raise EncoderError("query_expansion is not supported")
    if "message" in (getattr(first, "modality_config", None) or {}):
        raise EncoderError("chat templates are not supported")
    options = getattr(first, "processing_kwargs", None) or {}
    for name, value in {**options.get("text", {}), **options.get("common", {})}.items():
        if name not in _ALIKE or (name == "truncation" and not value):
            raise EncoderError(
                f"its tokenizer is called with {name}={value!r} (processing_kwargs), which is not supported"
            )


def pools_prompts(model: SentenceTransformer) -> bool:
    """Return whether prompt tokens are pooled like text tokens."""
    return all(getattr(module, "include_prompt", True) for module in model)


def normalised(model: SentenceTransformer, name: str) -> SentenceTransformer:
    """Return a model with the same modules that ends in unit vectors, compared by cosine.

    The model itself keeps its modules and settings. A line says so where it compared vectors otherwise.
    """
    unit = isinstance(model[-1], Normalize)
    model = copy.copy(model)
    model._modules = dict(model._modules)  # which a shallow copy shares
    # Of unit vectors the dot product is the cosine.
    if model.similarity_fn_name not in (("cosine", "dot") if unit else ("cosine",)):
        why = "" if unit else "vectors are normalised: "
        log.warning(
            "%s: %sits similarity '%s' becomes cosine, here and where it is saved", name, why, model.similarity_fn_name
        )
        model.similarity_fn_name = "cosine"
    if not unit:
        model.append(Normalize())
    return model
