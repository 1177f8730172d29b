"""How the texts of an encoder can be laid out, by the parts of its network."""

from dataclasses import dataclass
from typing import Any

from sentence_transformers.sentence_transformer.modules import Dense, Dropout, LayerNorm, Normalize, Pooling
from torch import nn

from metasearch.encoders.encoder import Embedder, Encoder
from metasearch.fast.packing import FAMILIES

_SLICED = (*FAMILIES, "mpnet")
"""Backbones that use their word table to look words up and for nothing else."""
# Pooling knows packed texts, and the others treat each vector alone.
_HEADS = (Pooling, Normalize, Dense, LayerNorm, Dropout)
_HIGHEST_PADDING = 1024
"""All words up to the one for padding are in every slice, so that it keeps its number."""


@dataclass(frozen=True)
class PackingPlan:
    """How an encoder's texts can be laid out.

    Attributes:
        packs: whether texts can stand in one row without padding.
        table: index of the word table among the trainable weights, where it can be sliced; None where it stays whole.
        kind: `model_type` of the backbone.
        padding: number of the padding token.
        notes: what cannot be done and why, one line each.
    """

    packs: bool
    table: int | None
    kind: str = ""
    padding: int = 0
    notes: tuple[str, ...] = ()


def packing_plan(encoder: Encoder) -> PackingPlan:
    """Return how an encoder's texts can be laid out."""
    if not isinstance(encoder.embedder, Embedder):
        note = "its network is not known: texts are padded, gradients are of all weights"
        return PackingPlan(False, None, notes=(note,))
    backbone, words = backbone_of(encoder.embedder), _words(encoder)
    kind, padding = backbone.config.model_type, getattr(words, "padding_idx", None)
    if padding is None:
        padding = encoder.model.tokenizer.pad_token_id or 0
    notes = []
    if unpacked := _unpacked(encoder, backbone):
        notes.append(f"{unpacked}: texts are padded, in groups of similar length")
    whole = _whole(encoder, backbone, words, padding)
    if whole:
        notes.append(f"{whole}: gradients are of all its rows")
    trained = [weight for weight in encoder.embedder.parameters() if weight.requires_grad]
    # By identity: `list.index` would compare tensors element by element.
    table = next((i for i, weight in enumerate(trained) if weight is getattr(words, "weight", None)), None)
    return PackingPlan(not unpacked, None if whole else table, kind, padding, tuple(notes))


def backbone_of(embedder: Embedder) -> Any:
    """Return the transformer within an encoder; of a compressed one, the one inside it."""
    model = embedder.model[0].auto_model
    return getattr(model, "backbone", model)


def _unpacked(encoder: Encoder, backbone: Any) -> str | None:
    """Return why tokens cannot stand in one row; None where they can."""
    kind = backbone.config.model_type
    # A model with code of its own may call itself `bert` and do something else.
    if kind not in FAMILIES or not type(backbone).__module__.startswith("transformers."):
        return f"attention of '{kind}' cannot run on packed texts"
    # `attend` has no causal mask.
    if getattr(backbone.config, "is_decoder", False):
        return f"'{kind}' is a decoder here"
    heads = list(encoder.model)[1:]
    if other := next((head for head in heads if not isinstance(head, _HEADS)), None):
        return f"module {type(other).__name__} needs texts side by side"
    return None


def _whole(encoder: Encoder, backbone: Any, words: Any, padding: int) -> str | None:
    """Return why a trainable word table cannot be sliced; None where it can, or where it is frozen."""
    kind = backbone.config.model_type
    if kind not in _SLICED or not type(backbone).__module__.startswith("transformers."):
        return f"what '{kind}' does with its word table is not known"
    if not isinstance(words, nn.Embedding):
        return f"the word table is a {type(words).__name__}"
    if words.max_norm or words.scale_grad_by_freq or words.sparse:
        return "the word table has rules of its own for gradients or norms"
    # Tied weights have several names, of which `named_parameters` gives one unless it is told otherwise.
    names = [n for n, w in encoder.embedder.named_parameters(remove_duplicate=False) if w is words.weight]
    if len(names) > 1:
        return f"the word table is tied to {names[-1]}"
    if padding > _HIGHEST_PADDING:
        return f"the padding token has the number {padding}, above {_HIGHEST_PADDING}"
    return None


def _words(encoder: Encoder) -> Any:
    """Return the word table; of a factorised one, the narrow factor."""
    words = encoder.model[0].auto_model.get_input_embeddings()
    return getattr(words, "table", words)
