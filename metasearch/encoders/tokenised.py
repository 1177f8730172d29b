"""Texts that bring their tokens with them, so that an encoder with the same tokenizer need not tokenise them again.

Such a text is one like any other, with a `shard` and a `row` beside its characters: see
`metasearch.data.prepared.text.PreparedText`. Its tokens are taken where they are those that the encoder would make;
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
    found = {}
    for text in texts:
        shard: Any = getattr(text, "shard", None)
        if shard is None or shard.tokenizer is not tokenizer:
            continue
        ids = shard.ids(text.row)  # type: ignore[attr-defined]  # it has a shard
        if not _lacks(len(ids), tokenizer, limit):
            found[text] = _rows(ids, tokenizer, limit)
    return found


def _lacks(length: int, tokenizer: Tokenizer, limit: int) -> bool:
    """Return whether more of a text would have to be known than its tokens: it was cut shorter, or on the left."""
    return length >= tokenizer.limit < limit or (length > limit and tokenizer.after < 0)


def _rows(ids: NDArray[Any], tokenizer: Tokenizer, limit: int) -> NDArray[np.int32]:
    length, kept = len(ids), limit - tokenizer.after
    rows = np.empty((len(tokenizer.columns), min(length, limit)), np.int32)
    for row, value in zip(rows, tokenizer.columns.values(), strict=True):
        if value is not None:
            row[:] = value
        elif length > limit:
            row[:kept] = ids[:kept]
            row[kept:] = ids[length - tokenizer.after :]
        else:
            row[:] = ids
    return rows
