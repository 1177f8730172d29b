"""The first module of an encoder, which reads texts: a transformer with its tokenizer.

Notation used for tensor shapes: B texts in a batch, T tokens, N tokens of all texts, D dimensions of an embedding, H
columns of the word table, V words.
"""

import inspect
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from torch import Tensor

from metasearch.config.roles import MaxLength, Role
from metasearch.encoders.compressed import native_config
from metasearch.encoders.features import Features, Output, is_out_of_memory, stock, unchanged
from metasearch.encoders.lengths import own_lengths, shorten
from metasearch.errors import EncoderError, first_line

_LENGTHS: dict[str, Role] = {"query_length": "question", "document_length": "candidate"}
"""Settings of sentence-transformers' module for one of its methods; `encode` takes the length of the tokenizer."""

_SIDES = ("truncation_side", "padding_side")

_REFUSALS = (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a network of transformers raises at a text that it cannot read."""


# How many tokens a transformer can read: as many as its table of positions has rows for them, if it has one where BERT
# has it. RoBERTa and its relatives count positions from the padding index of that table on, and ignore the rows before.

_CONFIGURED = ("max_position_embeddings", "max_encoder_position_embeddings", "max_seq_len")


def _configured(config: Any) -> int | None:
    """Return the number of positions in a configuration; None for a model without a limit, such as T5 or XLNet (-1)."""
    found = (getattr(config, name, None) for name in _CONFIGURED)
    return next((int(positions) for positions in found if positions and positions > 0), None)


# Views of the first module.


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
        backend = self.fast_tokenizer
        found: dict[str, Any] = json.loads(backend.to_str()) if backend else tokenizer.get_vocab()
        return found | ({"truncation_side": "left"} if tokenizer.truncation_side == "left" else {})

    @property
    def fast_tokenizer(self) -> Tokenizer | None:
        """The tokenizer in Rust; None for one in Python."""
        return getattr(self.module.tokenizer, "backend_tokenizer", None)

    def tokenizer_of(self, texts: Sequence[str]) -> Tokenizer | None:
        """Return the tokenizer in Rust."""
        return self.fast_tokenizer

    @property
    def special_ids(self) -> Collection[int]:
        """Numbers of the tokens that stand for no text."""
        found: list[int] = self.module.tokenizer.all_special_ids
        return found

    @property
    def has_words(self) -> bool:
        """Whether the tokenizer knows anything but special tokens."""
        return len(self.module.tokenizer) > len(self.module.tokenizer.all_special_tokens)

    @property
    def words(self) -> Any:
        """The embedding matrix, of a factorised one the narrow factor; None where there is not one."""
        try:
            words = self.module.auto_model.get_input_embeddings()
        except NotImplementedError:  # transformers' word for none, or for several as in CANINE
            return None
        return getattr(words, "table", words)

    @property
    def padding(self) -> int:
        """The id in the embedding matrix, else in the tokenizer, else 0."""
        named = getattr(self.words, "padding_idx", None)
        return int(self.module.tokenizer.pad_token_id or 0) if named is None else int(named)

    @property
    def first_position(self) -> int:
        """Position of a text's first token; RoBERTa and its relatives count from the padding index on."""
        padding = getattr(self._positions, "padding_idx", None)
        return 0 if padding is None else int(padding) + 1

    @property
    def longest(self) -> int:
        """Tokens that the network can read, as published lengths are often shorter; else the published maximum."""
        # A compressed student counts positions as its backbone does.
        known = _configured(native_config(self.module.auto_model))
        if (table := self._positions) is not None:
            rows = len(table.weight) - self.first_position
            return min(rows, known or rows)
        return known or int(max(self.lengths.model_dump().values()))

    @property
    def _positions(self) -> Any:
        """The table of positions; None where there is none in an embedding block."""
        table = getattr(getattr(self.backbone, "embeddings", None), "position_embeddings", None)
        return table if hasattr(table, "weight") else None

    @property
    def width(self) -> int:
        """Width H of outputs `embedding` and `states`."""
        width = getattr(native_config(self.module.auto_model), "hidden_size", None)
        return int(width or self.module.get_embedding_dimension())

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

        with unchanged(self.fast_tokenizer):
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
        """Return the features with token vectors; `EncoderError` if the network cannot read texts of that length."""
        try:
            # Modules of sentence-transformers write into the mapping they are given.
            state: dict[str, Any] = self.module(dict(features))
        except _REFUSALS as error:
            # Only a packed row may be too long where each of its texts is not.
            if is_out_of_memory(error) or "seq_idx" in features:
                raise
            tokens = features["input_ids"].shape[1]
            raise EncoderError(f"'{self.kind}' cannot read a text of {tokens} tokens: {first_line(error)}") from error
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
        try:
            found = block(features["input_ids"], **where)
        except (AttributeError, TypeError):  # it reads more than words, such as the places of words on a page
            found = None
        if not isinstance(found, Tensor):
            raise EncoderError(f"'{self.kind}' has no embedding block like BERT's, so output embedding does not exist")
        hidden: Tensor = found
        if hasattr(backbone, "embeddings_project"):  # ELECTRA, where tables are narrower than layers
            hidden = backbone.embeddings_project(hidden)
        if "seq_idx" in features:
            counts = features["cu_seq_lens_q"].diff().unsqueeze(-1).to(hidden.dtype)
            sums = hidden.new_zeros(len(counts), hidden.shape[2]).index_add(0, features["seq_idx"][0], hidden[0])
        else:
            weight = features["attention_mask"].bool().unsqueeze(-1).to(hidden.dtype)
            counts, sums = weight.sum(1), (hidden * weight).sum(1)
        return sums / counts.clamp(min=1)


def input_of(model: SentenceTransformer) -> TransformerInput:
    """Return a model's input module; `EncoderError` if it is no transformer."""
    first = model[0]
    if hasattr(first, "auto_model"):
        return TransformerInput(first)
    name = type(first).__name__
    static = "; use it with sentence-transformers itself" if name == "StaticEmbedding" else ""
    raise EncoderError(f"its first module is {name}; expected a transformer{static}")
