"""Decides by a probe how an encoder's texts can be laid out."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from metasearch.encoders.checks import TOLERANCE, distance
from metasearch.encoders.encoder import Embedder, Encoder
from metasearch.encoders.features import stock
from metasearch.encoders.inputs import TransformerInput
from metasearch.encoders.lengths import UNLIMITED
from metasearch.encoders.packed import packed
from metasearch.encoders.packed_attention import ATTENTION
from metasearch.encoders.probe import probe_rows
from metasearch.errors import first_line
from metasearch.training.packing.layout import PackingPlan, on_device, renumber

_TOKENS = 24
"""Tokens in a probe's longer text, unless a sliding window is longer."""
_LIBRARIES = ("sentence_transformers", "metasearch", "torch")
_HIGHEST_PADDING = 1024
"""Every slice has all tokens up to the padding token, which keeps its number that way."""


def packing_plan(encoder: Encoder) -> PackingPlan:
    """Return how an encoder's texts can be laid out, decided by a probe: other vectors mean another layout."""
    if encoder.adapter is not None:  # it reads vectors
        return PackingPlan(packs=False, table=None)
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


def _why_padded(embedder: Embedder, read: TransformerInput) -> str | None:
    """Return why two texts cannot be packed in one row; None if their vectors are those for padded ones.

    A sliding window shows in texts that are longer.
    """
    columns, rows = probe_rows(read, max(_TOKENS, read.window + 8))
    expected = _vectors(embedder, read.padded(columns, rows))
    at_once = next(embedder.parameters()).device.type != "cpu"

    def in_one_row(rows: Sequence[NDArray[np.int32]]) -> dict[str, Any]:
        return packed(rows, columns, read.first_position, read.padding, at_once)

    before = read.attend_with(ATTENTION)
    try:
        if distance(_vectors(embedder, in_one_row(rows)), expected) > TOLERANCE:
            return f"packed texts change the vectors of '{read.kind}'"
        if read.longest < UNLIMITED:
            _embed(embedder, in_one_row(rows * (1 + read.longest // rows[1].shape[1])))
    except Exception as error:  # modules that know texts side by side alone raise anything
        return f"'{read.kind}' cannot read packed texts ({first_line(error)})"
    finally:
        read.attend_with(before)
    return None


class _Embedded(Exception):
    """Ends a forward pass before the first layer."""


def _embed(embedder: Embedder, features: Mapping[str, Any]) -> None:
    """Run the embedding block alone on a row with more tokens than a text may have, which some networks refuse."""

    def end(*_: Any) -> None:
        raise _Embedded

    lists = (module for module in embedder.model[0].modules() if isinstance(module, nn.ModuleList) and len(module))
    hooks = [layers[0].register_forward_pre_hook(end) for layers in lists]
    try:
        with suppress(_Embedded):
            _vectors(embedder, features)
    finally:
        for hook in hooks:
            hook.remove()


def _vectors(embedder: Embedder, features: Mapping[str, Any], weights: Mapping[str, Tensor] | None = None) -> Tensor:
    """Return the pooled vectors, with other `weights` by name."""
    device = next(embedder.parameters()).device
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        vectors: Tensor = functional_call(embedder, dict(weights or {}), (on_device(features, device), "pooled"))
    return vectors


def _whole(embedder: Embedder, read: TransformerInput) -> str | None:
    """Return why a trainable word table cannot be sliced; None where it can, or where it is frozen."""
    words, padding = read.words, read.padding
    if not isinstance(words, nn.Embedding | nn.EmbeddingBag):
        return f"the word table is a {type(words).__name__}"
    if words.max_norm or words.scale_grad_by_freq or words.sparse:
        return "the word table has rules of its own for gradients or norms"
    # Tied weights have several names, of which `named_parameters` gives one by default.
    names = [n for n, w in embedder.named_parameters(remove_duplicate=False) if w is words.weight]
    if not names:
        return "the word table is computed from other weights"
    if len(names) > 1:
        return f"the word table is tied to {names[-1]}"
    if padding > _HIGHEST_PADDING:
        return f"the padding token has the number {padding}, above {_HIGHEST_PADDING}"
    return _why_numbered(embedder, read, names[0])


def _why_numbered(embedder: Embedder, read: TransformerInput, table: str) -> str | None:
    """Return why the numbers of words matter beside the word table; None if they only look words up.

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
    features, words = read.padded(columns, rows), read.words.weight
    expected = _vectors(embedder, features)
    found = _vectors(embedder, features, {table: words[renumber([features], read.padding).to(words.device)]})
    return None if distance(found, expected) <= TOLERANCE else f"'{read.kind}' reads the numbers of words"
