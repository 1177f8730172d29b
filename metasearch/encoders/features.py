"""What the input modules of encoders read and give, and what they share.

Notation used for tensor shapes: B texts in a batch, T tokens, N tokens of all texts, D dimensions of an embedding, H
columns of the word table.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

Features = Mapping[str, Tensor]
"""Token ids, attention mask and what else the model's tokenizer gives, each `(B, T)`; or of packed texts in one row."""

Output = Literal["sentence", "pooled", "embedding", "states"]
"""An output of an encoder.

- `sentence`: the unit vector of a text, `(B, D)`; what searches and scores.
- `pooled`: the same before normalisation, `(B, D)`; the sentence vector h of the distillation paper.
- `embedding`: the mean over the tokens of what the embedding block gives the first layer, `(B, H)`.
- `states`: what the last layer gives at every token that is no padding, text after text, `(N, H)`.
"""


class TextReader(Protocol):
    """Makes tokens out of texts."""

    @property
    def kind(self) -> str:
        """Name of the network's architecture."""

    @property
    def window(self) -> int:
        """The widest sliding window of the layers, in tokens; 0 where every layer sees the whole text."""

    @property
    def longest(self) -> int:
        """Tokens that the network can read."""

    @property
    def special_ids(self) -> Collection[int]:
        """Numbers of the tokens that stand for no text."""

    @property
    def has_words(self) -> bool:
        """Whether the tokenizer knows anything but special tokens."""

    @property
    def fast_tokenizer(self) -> Tokenizer | None:
        """The tokenizer in Rust; None for one in Python."""

    def tokenizer_of(self, texts: Sequence[str]) -> Tokenizer | None:
        """Return a tokenizer in Rust that segments these texts alike, perhaps with other ids; None for Python."""

    def tokenise(self, texts: Sequence[str], limit: int) -> Mapping[str, Sequence[Sequence[int]]]:
        """Return the tokenizer's columns, such as `input_ids`, text by text, truncated at a limit."""

    def padded(self, columns: Sequence[str], rows: Sequence[NDArray[np.int32]]) -> dict[str, Tensor]:
        """Return tokens `(columns, length)` padded to `(B, T)`."""


def pad(
    columns: Sequence[str], rows: Sequence[NDArray[Any]], fills: Mapping[str, int], left: bool = False
) -> dict[str, NDArray[np.int64]]:
    """Return tokens `(columns, length)` by column, `(B, T)`, filled on their right or `left` side, else with 0."""
    lengths = np.array([row.shape[1] for row in rows])
    inside = np.arange(lengths.max(initial=0)) < lengths[:, None]
    inside = inside[:, ::-1] if left else inside
    found = {}
    for i, name in enumerate(columns):
        found[name] = np.full(inside.shape, fills.get(name, 0), np.int64)
        found[name][inside] = np.concatenate([row[i] for row in rows])
    return found


def stock(module: nn.Module, library: str) -> bool:
    """Return whether a module is a library's own; one with code that came with a checkpoint may do something else."""
    return type(module).__module__.startswith(f"{library}.")


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory did not suffice; on a CPU such an error has no type of its own."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


_TRUNCATING = Lock()


@contextmanager
def unchanged(backend: Any) -> Iterator[None]:
    """Restore the truncation of a tokenizer in Rust at the end: it would write a changed one into its file.

    Truncation is a state of the tokenizer, so only one thread at a time is inside.
    """
    with _TRUNCATING:
        before = None if backend is None else backend.truncation
        try:
            yield
        finally:
            if before is not None:
                backend.enable_truncation(**before)
            elif backend is not None:
                backend.no_truncation()
