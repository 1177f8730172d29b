"""Texts that bring their tokens with them, so that an encoder with the same tokenizer need not tokenise them again.

Such a text is one like any other, with a `shard` and a `row` beside its characters: see
`metasearch.data.prepared.shard.PreparedText`. Its tokens are taken where they are those that the encoder would make;
else, and for a text that was made of it, the characters are tokenised as ever.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Tokenizer(Protocol):
    """How texts were tokenised; see `metasearch.data.prepared.manifest.Tokens`."""

    @property
    def fingerprint(self) -> str:
        """Hash of the tokenizer."""

    @property
    def prompt(self) -> str:
        """What was put before each text."""

    @property
    def limit(self) -> int:
        """Tokens at which texts were cut."""

    @property
    def columns(self) -> Mapping[str, int | None]:
        """What there is for each token, and its value where that is the same for all; None for `input_ids`."""

    @property
    def after(self) -> int:
        """Special tokens at the end of a text; -1 where texts were cut on the left."""


def tokenizer_of(texts: Sequence[str]) -> Tokenizer | None:
    """Return how the first of some texts that brings its tokens was tokenised; None where none does."""
    brought = (getattr(text, "shard", None) for text in texts if type(text) is not str)
    return next((shard.tokenizer for shard in brought if shard is not None), None)


def tokens_of(texts: Sequence[str], tokenizer: Tokenizer, limit: int) -> dict[str, NDArray[np.int32]]:
    """Return the tokens `(columns, length)`, cut at a limit, of the texts that bring enough of those of a tokenizer."""
    by_shard: dict[int, tuple[Any, list[str]]] = {}
    for text in texts:
        shard: Any = getattr(text, "shard", None)
        if shard is not None and shard.tokenizer is tokenizer:
            by_shard.setdefault(shard.number, (shard, []))[1].append(text)
    found: dict[str, NDArray[np.int32]] = {}
    for shard, own in by_shard.values():
        ids, ends = shard.ids(np.array([text.row for text in own]))  # type: ignore[attr-defined]  # they have a shard
        rows = _with_columns(ids, tokenizer.columns)
        begin, shortest = 0, min(limit + 1, tokenizer.limit)
        for text, end in zip(own, ends.tolist(), strict=True):
            tokens, begin = rows[:, begin:end], end
            if tokens.shape[1] >= shortest:
                cut = _cut(tokens, tokenizer, limit)
                if cut is None:
                    continue
                tokens = cut
            found[text] = tokens
    return found


def _with_columns(ids: NDArray[Any], columns: Mapping[str, int | None]) -> NDArray[np.int32]:
    """Return token numbers `(N,)` with what else the tokenizer gives `(columns, N)`."""
    rows = np.empty((len(columns), len(ids)), np.int32)
    for row, value in zip(rows, columns.values(), strict=True):
        row[:] = ids if value is None else value
    return rows


def _cut(tokens: NDArray[np.int32], tokenizer: Tokenizer, limit: int) -> NDArray[np.int32] | None:
    """Return tokens `(columns, length)` cut at a limit; None where more of the text would have to be known."""
    length, after = tokens.shape[1], tokenizer.after
    # It may have been cut before, or have to be cut on the other side.
    if length >= tokenizer.limit < limit or (length > limit and after < 0):
        return None
    if length <= limit:
        return tokens
    return np.concatenate([tokens[:, : limit - after], tokens[:, length - after :]], 1)
