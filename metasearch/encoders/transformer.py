"""A transformer as the input module of an encoder."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from metasearch.encoders.compressed import native_config
from metasearch.encoders.input_module import Features, InputModule, Output, stock

FROM_PADDING = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet")
"""Backbones that count positions from the padding index on."""

FAMILIES = ("bert", "camembert", "distilbert", "electra", "roberta", "xlm-roberta")
"""Backbones in which tokens meet in attention alone, and whose attention can be exchanged."""


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
        """The JSON of a tokenizer in Rust, the vocabulary of one in Python."""
        tokenizer = self.module.tokenizer
        backend = getattr(tokenizer, "backend_tokenizer", None)
        found: dict[str, Any] = json.loads(backend.to_str()) if backend else tokenizer.get_vocab()
        return found

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

        The length it was published with, which sentence-transformers copies to the tokenizer, is often shorter than a
        task's, and is asked only where there are no position embeddings.
        """
        config = native_config(self.module.auto_model)  # a compressed student counts positions as its backbone does
        positions = getattr(config, "max_position_embeddings", None)
        if positions is None:
            return int(self.module.tokenizer.model_max_length)
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
        # That of packed texts has no causal mask.
        return f"'{kind}' is a decoder here" if getattr(self.backbone.config, "is_decoder", False) else None

    @property
    def looks_up_only(self) -> bool:
        """Whether it is of a known kind, which does."""
        return self.kind in (*FAMILIES, "mpnet") and stock(self.backbone, "transformers")

    def attend_with(self, name: str) -> None:
        """Set the attention in the configuration, which layers ask at every call."""
        self.backbone.config._attn_implementation_internal = name

    def lengthen(self, tokens: int) -> None:
        """Raise the limit of the published model."""
        self.module.max_seq_length = min(max(self.module.max_seq_length or 0, tokens), self.longest)

    def tokenise(self, texts: Sequence[str], limit: int) -> Mapping[str, Sequence[Sequence[int]]]:
        """Return tokens with special ones."""
        encoded: Mapping[str, Sequence[Sequence[int]]] = self.module.tokenizer(
            list(texts), truncation=True, max_length=limit
        )
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
        # Packed texts bring the positions of their tokens, which not all backbones accept.
        where = {"position_ids": features["position_ids"]} if "position_ids" in features else {}
        hidden: Tensor = backbone.embeddings(features["input_ids"], **where)
        if hasattr(backbone, "embeddings_project"):  # ELECTRA, where tables are narrower than layers
            hidden = backbone.embeddings_project(hidden)
        packed = "seq_idx" in features
        if output == "tokens":
            # Packed texts stand in one row, which has no padding.
            return hidden[0] if packed else hidden[features["attention_mask"].bool()]
        if packed:
            counts = features["cu_seq_lens_q"].diff().unsqueeze(-1).to(hidden.dtype)
            sums = hidden.new_zeros(len(counts), hidden.shape[2]).index_add(0, features["seq_idx"][0], hidden[0])
        else:
            weight = features["attention_mask"].bool().unsqueeze(-1).to(hidden.dtype)
            counts, sums = weight.sum(1), (hidden * weight).sum(1)
        return sums / counts.clamp(min=1)
