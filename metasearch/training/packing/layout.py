"""Lays texts out without waste: packed where the backbone allows it, else padded in groups of similar length.

Token ids are renumbered within the slice of the embedding matrix that the texts use, so that the gradient of the matrix
has as many rows as the texts have different tokens. None of this changes a vector.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metasearch.config.recipe import Role
from metasearch.encoders.encoder import Embedder, Encoder
from metasearch.training.packing.attention import packed, renumber
from metasearch.training.packing.plan import PackingPlan

Group = Sequence[tuple[Role, str]]
"""Texts that are encoded together, each with its role."""

_CALL = 64
"""Cost of one more forward pass, in tokens."""


@dataclass(frozen=True)
class PackedTexts:
    """Texts as features.

    Attributes:
        parts: features of each forward pass.
        order: row of each text among the rows of all passes, `(texts,)`.
        tokens: number of tokens, with padding.
    """

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
    """Return token rows `(N,)`, text after text, in another text order.

    Args:
        place: number of the place at which each text stands, in the order that is wanted, `(texts,)`.
        lengths: tokens of the text at each place, `(texts,)`.
    """
    ends = lengths.cumsum()
    return torch.from_numpy(np.concatenate([np.arange(ends[i] - lengths[i], ends[i]) for i in place]))


def lay_out(
    encoder: Encoder, plan: PackingPlan, groups: Sequence[Group], most: int | None = None
) -> tuple[list[PackedTexts], Tensor | None]:
    """Lay out groups of texts on one slice of the embedding matrix; see `PackedBatch`.

    With `most`, a pass has at most about so many tokens, unless a text has more.

    Returns:
        The texts of each group, and the rows of the embedding matrix in the slice, ascending; None for all rows.
    """
    if not isinstance(encoder.embedder, Embedder):
        return [_padded_by_role(encoder, group) for group in groups], None
    tokens = _tokens(encoder, groups)
    batches = [_batches(encoder, plan, [tokens[text] for text in group], most) for group in groups]
    sliced = None
    if plan.table is not None:
        # One slice for all groups, so that their gradients can be summed row by row.
        sliced = renumber([part for parts, _ in batches for part in parts], plan.padding)
    texts = [_texts(parts, order, encoder.device) for parts, order in batches]
    return texts, None if sliced is None else sliced.to(encoder.device)


def _tokens(encoder: Encoder, groups: Sequence[Group]) -> dict[tuple[Role, str], NDArray[np.int32]]:
    """Return the tokens of all texts; texts with one role are tokenised together."""
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
    parts = [part for run in runs for part in groups_of(run, lengths)]
    return [encoder.padded([rows[i] for i in part]) for part in parts], order


def runs_of(order: Sequence[int], lengths: Sequence[int], most: int) -> list[Sequence[int]]:
    """Cut texts into runs with up to `most` tokens; a longer text is a run of its own."""
    runs: list[list[int]] = []
    left = 0
    for i in order:
        if not runs or lengths[i] > left:
            runs.append([])
            left = most
        runs[-1].append(i)
        left -= lengths[i]
    return list(runs)


def groups_of(order: Sequence[int], lengths: Sequence[int], call: int = _CALL) -> list[Sequence[int]]:
    """Cut texts, in `order` of ascending length, into groups that minimise the cost of padding and calls."""
    if not order:
        return []
    # A border between texts of equal length would save nothing.
    borders = [0, *(i for i in range(1, len(order)) if lengths[order[i]] > lengths[order[i - 1]]), len(order)]
    # Dynamic programming: `cost[i]` is the least for the texts before `borders[i]`, with a last group from
    # `borders[cut[i]]` on.
    cost, cut = [0], [0]
    for i, end in enumerate(borders[1:], start=1):
        # Lengths ascend, so the last text of a group is what the others are padded to.
        longest = lengths[order[end - 1]]
        least = min((cost[j] + (end - borders[j]) * longest + call, j) for j in range(i))
        cost.append(least[0])
        cut.append(least[1])
    groups, last = [], len(borders) - 1
    while last:
        groups.append(order[borders[cut[last]] : borders[last]])
        last = cut[last]
    return groups[::-1]


def _texts(parts: Sequence[Mapping[str, Any]], order: Sequence[int], device: torch.device) -> PackedTexts:
    place = torch.tensor(order, dtype=torch.long).argsort()  # the inverse of the order
    moved = tuple(
        {name: value.to(device) if isinstance(value, Tensor) else value for name, value in part.items()}
        for part in parts
    )
    return PackedTexts(moved, place.to(device), sum(part["input_ids"].numel() for part in parts))


def _lengths(part: Mapping[str, Any]) -> Tensor:
    """Return token counts for the texts in a pass, without padding."""
    if "cu_seq_lens_q" in part:
        lengths: Tensor = part["cu_seq_lens_q"].diff()
        return lengths
    return part["attention_mask"].bool().sum(1)  # type: ignore[no-any-return]


def _padded_by_role(encoder: Encoder, group: Group) -> PackedTexts:
    """Return texts as the encoder itself pads them, one pass for each role."""
    roles = list(dict.fromkeys(role for role, _ in group))
    order = [i for role in roles for i, (own, _) in enumerate(group) if own == role]
    parts = [encoder.features([text for own, text in group if own == role], role) for role in roles]
    return _texts(parts, order, encoder.device)
