"""Lays texts out without waste: packed where the backbone allows it, else padded in groups of similar length.

All tokens of packed texts stand in one row. Everything but attention treats tokens one by one. Texts of equal length
stand next to each other, and attention runs over each such run at once: `(count, heads, length, d)`, a view of the row.

Token ids are renumbered within the slice of the embedding matrix that the texts use, so that the gradient of the matrix
has as many rows as the texts have different tokens. None of this changes a vector.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F
from transformers import AttentionInterface

from metasearch.config.recipe import Role
from metasearch.encoders.checks import TOLERANCE, distance, probe_rows
from metasearch.encoders.encoder import Embedder, Encoder
from metasearch.encoders.features import stock
from metasearch.encoders.inputs import InputModule
from metasearch.encoders.lengths import UNLIMITED
from metasearch.errors import first_line

ATTENTION = "metasearch-packed"
"""Name of the attention for packed texts; it is not the model's own, and never set in a model that is saved."""

Spans = tuple[tuple[int, int], ...]
"""Runs of equally long texts, as (how many, how long)."""


def packed(
    rows: Sequence[NDArray[np.int32]], columns: Sequence[str], first: int, padding: int, at_once: bool = False
) -> dict[str, Any]:
    """Return texts `(columns, length)` as features in one row `(1, N)`, in order.

    `first` is the position of a text's first token, `padding` the number of the padding token. `at_once` attends to all
    texts in one call, which suits a GPU.
    """
    lengths = [row.shape[1] for row in rows]
    tokens = np.concatenate(rows, axis=1).astype(np.int64)
    features: dict[str, Any] = {
        name: torch.from_numpy(tokens[i : i + 1]) for i, name in enumerate(columns) if name != "attention_mask"
    }
    positions = [_positions(row[columns.index("input_ids")], first, padding) for row in rows]
    features["position_ids"] = torch.from_numpy(np.concatenate(positions)[None])
    # The names by which the pooling of sentence-transformers knows packed texts.
    features["cu_seq_lens_q"] = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)]))
    features["seq_idx"] = torch.from_numpy(np.repeat(np.arange(len(lengths)), lengths)[None])
    features["spans"] = tuple((len(list(run)), length) for length, run in groupby(lengths) if length)
    if at_once:
        inside = np.arange(max(lengths)) < np.array(lengths)[:, None]
        features["inside"] = torch.from_numpy(inside)
        # `flatnonzero` goes row by row, as the tokens stand in the packed row: the n-th place is that of token n.
        features["place"] = torch.from_numpy(np.flatnonzero(inside))
    return features


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    spans: Spans = (),
    inside: Tensor | None = None,
    place: Tensor | None = None,
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attend within each text; an attention function for transformers.

    Query, key and value are `(1, heads, N, d)`; returns `(1, N, heads, d)`, and None for the attention weights. On a
    CPU it computes in float32 under autocast, as bfloat16 attention is slower there. transformers passes on the
    features of `packed`: `spans`, or to attend to all texts at once `inside`, a mask of tokens side by side `(texts,
    longest)`, and `place`, the number of each token there `(N,)`. With a `sliding_window`, tokens see only nearer
    tokens.
    """
    qkv = (query, key, value)
    inner = partial(F.scaled_dot_product_attention, dropout_p=dropout, scale=scaling)
    if inside is not None and place is not None:
        return _at_once(inner, qkv, inside, place, sliding_window), None
    if torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            output = _in_runs(inner, [tensor.float() for tensor in qkv], spans, sliding_window)
        return output.to(query.dtype), None
    return _in_runs(inner, qkv, spans, sliding_window), None


def _in_runs(inner: Callable[..., Tensor], qkv: Sequence[Tensor], spans: Spans, window: int | None) -> Tensor:
    """Attend in one call per run of texts with equal length; only results are copied."""
    sizes = [count * length for count, length in spans]
    outputs = []
    parts = [torch.split(tensor[0], sizes, dim=1) for tensor in qkv]
    for (count, length), *run in zip(spans, *parts, strict=True):
        # (heads, count · length, d) → (count, heads, length, d)
        q, k, v = (tensor.unflatten(1, (count, length)).transpose(0, 1) for tensor in run)
        out = inner(q, k, v, _near(length, window, q.device))
        # (count, heads, length, d) → (count · length, heads, d)
        outputs.append(out.transpose(1, 2).flatten(0, 1))
    return torch.cat(outputs)[None]


def _at_once(
    inner: Callable[..., Tensor], qkv: Sequence[Tensor], inside: Tensor, place: Tensor, window: int | None
) -> Tensor:
    """Attend in one call for all texts, put side by side for as long as it takes."""
    # Zeros, not empty memory: a NaN in a masked value would come through the product with its weight 0.
    # `shape[1::2]` is (heads, d).
    rows = [
        tensor.new_zeros(inside.numel(), *tensor.shape[1::2]).index_copy(0, place, tensor[0].transpose(0, 1))
        for tensor in qkv
    ]
    q, k, v = (tensor.view(*inside.shape, *tensor.shape[1:]).transpose(1, 2) for tensor in rows)
    near, seen = _near(inside.shape[1], window, inside.device), inside[:, None, None]
    out = inner(q, k, v, seen if near is None else seen & near)
    return out.transpose(1, 2).flatten(0, 1)[place][None]


def _near(length: int, window: int | None, device: torch.device) -> Tensor | None:
    """Return which tokens of a text see each other `(length, length)`; None for all."""
    if window is None or length <= window:
        return None
    places = torch.arange(length, device=device)
    return (places[:, None] - places).abs() < window


def renumber(parts: Sequence[dict[str, Any]], padding: int) -> Tensor:
    """Renumber token ids in all parts to a slice from the embedding matrix, in place; return the slice's rows."""
    words = torch.cat([part["input_ids"].flatten().cpu() for part in parts])
    # Words up to the padding token are always in: it keeps its number, which `padding_idx` and positions depend on.
    rows: Tensor = torch.unique(torch.cat([torch.arange(padding + 1), words]))
    for part in parts:
        # `rows` is sorted and has every word, so the place to insert a word is its index.
        part["input_ids"] = torch.searchsorted(rows, part["input_ids"].cpu())
    return rows


def _positions(ids: NDArray[np.int32], first: int, padding: int) -> NDArray[np.int64]:
    """Return a text's position ids, as its backbone computes them by default."""
    if first == 0:
        return np.arange(len(ids))
    # RoBERTa and its relatives: a padding token within a text stays at the padding index.
    words = ids != padding
    counted: NDArray[np.int64] = np.cumsum(words, dtype=np.int64) * words + first - 1
    return counted


AttentionInterface.register(ATTENTION, attend)


_TOKENS = 24
"""Tokens in a probe's longer text, unless a sliding window is longer."""
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
        padding: number of the padding token; -1 without one.
        notes: limits with reasons, a line each.
    """

    packs: bool
    table: int | None
    first: int = 0
    padding: int = 0
    notes: tuple[str, ...] = ()


def packing_plan(encoder: Encoder) -> PackingPlan:
    """Return how an encoder's texts can be laid out, decided by a probe: other vectors mean another layout."""
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
        vectors: Tensor = functional_call(embedder, dict(weights or {}), (_moved(features, device), "pooled"))
    return vectors


def _whole(embedder: Embedder, read: InputModule) -> str | None:
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


def _why_numbered(embedder: Embedder, read: InputModule, table: str) -> str | None:
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


Group = Sequence[tuple[Role, str]]
"""Texts that are encoded together, each with its role."""

_BUCKET = 16
"""Padded texts share a pass where their lengths lie between the same multiples of this."""


@dataclass(frozen=True)
class PackedTexts:
    """Texts as features for each forward pass, each text's row among all passes, and tokens with padding."""

    parts: tuple[Mapping[str, Any], ...]
    order: Tensor
    tokens: int

    def in_order(self, rows: Tensor, by_token: bool) -> Tensor:
        """Return the rows from all passes, per text or per token, in text order."""
        if not by_token:
            return rows[self.order]
        lengths = torch.cat([_lengths(part) for part in self.parts])
        return rows[token_rows(self.order.cpu().numpy(), lengths.cpu().numpy()).to(rows.device)]


def token_rows(place: NDArray[np.int64], lengths: NDArray[np.int64]) -> Tensor:
    """Return token rows `(N,)` for texts in the order `place` `(texts,)`, from their lengths."""
    ends = lengths.cumsum()
    return torch.from_numpy(np.concatenate([np.arange(ends[i] - lengths[i], ends[i]) for i in place]))


def lay_out(
    encoder: Encoder, plan: PackingPlan, groups: Sequence[Group], most: int | None = None
) -> tuple[list[PackedTexts], Tensor | None]:
    """Lay out text groups on one slice of the embedding matrix; see `PackedBatch`.

    With `most`, a pass has at most about so many tokens. Also returns the rows of the embedding matrix in the slice,
    ascending; None for all rows.
    """
    tokens = _tokens(encoder, groups)
    batches = [_batches(encoder, plan, [tokens[text] for text in group], most) for group in groups]
    sliced = None
    if plan.table is not None:
        # One slice for all groups, so that their gradients can be summed row by row.
        sliced = renumber([part for parts, _ in batches for part in parts], plan.padding)
    texts = [_texts(parts, order, encoder.device) for parts, order in batches]
    return texts, None if sliced is None else sliced.to(encoder.device)


def _tokens(encoder: Encoder, groups: Sequence[Group]) -> dict[tuple[Role, str], NDArray[np.int32]]:
    """Return tokens for all texts; texts with one role are tokenised together."""
    tokens = {}
    # In a fixed order: a tokenizer keeps, and saves, the length at which it last cut a text.
    for role in dict.fromkeys(role for group in groups for role, _ in group):
        texts = list(dict.fromkeys(text for group in groups for own, text in group if own == role))
        tokens.update({(role, text): row for text, row in zip(texts, encoder.tokens(texts, role), strict=True)})
    return tokens


def _batches(
    encoder: Encoder, plan: PackingPlan, rows: list[NDArray[np.int32]], most: int | None
) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the features for each pass, and its texts in order."""
    lengths = [row.shape[1] for row in rows]
    # By length, so that texts of equal length are one run of attention, or padded together without loss.
    order = sorted(range(len(rows)), key=lambda i: lengths[i])
    runs = [order] if most is None else runs_of(order, lengths, most)
    if plan.packs:
        at_once, columns = encoder.device.type != "cpu", encoder.columns
        return [packed([rows[i] for i in run], columns, plan.first, plan.padding, at_once) for run in runs], order
    parts = [list(part) for run in runs for _, part in groupby(run, key=lambda i: lengths[i] // _BUCKET)]
    return [encoder.padded([rows[i] for i in part]) for part in parts], order


def runs_of(order: Sequence[int], lengths: Sequence[int], most: int) -> list[Sequence[int]]:
    """Cut texts into runs with up to `most` tokens; a longer text is a separate run."""
    runs: list[list[int]] = []
    left = 0
    for i in order:
        if not runs or lengths[i] > left:
            runs.append([])
            left = most
        runs[-1].append(i)
        left -= lengths[i]
    return list(runs)


def _texts(parts: Sequence[Mapping[str, Any]], order: Sequence[int], device: torch.device) -> PackedTexts:
    place = torch.tensor(order, dtype=torch.long).argsort()  # the inverse of the order
    moved = tuple(_moved(part, device) for part in parts)
    return PackedTexts(moved, place.to(device), sum(part["input_ids"].numel() for part in parts))


def _moved(features: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    return {name: value.to(device) if isinstance(value, Tensor) else value for name, value in features.items()}


def _lengths(part: Mapping[str, Any]) -> Tensor:
    """Return token counts for the texts in a pass, without padding."""
    if "cu_seq_lens_q" in part:
        lengths: Tensor = part["cu_seq_lens_q"].diff()
        return lengths
    return part["attention_mask"].bool().sum(1)  # type: ignore[no-any-return]
