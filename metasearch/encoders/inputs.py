"""Kinds of input modules."""

from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from metasearch.encoders.input_module import InputModule
from metasearch.encoders.static import StaticInput
from metasearch.encoders.transformer import TransformerInput
from metasearch.errors import EncoderError


def input_of(model: SentenceTransformer) -> InputModule:
    """Return a model's input module; `EncoderError` if it cannot be trained."""
    first = model[0]
    if isinstance(first, StaticEmbedding):
        return StaticInput(first)
    if hasattr(first, "auto_model"):
        return TransformerInput(first)
    raise EncoderError(f"its first module is {type(first).__name__}; expected a transformer or StaticEmbedding")


def is_static(model: SentenceTransformer) -> bool:
    """Return whether a model's embeddings are means of word embeddings."""
    return isinstance(input_of(model), StaticInput)


def transformer_of(model: SentenceTransformer) -> Any:
    """Return the transformer of a model, as transformers made it; `EncoderError` for a static encoder."""
    if is_static(model):
        raise EncoderError(
            "a static encoder has no transformer to compress or change; use the encoder that it was made from"
        )
    return model[0].auto_model
