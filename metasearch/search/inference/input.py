"""Texts to tokens with the tokenizers library alone.

Notation used for tensor shapes: B texts in a batch, T tokens.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from metasearch.encoders.features import unchanged
from metasearch.encoders.lengths import shorten
from metasearch.search.inference.facts import InputFacts


class StoredInput:
    """The tokenizer of a checkpoint; for members without a docstring see `TransformerInput`."""

    def __init__(self, folder: Path, facts: InputFacts) -> None:
        self.fast_tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.fast_tokenizer.no_truncation()
        self.fast_tokenizer.no_padding()
        self.special_ids = facts.special
        self.has_words = True  # else it would not have been opened in whole
        self.longest = facts.longest
        self._facts = facts

    def tokenise(self, texts: Sequence[str], limit: int) -> Mapping[str, Sequence[Sequence[int]]]:
        """Return the tokenizer's columns, truncated at a limit, as `TransformerInput.tokenise`."""
        tokenizer, left = self.fast_tokenizer, self._facts.left

        def truncated(texts: list[str], limit: int) -> dict[str, list[list[int]]]:
            tokenizer.enable_truncation(limit, direction="left" if left else "right")
            found = tokenizer.encode_batch_fast(texts)
            every = {"input_ids": "ids", "token_type_ids": "type_ids", "attention_mask": "attention_mask"}
            return {name: [getattr(each, every[name]) for each in found] for name in self._facts.columns}

        with unchanged(tokenizer):
            return truncated(shorten(texts, limit, left, lambda *cut: truncated(*cut)["input_ids"]), limit)

    def padded(self, columns: Sequence[str], rows: Sequence[NDArray[np.int32]]) -> dict[str, Tensor]:
        """Return tokens `(columns, length)` padded on their right, `(B, T)`."""
        lengths = np.array([row.shape[1] for row in rows])
        there = np.arange(lengths.max(initial=0)) < lengths[:, None]
        found = {}
        for i, name in enumerate(columns):
            values = np.full(there.shape, self._facts.padding[name], np.int64)
            values[there] = np.concatenate([row[i] for row in rows])
            found[name] = torch.from_numpy(values)
        return found
