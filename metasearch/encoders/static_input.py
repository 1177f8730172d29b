"""The input module of a static encoder: a word table whose rows are averaged.

Notation used for tensor shapes: B texts in a batch, T tokens, N tokens of all texts, D dimensions of an embedding, V
words.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from metasearch.config.roles import MaxLength, Role
from metasearch.encoders.features import Features, Output, pad, stock, unchanged
from metasearch.encoders.lengths import UNLIMITED, own_lengths, shorten
from metasearch.errors import EncoderError

_NO_LAYERS = (
    "a static encoder is a table of word vectors without layers: of its outputs there are sentence and pooled, not "
    "embedding or states"
)


class StaticInput:
    """A word table whose rows are averaged; for members without a docstring see `TransformerInput`."""

    kind = "static"
    settings: ClassVar[dict[str, Any]] = {}
    padding = -1
    position_table: nn.Embedding | None = None
    first_position = 0
    longest = UNLIMITED
    window = 0
    special_ids: ClassVar[tuple[int, ...]] = ()

    def __init__(self, module: Any) -> None:
        self.module = module

    @property
    def vocabulary(self) -> dict[str, Any]:
        """The tokenizer's JSON, and its truncation side."""
        found: dict[str, Any] = json.loads(self.module.tokenizer.to_str())
        return found | ({"truncation_side": "left"} if self._cuts_left else {})

    @property
    def fast_tokenizer(self) -> Tokenizer:
        """Its only kind."""
        found: Tokenizer = self.module.tokenizer
        return found

    def tokenizer_of(self, texts: Sequence[str]) -> Tokenizer:
        """Return the tokenizer."""
        return self.fast_tokenizer

    @property
    def has_words(self) -> bool:
        """Whether there is any word."""
        return int(self.module.tokenizer.get_vocab_size()) > 0

    @property
    def words(self) -> Any:
        """The table `(V, D)`."""
        return self.module.embedding

    @property
    def width(self) -> int:
        """`EncoderError`, as there are no layers."""
        raise EncoderError(_NO_LAYERS)

    @property
    def is_stock(self) -> bool:
        """Whether it is sentence-transformers' own module."""
        return stock(self.module, "sentence_transformers")

    @property
    def lengths(self) -> MaxLength:
        """The one length at which the tokenizer truncates all texts; no limit where it truncates none."""
        cut = self.module.tokenizer.truncation
        roles: tuple[Role, ...] = get_args(Role)
        return own_lengths(dict.fromkeys(roles, cut["max_length"] if cut else None))

    def cut_at(self, lengths: Mapping[Role, int]) -> bool:
        """Let the tokenizer cut texts at the longest; sentence-transformers has one length for a static encoder."""
        tokenizer, longest = self.module.tokenizer, max(lengths.values())
        if longest < UNLIMITED:
            tokenizer.enable_truncation(longest, direction="left" if self._cuts_left else "right")
        else:
            tokenizer.no_truncation()
        return len(set(lengths.values())) == 1

    def attend_with(self, name: str) -> str:
        """Do nothing, as there is no attention."""
        return ""

    def tokenise(self, texts: Sequence[str], limit: int) -> Mapping[str, Sequence[Sequence[int]]]:
        """Return tokens without special ones, truncated at a limit."""
        tokenizer, left = self.module.tokenizer, self._cuts_left

        def whole(texts: list[str]) -> list[list[int]]:
            return [each.ids for each in tokenizer.encode_batch(texts, add_special_tokens=False)]

        with unchanged(tokenizer):
            # Its own length may be shorter than the limit.
            tokenizer.no_truncation()
            encoded = whole(shorten(texts, limit, left, lambda texts, _: whole(texts)))
        return {"input_ids": [ids[-limit:] if left else ids[:limit] for ids in encoded]}

    def padded(self, columns: Sequence[str], rows: Sequence[NDArray[np.int32]]) -> dict[str, Tensor]:
        """Return tokens with their mask; masked positions hold token 0, which is never read."""
        masked = [np.concatenate([row, np.ones_like(row)]) for row in rows]
        found = pad((*columns, "attention_mask"), masked, {})
        return {name: torch.from_numpy(values) for name, values in found.items()}

    def forward(self, features: Features) -> dict[str, Any]:
        """Set `sentence_embedding` to the mean row; zero without tokens."""
        if "cu_seq_lens_q" in features:
            words, bounds = features["input_ids"][0], features["cu_seq_lens_q"]
            starts, counts = bounds[:-1], bounds.diff()
        else:
            mask = features["attention_mask"].bool()
            words, counts = features["input_ids"][mask], mask.sum(1)
            starts = counts.cumsum(0) - counts
        table = self.words.weight
        sums: Tensor = _Sums.apply(table, words, starts)  # type: ignore[no-untyped-call]  # torch's own
        return {**features, "sentence_embedding": sums / counts.clamp(min=1).unsqueeze(-1).to(table.dtype)}

    def hidden(self, features: Features, output: Output) -> Tensor:
        """Raise `EncoderError`, as there are no layers."""
        raise EncoderError(_NO_LAYERS)

    @property
    def _cuts_left(self) -> bool:
        cut = self.module.tokenizer.truncation
        return bool(cut) and cut["direction"] == "left"


class _Sums(torch.autograd.Function):
    """Sums over rows in bags, differentiable any number of times; torch's `embedding_bag` is differentiable once.

    The sum is linear in the table, s = A W with A_bv the number of times that word v is in bag b. So its gradient Aᵀ g
    is a sum in bags too: of the rows of g, in a bag for each word.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, words: Tensor, starts: Tensor) -> Tensor:
        """Return the sums `(B, D)` of rows in `(V, D)` by token ids `(N,)`, for bags that begin at `(B,)`."""
        ctx.save_for_backward(words, starts)
        ctx.rows = len(table)
        return F.embedding_bag(words, table, starts, mode="sum")

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Return the gradient `(V, D)`."""
        words, starts = ctx.saved_tensors
        ends = torch.cat([starts[1:], starts.new_tensor([len(words)])])
        bag = torch.repeat_interleave(torch.arange(len(starts), device=starts.device), ends - starts)
        # A stable sort, so that sums have the same bits every time.
        order = words.argsort(stable=True)
        times = torch.bincount(words, minlength=ctx.rows)
        found: Tensor = _Sums.apply(gradients[0], bag[order], times.cumsum(0) - times)  # type: ignore[no-untyped-call]
        return found, None, None
