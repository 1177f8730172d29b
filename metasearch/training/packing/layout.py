"""Lays texts out without waste: packed where the backbone allows it, else padded in groups of similar length.

All tokens of packed texts stand in one row. Everything but attention treats tokens one by one. Texts of equal length
stand next to each other, and attention runs over each such run at once: `(count, heads, length, d)`, a view of the row.

Token ids are renumbered within the slice of the embedding matrix that the texts use, so that the gradient of the matrix
has as many rows as the texts have different tokens. None of this changes a vector.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metasearch.algorithms.sets import numbered
from metasearch.config.roles import Role
from metasearch.encoders.adapted import ADAPTED, COORDINATES, KEPT, AdaptedEncoder
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.packed import packed


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


def lay_out_vectors(encoder: AdaptedEncoder, groups: Sequence[Group]) -> tuple[list[PackedTexts], Tensor | None]:
    """Return text groups as vectors of the frozen encoder, for the adapter or past it, and a basis.

    An adapter A = I + Δ acts on the questions of a meta-batch only through their span. With m orthonormal rows B of it,
    every question is q = Bᵀ c, and A q = q + (Δ Bᵀ) c. So the slice Δ Bᵀ `(D, m)` takes the place of Δ `(D, D)`:
    gradient descent on the slice is that on Δ, as its gradient is G Bᵀ for the gradient G of Δ, G = (G Bᵀ) B, and
    ‖G Bᵀ‖ = ‖G‖. The basis B `(m, D)` is None where slicing would save nothing.
    """
    every = list(numbered(text for group in groups for text in group))
    # Those that are adapted come first, role by role.
    roles = sorted(numbered(role for role, _ in every), key=lambda role: role not in encoder.roles)
    by_role = {role: [text for own, text in every if own == role] for role in roles}
    vectors = torch.cat([encoder.frozen(own, role) for role, own in by_role.items()])
    row = numbered((role, text) for role, own in by_role.items() for text in own)
    count = sum(len(own) for role, own in by_role.items() if role in encoder.roles)
    basis, coordinates = None, vectors.new_zeros(count, 0)
    if isinstance(encoder.adapter, MatrixAdapter) and 0 < count < encoder.dimension():
        orthonormal, found = torch.linalg.qr(vectors[:count].T)
        basis, coordinates = orthonormal.T, found.T
    texts = []
    for group in groups:
        places = [row[text] for text in group]
        order = sorted(range(len(group)), key=lambda i: places[i] >= count)
        first = sum(place < count for place in places)
        rows, back = torch.tensor([[places[i] for i in order], order], device=encoder.device)
        adapted, kept = rows[:first], rows[first:]
        features = {ADAPTED: vectors[adapted], COORDINATES: coordinates[adapted], KEPT: vectors[kept]}
        texts.append(PackedTexts((features,), back.argsort(), len(group)))
    return texts, basis


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
    moved = tuple(on_device(part, device) for part in parts)
    return PackedTexts(moved, place.to(device), sum(part["input_ids"].numel() for part in parts))


def on_device(features: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """Return features on a device."""
    return {name: value.to(device) if isinstance(value, Tensor) else value for name, value in features.items()}


def _lengths(part: Mapping[str, Any]) -> Tensor:
    """Return token counts for the texts in a pass, without padding."""
    if "cu_seq_lens_q" in part:
        lengths: Tensor = part["cu_seq_lens_q"].diff()
        return lengths
    return part["attention_mask"].bool().sum(1)  # type: ignore[no-any-return]


def renumber(parts: Sequence[dict[str, Any]], padding: int) -> Tensor:
    """Renumber token ids in all parts to a slice from the embedding matrix, in place; return the slice's rows."""
    words = torch.cat([part["input_ids"].flatten().cpu() for part in parts])
    # Words up to the padding token are always in: it keeps its number, which `padding_idx` and positions depend on.
    rows: Tensor = torch.unique(torch.cat([torch.arange(padding + 1), words]))
    for part in parts:
        # `rows` is sorted and has every word, so the place to insert a word is its index.
        part["input_ids"] = torch.searchsorted(rows, part["input_ids"].cpu())
    return rows
