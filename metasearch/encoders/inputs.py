"""The first module of an encoder, which reads texts: a transformer with its tokenizer, or a static embedding matrix.

Notation used for tensor shapes: B texts in a batch, T tokens, N tokens of all texts, D dimensions of an embedding, H
columns of the word table, V words.
"""

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch import Tensor, nn
from torch.nn import functional as F

from metasearch.config.recipe import MaxLength, Role
from metasearch.encoders.compressed import native_config
from metasearch.encoders.lengths import UNLIMITED, own_lengths, shorten
from metasearch.errors import EncoderError

Features = Mapping[str, Tensor]
"""Token ids, attention mask and what else the model's tokenizer gives, each `(B, T)`; or of packed texts in one row."""

Output = Literal["sentence", "pooled", "embedding", "states"]
"""An output of an encoder.

- `sentence`: the unit vector of a text, `(B, D)`; what searches and scores.
- `pooled`: the same before normalisation, `(B, D)`; the sentence vector h of the distillation paper.
- `embedding`: the mean over the tokens of what the embedding block gives the first layer, `(B, H)`.
- `states`: what the last layer gives at every token that is no padding, text after text, `(N, H)`.
"""


def stock(module: nn.Module, library: str) -> bool:
    """Return whether a module is a library's own; one with code that came with a checkpoint may do something else."""
    return type(module).__module__.startswith(f"{library}.")


_LENGTHS: dict[str, Role] = {"query_length": "question", "document_length": "candidate"}
"""Settings of sentence-transformers' module for one of its methods; `encode` takes the length of the tokenizer."""

_SIDES = ("truncation_side", "padding_side")


class TransformerInput:
    """A transformer of transformers with its tokenizer; `backbone` is the stock one within a compressed one.

    A view of the module, created wherever it is needed: networks are copied, and run on other weights.
    """

    def __init__(self, module: Any) -> None:
        self.module = module

    @property
    def backbone(self) -> Any:
        """The transformer, or the inner one if compressed."""
        model = self.module.auto_model
        return getattr(model, "backbone", model)

    @property
    def kind(self) -> str:
        """The backbone's `model_type`."""
        return str(self.backbone.config.model_type)

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration."""
        settings: dict[str, Any] = self.module.auto_model.config.to_dict()
        return settings

    @property
    def vocabulary(self) -> dict[str, Any]:
        """A fast tokenizer's JSON or a slow one's vocabulary, and the truncation side."""
        tokenizer = self.module.tokenizer
        backend = getattr(tokenizer, "backend_tokenizer", None)
        found: dict[str, Any] = json.loads(backend.to_str()) if backend else tokenizer.get_vocab()
        return found | ({"truncation_side": "left"} if tokenizer.truncation_side == "left" else {})

    @property
    def has_words(self) -> bool:
        """Whether the tokenizer knows anything but special tokens."""
        return len(self.module.tokenizer) > len(self.module.tokenizer.all_special_tokens)

    @property
    def words(self) -> Any:
        """The embedding matrix; if factorised, its narrow factor."""
        words = self.module.auto_model.get_input_embeddings()
        return getattr(words, "table", words)

    @property
    def padding(self) -> int:
        """The id in the embedding matrix, else in the tokenizer, else 0."""
        named = getattr(self.words, "padding_idx", None)
        return int(self.module.tokenizer.pad_token_id or 0) if named is None else int(named)

    @property
    def position_table(self) -> nn.Embedding | None:
        """The table with a row for each position; rows before the first position count too."""
        rows, words = self._positions, self.words
        tables = (module for module in self.backbone.modules() if isinstance(module, nn.Embedding))
        return next((table for table in tables if table is not words and table.num_embeddings == rows), None)

    @property
    def first_position(self) -> int:
        """Position of a text's first token; RoBERTa and its relatives count from the padding index on."""
        padding = getattr(self.position_table, "padding_idx", None)
        return 0 if padding is None else int(padding) + 1

    @property
    def longest(self) -> int:
        """Positions in the configuration, as published lengths are often shorter; else the published maximum."""
        if self._positions is not None:
            return self._positions - self.first_position
        return int(max(self.lengths.model_dump().values()))

    @property
    def _positions(self) -> int | None:
        """Number of positions in the configuration; None for a model without a limit, such as T5 or XLNet (-1)."""
        # A compressed student counts positions as its backbone does.
        positions = getattr(native_config(self.module.auto_model), "max_position_embeddings", None)
        return int(positions) if positions and positions > 0 else None

    @property
    def width(self) -> int:
        """Width H of outputs `embedding` and `states`."""
        return int(native_config(self.module.auto_model).hidden_size)

    @property
    def window(self) -> int:
        """The widest sliding window of the layers, in tokens; 0 where every layer sees the whole text."""
        windows = (getattr(module, "sliding_window", None) for module in self.backbone.modules())
        return max((window for window in windows if isinstance(window, int)), default=0)

    @property
    def is_stock(self) -> bool:
        """Whether module and backbone are plain sentence-transformers and transformers."""
        return stock(self.module, "sentence_transformers") and stock(self.backbone, "transformers")

    def attend_with(self, name: str) -> str:
        """Use an attention function of transformers by its name; return the previous one."""
        config = self.backbone.config
        before, config._attn_implementation_internal = config._attn_implementation_internal, name
        return str(before)

    @property
    def lengths(self) -> MaxLength:
        """Lengths for `encode_query`, `encode_document` and `encode`; the first two may be None."""
        shared = self.module.max_seq_length
        own = {role: getattr(self.module, name, None) or shared for name, role in _LENGTHS.items()}
        return own_lengths({**own, "text": shared})

    def cut_at(self, lengths: Mapping[Role, int]) -> bool:
        """Let sentence-transformers truncate each role at its length; False if it can only use the longest for all."""
        by_role = stock(self.module, "sentence_transformers")
        self.module.max_seq_length = lengths["text"] if by_role else max(lengths.values())
        for name, role in _LENGTHS.items():
            setattr(self.module, name, lengths[role] if by_role else None)
        for options in getattr(self.module, "processing_kwargs", {}).values():
            options.pop("max_length", None)  # it would go before all others
        # A tokenizer saves the sides that it was loaded with, and not those that were set since.
        self.module.tokenizer.init_kwargs.update({name: getattr(self.module.tokenizer, name) for name in _SIDES})
        return by_role or len(set(lengths.values())) == 1

    def tokenise(self, texts: Sequence[str], limit: int) -> Mapping[str, Sequence[Sequence[int]]]:
        """Return the tokenizer's columns, such as `input_ids`, text by text, truncated at a limit.

        Invisible characters are removed first (`metasearch.data.formats.blank`).
        """
        tokenizer = self.module.tokenizer

        def truncated(texts: list[str], limit: int) -> Mapping[str, Sequence[Sequence[int]]]:
            encoded: Mapping[str, Sequence[Sequence[int]]] = tokenizer(texts, truncation=True, max_length=limit)
            return encoded

        with _unchanged(getattr(tokenizer, "backend_tokenizer", None)):
            left = tokenizer.truncation_side == "left"
            return truncated(shorten(texts, limit, left, lambda *cut: truncated(*cut)["input_ids"]), limit)

    def padded(self, columns: Sequence[str], rows: Sequence[NDArray[np.int32]]) -> dict[str, Tensor]:
        """Return tokens `(columns, length)` as the tokenizer pads them, `(B, T)`."""
        tokenizer = self.module.tokenizer
        # Padding by hand is what encoders are for; the advice against it would be printed once per process.
        tokenizer.deprecation_warnings["Asking-to-pad-a-fast-tokenizer"] = True
        values = {key: [row[i].tolist() for row in rows] for i, key in enumerate(columns)}
        return dict(tokenizer.pad(values, return_tensors="pt"))

    def forward(self, features: Features) -> dict[str, Any]:
        """Return the features with token vectors."""
        # Modules of sentence-transformers write into the mapping they are given.
        state: dict[str, Any] = self.module(dict(features))
        return state

    def hidden(self, features: Features, output: Output) -> Tensor:
        """Return output `embedding` or `states`."""
        if output == "states":
            states: Tensor = self.forward(features)["token_embeddings"]
            # Packed texts are one row without padding.
            return states[0] if "seq_idx" in features else states[features["attention_mask"].bool()]
        backbone = self.backbone
        block = getattr(backbone, "embeddings", None)
        if block is None:
            raise EncoderError(f"'{self.kind}' has no embedding block, so output embedding does not exist")
        # Packed texts bring the positions of their tokens, which an embedding block with rotary positions ignores.
        placed = "position_ids" in features and "position_ids" in inspect.signature(block.forward).parameters
        where = {"position_ids": features["position_ids"]} if placed else {}
        hidden: Tensor = block(features["input_ids"], **where)
        if hasattr(backbone, "embeddings_project"):  # ELECTRA, where tables are narrower than layers
            hidden = backbone.embeddings_project(hidden)
        if "seq_idx" in features:
            counts = features["cu_seq_lens_q"].diff().unsqueeze(-1).to(hidden.dtype)
            sums = hidden.new_zeros(len(counts), hidden.shape[2]).index_add(0, features["seq_idx"][0], hidden[0])
        else:
            weight = features["attention_mask"].bool().unsqueeze(-1).to(hidden.dtype)
            counts, sums = weight.sum(1), (hidden * weight).sum(1)
        return sums / counts.clamp(min=1)


@contextmanager
def _unchanged(backend: Any) -> Iterator[None]:
    """Let a tokenizer in Rust forget how the texts inside were cut: it would write that into its file with a model."""
    before = None if backend is None else backend.truncation
    try:
        yield
    finally:
        if before is not None:
            backend.enable_truncation(**before)
        elif backend is not None:
            backend.no_truncation()


_NO_LAYERS = (
    "a static encoder is a table of word vectors without layers: of its outputs there are sentence and pooled, not "
    "embedding or states"
)


class StaticInput:
    """A word table whose rows are averaged; see `TransformerInput` for members without a docstring here."""

    kind = "static"
    settings: ClassVar[dict[str, Any]] = {}
    padding = -1
    position_table: nn.Embedding | None = None
    first_position = 0
    longest = UNLIMITED
    window = 0

    def __init__(self, module: Any) -> None:
        self.module = module

    @property
    def vocabulary(self) -> dict[str, Any]:
        """The tokenizer's JSON, and its truncation side."""
        found: dict[str, Any] = json.loads(self.module.tokenizer.to_str())
        return found | ({"truncation_side": "left"} if self._cuts_left else {})

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

        with _unchanged(tokenizer):
            # Its own length may be shorter than the limit.
            tokenizer.no_truncation()
            encoded = whole(shorten(texts, limit, left, lambda texts, _: whole(texts)))
        return {"input_ids": [ids[-limit:] if left else ids[:limit] for ids in encoded]}

    def padded(self, columns: Sequence[str], rows: Sequence[NDArray[np.int32]]) -> dict[str, Tensor]:
        """Return tokens with their mask; masked positions hold token 0, which is never read."""
        lengths = np.array([row.shape[1] for row in rows])
        mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = np.concatenate([row[0] for row in rows])  # the only column
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask.astype(np.int64))}

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


InputModule = TransformerInput | StaticInput


def input_of(model: SentenceTransformer) -> InputModule:
    """Return a model's input module; `EncoderError` if it cannot be trained."""
    first = model[0]
    if isinstance(first, StaticEmbedding):
        return StaticInput(first)
    if hasattr(first, "auto_model"):
        return TransformerInput(first)
    raise EncoderError(f"its first module is {type(first).__name__}; expected a transformer or StaticEmbedding")


def is_static(model: SentenceTransformer) -> bool:
    """Return whether a model's embeddings are means of word embeddings."""
    return isinstance(input_of(model), StaticInput)


def transformer_of(model: SentenceTransformer) -> Any:
    """Return the transformer of a model, as transformers made it; `EncoderError` for a static encoder."""
    if is_static(model):
        raise EncoderError(
            "a static encoder has no transformer to compress or change; use the encoder that it was made from"
        )
    return model[0].auto_model
