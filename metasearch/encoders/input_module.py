"""Interface of an encoder's input module, the one that reads texts.

Notation used for tensor shapes: B texts in a batch, T tokens, N tokens of all texts, D dimensions of an embedding, H
columns of the word table.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from metasearch.config.recipe import MaxLength, Role
from metasearch.data.formats.blank import remove_invisible
from metasearch.errors import EncoderError

Features = Mapping[str, Tensor]
"""Token ids, attention mask and what else the model's tokenizer gives, each `(B, T)`; or those of texts in one row."""

Output = Literal["sentence", "pooled", "embedding", "tokens", "states"]
"""What is taken from an encoder.

- `sentence`: the unit vector of a text, `(B, D)`; what searches and scores.
- `pooled`: the same before normalisation, `(B, D)`; the sentence vector h of the distillation paper.
- `embedding`: the mean over the tokens of what the embedding block gives the first layer, `(B, H)`.
- `tokens`: that output at every token that is no padding, text after text, `(N, H)`.
- `states`: what the last layer gives at every token that is no padding, text after text, `(N, H)`.
"""

BY_TOKEN: frozenset[Output] = frozenset({"tokens", "states"})
"""Outputs with a row for each token, which are no vectors of texts."""


_NO_LAYERS = (
    "a static encoder is a table of word vectors without layers: of its outputs there are sentence and pooled, not "
    "embedding, tokens or states"
)


class InputModule(ABC):
    """A view of the first module of a model, created wherever it is needed.

    It holds nothing but the module: networks are copied, and run on other weights. Defaults are those of a static
    encoder, without layers and positions.
    """

    def __init__(self, module: Any) -> None:
        self.module = module

    @property
    @abstractmethod
    def kind(self) -> str:
        """Name of the architecture."""

    @property
    def settings(self) -> dict[str, Any]:
        """All settings that its vectors depend on, beside weights and tokenizer."""
        return {}

    @property
    @abstractmethod
    def vocabulary(self) -> dict[str, Any]:
        """Everything that its tokens depend on, as JSON."""

    @property
    @abstractmethod
    def has_words(self) -> bool:
        """Whether the tokenizer knows anything but special tokens."""

    @property
    @abstractmethod
    def words(self) -> Any:
        """The embedding matrix; if factorised, its narrow factor."""

    @property
    def padding(self) -> int:
        """Id of the padding token, or -1."""
        return -1

    @property
    @abstractmethod
    def longest(self) -> int:
        """Longest input in tokens that it can take, whatever it was published with."""

    @property
    def position_table(self) -> nn.Embedding | None:
        """The position matrix, or None."""
        return None

    @property
    def first_position(self) -> int:
        """Position of a text's first token; RoBERTa and its relatives count from the padding index on."""
        padding = getattr(self.position_table, "padding_idx", None)
        return 0 if padding is None else int(padding) + 1

    @property
    def width(self) -> int:
        """Width H of outputs `embedding`, `tokens` and `states`; `EncoderError` if there are none."""
        raise EncoderError(_NO_LAYERS)

    @property
    def window(self) -> int:
        """Tokens up to which a layer sees its neighbours; 0 where every layer sees the whole text."""
        return 0

    @property
    @abstractmethod
    def is_stock(self) -> bool:
        """Whether all its code is a library's own, and none came with the checkpoint."""

    def attend_with(self, name: str) -> str:
        """Use an attention function of transformers by its name, where there is attention; return the previous one."""
        return ""

    @property
    @abstractmethod
    def lengths(self) -> MaxLength:
        """Maximum input lengths in tokens per role, as saved with the model; `EncoderError` if too short for a word."""

    @abstractmethod
    def cut_at(self, lengths: Mapping[Role, int]) -> bool:
        """Let sentence-transformers truncate each role at its length; False if it can only use the longest for all."""

    def tokenise(self, texts: Sequence[str], limit: int) -> Mapping[str, Sequence[Sequence[int]]]:
        """Return the tokenizer's columns, such as `input_ids`, text by text, truncated at a limit.

        Invisible characters are removed first (`metasearch.data.formats.blank`).
        """
        return self._tokenise([remove_invisible(text) for text in texts], limit)

    @abstractmethod
    def _tokenise(self, texts: Sequence[str], limit: int) -> Mapping[str, Sequence[Sequence[int]]]:
        """Tokenise texts where every character counts."""

    @abstractmethod
    def padded(self, columns: Sequence[str], rows: Sequence[NDArray[np.int32]]) -> dict[str, Tensor]:
        """Return padded tensors `(B, T)` for tokens `(columns, length)`."""

    @abstractmethod
    def forward(self, features: Features) -> dict[str, Any]:
        """Return the features with what the next module needs: token vectors, or `sentence_embedding` `(B, D)`."""

    def embedded(self, features: Features, output: Output) -> Tensor:
        """Return output `embedding` or `tokens`; `EncoderError` where there are none."""
        raise EncoderError(_NO_LAYERS)

    def states(self, features: Features) -> Tensor:
        """Return output `states`; `EncoderError` if it is missing."""
        raise EncoderError(_NO_LAYERS)


def stock(module: nn.Module, library: str) -> bool:
    """Return whether a module is a library's own; one with code that came with a checkpoint may do something else."""
    return type(module).__module__.startswith(f"{library}.")
