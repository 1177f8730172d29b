"""Layouts for an encoder's texts that do not change any embedding."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from metasearch.encoders.encoder import Embedder, Encoder
from metasearch.encoders.input_module import InputModule, stock
from metasearch.encoders.probe import TOLERANCE, distance, probe_rows
from metasearch.errors import first_line
from metasearch.training.packing.attention import ATTENTION, packed, renumber

_TOKENS = 24
"""Tokens of the longer text of a probe, unless a sliding window is longer."""
_LIBRARIES = ("sentence_transformers", "metasearch", "torch")
_HIGHEST_PADDING = 1024
"""Every slice has all tokens up to the padding token, which keeps its number that way."""


@dataclass(frozen=True)
class PackingPlan:
    """How an encoder's texts can be laid out.

    Attributes:
        packs: whether texts can stand in one row without padding.
        table: index of the embedding matrix among the trainable weights; None if it cannot be sliced.
        first: position of a text's first token.
        padding: number of the padding token; -1 where there is none.
        notes: what cannot be done and why, a line each.
    """

    packs: bool
    table: int | None
    first: int = 0
    padding: int = 0
    notes: tuple[str, ...] = ()


def packing_plan(encoder: Encoder) -> PackingPlan:
    """Return how an encoder's texts can be laid out, decided by a probe: other vectors mean another layout."""
    if not isinstance(encoder.embedder, Embedder):
        note = "its network is not known: texts are padded, gradients are of all weights"
        return PackingPlan(False, None, notes=(note,))
    read = encoder.input
    training = encoder.embedder.training
    encoder.embedder.eval()
    try:
        unpacked, whole = _why_padded(encoder.embedder, read), _whole(encoder.embedder, read)
    finally:
        encoder.embedder.train(training)
    notes = []
    if unpacked:
        notes.append(f"{unpacked}: texts are padded, in groups of similar length")
    if whole:
        notes.append(f"{whole}: gradients are of all its rows")
    trained = [weight for weight in encoder.embedder.parameters() if weight.requires_grad]
    # By identity: `list.index` would compare tensors element by element.
    table = next((i for i, weight in enumerate(trained) if weight is getattr(read.words, "weight", None)), None)
    return PackingPlan(not unpacked, None if whole else table, read.first_position, read.padding, tuple(notes))


def _why_padded(embedder: Embedder, read: InputModule) -> str | None:
    """Return why two texts cannot be packed in one row; None where they have the vectors of padded ones.

    Tokens may meet in attention alone, and only in attention that can be exchanged. A sliding window shows in texts
    that are longer.
    """
    device = next(embedder.parameters()).device
    columns, rows = probe_rows(read, max(_TOKENS, read.window + 8))
    expected = _vectors(embedder, read.padded(columns, rows), device)
    features = packed(rows, columns, read.first_position, read.padding, device.type != "cpu")
    before = read.attend_with(ATTENTION)
    try:
        found = _vectors(embedder, features, device)
    except Exception as error:  # modules that know texts side by side alone raise anything
        return f"'{read.kind}' cannot read packed texts ({first_line(error)})"
    finally:
        read.attend_with(before)
    return None if distance(found, expected) <= TOLERANCE else f"packed texts change the vectors of '{read.kind}'"


def _vectors(embedder: Embedder, features: Mapping[str, Any], device: torch.device) -> Tensor:
    moved = {name: value.to(device) if isinstance(value, Tensor) else value for name, value in features.items()}
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        vectors: Tensor = embedder(moved, "pooled")
    return vectors


def _whole(embedder: Embedder, read: InputModule) -> str | None:
    """Return why a trainable word table cannot be sliced; None where it can, or where it is frozen."""
    words, padding = read.words, read.padding
    if not isinstance(words, nn.Embedding | nn.EmbeddingBag):
        return f"the word table is a {type(words).__name__}"
    if words.max_norm or words.scale_grad_by_freq or words.sparse:
        return "the word table has rules of its own for gradients or norms"
    # Tied weights have several names, of which `named_parameters` gives one unless it is told otherwise.
    names = [n for n, w in embedder.named_parameters(remove_duplicate=False) if w is words.weight]
    if not names:
        return "the word table is computed from other weights"
    if len(names) > 1:
        return f"the word table is tied to {names[-1]}"
    if padding > _HIGHEST_PADDING:
        return f"the padding token has the number {padding}, above {_HIGHEST_PADDING}"
    return _why_numbered(embedder, read, names[0])


def _why_numbered(embedder: Embedder, read: InputModule, table: str) -> str | None:
    """Return why the numbers of words matter beside the word table; None where they look words up and no more.

    Two texts show only the words in them, so code that came with a checkpoint and further tables are ruled out first.
    """
    modules = list(embedder.model)
    custom = [each for each in modules[1:] if not any(stock(each, library) for library in _LIBRARIES)]
    if custom or not read.is_stock:
        return f"module {type((custom or modules)[0]).__name__} may read the numbers of words"
    size = len(read.words.weight)
    if other := next((n for n, w in embedder.named_parameters() if w.shape[:1] == (size,) and n != table), None):
        return f"words have rows in {other}, too"
    columns, rows = probe_rows(read, _TOKENS)
    features = read.padded(columns, rows)
    device = read.words.weight.device
    expected = _vectors(embedder, features, device)
    sliced = {table: read.words.weight[renumber([features], read.padding).to(device)]}
    moved = {name: value.to(device) for name, value in features.items()}
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        found = functional_call(embedder, sliced, (moved, "pooled"))
    return None if distance(found, expected) <= TOLERANCE else f"'{read.kind}' reads the numbers of words"
