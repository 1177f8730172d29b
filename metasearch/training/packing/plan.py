"""How the texts of an encoder can be laid out, by the parts of its network."""

from dataclasses import dataclass

from sentence_transformers.sentence_transformer.modules import Dense, Dropout, LayerNorm, Normalize, Pooling
from torch import nn

from metasearch.encoders.encoder import Embedder, Encoder
from metasearch.encoders.input_module import InputModule

# Pooling handles packed texts, and the others treat each vector alone.
_HEADS = (Pooling, Normalize, Dense, LayerNorm, Dropout)
_HIGHEST_PADDING = 1024
"""Every slice has all tokens up to the padding token, which keeps its number that way."""


@dataclass(frozen=True)
class PackingPlan:
    """How an encoder's texts can be laid out.

    Attributes:
        packs: whether texts can stand in one row without padding.
        table: index of the embedding matrix among the trainable weights; None if it cannot be sliced.
        kind: `model_type` of the backbone, or `static`.
        padding: number of the padding token; -1 where there is none.
        notes: what cannot be done and why, a line each.
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
    read = encoder.input
    notes = []
    if unpacked := read.why_padded or _apart(encoder):
        notes.append(f"{unpacked}: texts are padded, in groups of similar length")
    whole = _whole(encoder, read)
    if whole:
        notes.append(f"{whole}: gradients are of all its rows")
    trained = [weight for weight in encoder.embedder.parameters() if weight.requires_grad]
    # By identity: `list.index` would compare tensors element by element.
    table = next((i for i, weight in enumerate(trained) if weight is getattr(read.words, "weight", None)), None)
    return PackingPlan(not unpacked, None if whole else table, read.kind, read.padding, tuple(notes))


def _apart(encoder: Encoder) -> str | None:
    """Return why texts must stand side by side for the modules behind the first; None where they need not."""
    heads = list(encoder.model)[1:]
    if other := next((head for head in heads if not isinstance(head, _HEADS)), None):
        return f"module {type(other).__name__} needs texts side by side"
    return None


def _whole(encoder: Encoder, read: InputModule) -> str | None:
    """Return why a trainable word table cannot be sliced; None where it can, or where it is frozen."""
    if not read.looks_up_only:
        return f"what '{read.kind}' does with its word table is not known"
    words, padding = read.words, read.padding
    if not isinstance(words, nn.Embedding | nn.EmbeddingBag):
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
