"""A transformer as the input module of an encoder."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from metasearch.encoders.compressed import native_config
from metasearch.encoders.input_module import Features, InputModule, Output, stock
from metasearch.encoders.lengths import own_lengths
from metasearch.spec.recipe import MaxLength, Role

FROM_PADDING = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet")
"""Backbones that count positions from the padding index on."""

_LENGTHS: dict[str, Role] = {"query_length": "question", "document_length": "candidate"}
"""Settings of sentence-transformers' module for one of its methods; `encode` takes the length of the tokenizer."""

_SIDES = ("truncation_side", "padding_side")

FAMILIES = ("bert", "camembert", "distilbert", "electra", "modernbert", "roberta", "xlm-roberta")
"""Backbones in which tokens meet in attention alone, and whose attention can be exchanged."""

ROTARY = ("modernbert",)
"""Those in which positions turn queries and keys (Su et al. 2021, RoFormer), so that distances alone count.

No vector of a position is added to that of a word.
"""


class TransformerInput(InputModule):
    """A transformer of transformers with its tokenizer; `backbone` is the stock one within a compressed one."""

    @property
    def backbone(self) -> Any:
        """The transformer; of a compressed one, the one inside it."""
        model = self.module.auto_model
        return getattr(model, "backbone", model)

    @property
    def kind(self) -> str:
        """`model_type` of the backbone."""
        return str(self.backbone.config.model_type)

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration."""
        settings: dict[str, Any] = self.module.auto_model.config.to_dict()
        return settings

    @property
    def vocabulary(self) -> dict[str, Any]:
        """The JSON of a tokenizer in Rust, the vocabulary of one in Python; and where it cuts and pads on the left."""
        tokenizer = self.module.tokenizer
        backend = getattr(tokenizer, "backend_tokenizer", None)
        found: dict[str, Any] = json.loads(backend.to_str()) if backend else tokenizer.get_vocab()
        sides = _SIDES[:1] if self.kind in FROM_PADDING else _SIDES  # there padding moves no position
        # The right is not named, so that fingerprints of models that say nothing of sides stay what they were.
        return found | {name: side for name in sides if (side := getattr(tokenizer, name)) != "right"}

    @property
    def has_words(self) -> bool:
        """Whether the tokenizer knows anything but special tokens."""
        return len(self.module.tokenizer) > len(self.module.tokenizer.all_special_tokens)

    @property
    def words(self) -> Any:
        """The word table; of a factorised one, the narrow factor."""
        words = self.module.auto_model.get_input_embeddings()
        return getattr(words, "table", words)

    @property
    def padding(self) -> int:
        """What the table names, else what the tokenizer does, else 0."""
        named = getattr(self.words, "padding_idx", None)
        return int(self.module.tokenizer.pad_token_id or 0) if named is None else int(named)

    @property
    def longest(self) -> int:
        """What its position embeddings allow.

        The lengths it was published with are often shorter than a task's, and are asked only where there are no
        position embeddings.
        """
        config = native_config(self.module.auto_model)  # a compressed student counts positions as its backbone does
        positions = getattr(config, "max_position_embeddings", None)
        if positions is None:
            return max(self.lengths.model_dump().values())
        # Their first token has position padding index + 1, so that so many rows of the table are never reached.
        offset = (config.pad_token_id or 0) + 1 if config.model_type in FROM_PADDING else 0
        return int(positions - offset)

    @property
    def width(self) -> int:
        """Columns of the layers."""
        return int(native_config(self.module.auto_model).hidden_size)

    @property
    def why_padded(self) -> str | None:
        """Attention that cannot be exchanged, or looks at earlier tokens alone."""
        kind = self.kind
        # A model with code of its own may call itself `bert` and do something else.
        if kind not in FAMILIES or not stock(self.backbone, "transformers"):
            return f"attention of '{kind}' cannot run on packed texts"
        if not hasattr(sys.modules[type(self.backbone).__module__], "ALL_ATTENTION_FUNCTIONS"):  # ModernBERT in 5.0
            return f"attention of '{kind}' cannot be exchanged in this release of transformers"
        # That of packed texts has no causal mask.
        return f"'{kind}' is a decoder here" if getattr(self.backbone.config, "is_decoder", False) else None

    @property
    def looks_up_only(self) -> bool:
        """Whether it is of a known kind, which does."""
        return self.kind in (*FAMILIES, "mpnet") and stock(self.backbone, "transformers")

    def attend_with(self, name: str) -> None:
        """Set the attention in the configuration, which layers ask at every call."""
        self.backbone.config._attn_implementation_internal = name

    @property
    def lengths(self) -> MaxLength:
        """Those of `encode_query`, `encode_document` and `encode`; the first two may have none of their own."""
        shared = self.module.max_seq_length
        own = {role: getattr(self.module, name, None) or shared for name, role in _LENGTHS.items()}
        return own_lengths({**own, "text": shared})

    def cut_at(self, lengths: Mapping[Role, int]) -> bool:
        """Set the lengths of `encode_query`, `encode_document` and `encode`, of sentence-transformers' own module."""
        by_role = stock(self.module, "sentence_transformers")
        self.module.max_seq_length = lengths["text"] if by_role else max(lengths.values())
        for name, role in _LENGTHS.items():
            setattr(self.module, name, lengths[role] if by_role else None)
        for options in getattr(self.module, "processing_kwargs", {}).values():
            options.pop("max_length", None)  # it would go before all others
        # A tokenizer saves the sides that it was loaded with, and not those that were set since.
        self.module.tokenizer.init_kwargs.update({name: getattr(self.module.tokenizer, name) for name in _SIDES})
        return by_role or len(set(lengths.values())) == 1

    def _tokenise(self, texts: Sequence[str], limit: int) -> Mapping[str, Sequence[Sequence[int]]]:
        """Return tokens with special ones."""
        tokenizer = self.module.tokenizer
        with _unchanged(getattr(tokenizer, "backend_tokenizer", None)):
            encoded: Mapping[str, Sequence[Sequence[int]]] = tokenizer(list(texts), truncation=True, max_length=limit)
        return encoded

    def padded(self, columns: Sequence[str], rows: Sequence[NDArray[np.int32]]) -> dict[str, Tensor]:
        """Return tokens as the tokenizer pads them."""
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

    def embedded(self, features: Features, output: Output) -> Tensor:
        """Return what the embedding block gives the first layer."""
        backbone = self.backbone
        # Packed texts bring the positions of their tokens, which not all embedding blocks accept.
        placed = "position_ids" in features and self.kind not in ROTARY
        where = {"position_ids": features["position_ids"]} if placed else {}
        hidden: Tensor = backbone.embeddings(features["input_ids"], **where)
        if hasattr(backbone, "embeddings_project"):  # ELECTRA, where tables are narrower than layers
            hidden = backbone.embeddings_project(hidden)
        if output == "tokens":
            return _without_padding(hidden, features)
        if "seq_idx" in features:
            counts = features["cu_seq_lens_q"].diff().unsqueeze(-1).to(hidden.dtype)
            sums = hidden.new_zeros(len(counts), hidden.shape[2]).index_add(0, features["seq_idx"][0], hidden[0])
        else:
            weight = features["attention_mask"].bool().unsqueeze(-1).to(hidden.dtype)
            counts, sums = weight.sum(1), (hidden * weight).sum(1)
        return sums / counts.clamp(min=1)

    def states(self, features: Features) -> Tensor:
        """Return what the last layer gives at every token."""
        return _without_padding(self.forward(features)["token_embeddings"], features)


def _without_padding(hidden: Tensor, features: Features) -> Tensor:
    """Return the rows of tokens `(N, D)` of `(B, T, D)`; packed texts stand in one row, which has no padding."""
    return hidden[0] if "seq_idx" in features else hidden[features["attention_mask"].bool()]


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
