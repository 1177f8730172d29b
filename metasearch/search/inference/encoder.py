"""An encoder that encodes from its files, without its whole model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from tokenizers import Tokenizer
from torch import Tensor

from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import Output, unchanged
from metasearch.encoders.lengths import complete, shorten
from metasearch.encoders.low.network import StoredNetwork
from metasearch.errors import EncoderError, first_line
from metasearch.search.inference.facts import Facts, InputFacts
from metasearch.search.inference.weights import StoredWeights

if TYPE_CHECKING:
    from metasearch.encoders.low.base import LowNetwork

WEIGHTS = "model.safetensors"


@dataclass
class _Prompts:
    prompts: dict[str, str]
    default_prompt_name: str | None


class _StoredInput:
    """The tokenizer of a checkpoint; for members without a docstring see `TransformerInput`."""

    kind, window = "bert", 0

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


class StoredEncoder(Encoder):
    """An encoder whose embedding matrix stays in its file; its vectors have the bits of the whole model.

    It only encodes: `load_encoder` opens a model to train, save or export.

    Args:
        name: name of the encoder in results.
        folder: folder of the checkpoint.
        facts: what is known of it.
        max_length: longest inputs in tokens, as for `Encoder`.

    Raises:
        EncoderError: a file cannot be read, or more is asked for than vectors.
    """

    def __init__(self, name: str, folder: Path, facts: Facts, max_length: MaxLength | None = None) -> None:
        self.facts = facts
        # The weights first: what it takes to read them is free again when the tokenizer is made.
        self._stored = _network(folder, facts)
        reader = _StoredInput(folder / facts.place, facts.input)
        prompts = _Prompts(dict(facts.prompts), facts.default_prompt_name)
        self._begin(name, complete(max_length, MaxLength(**dict(facts.lengths))), reader, self._stored, prompts)

    def __getattr__(self, name: str) -> object:
        if name in ("model", "embedder"):
            raise EncoderError(f"encoder '{self.name}' is open to encode alone; load_encoder opens its model")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def neutral(self) -> bool:
        """Whether it ends in a language-neutral projection."""
        return self.facts.neutral

    @property
    def fingerprint(self) -> str:
        """The same as the whole model has."""
        return self.facts.fingerprint

    def dimension(self, output: Output = "sentence") -> int:
        """Return an output's width."""
        return self.facts.dimension if output in ("sentence", "pooled") else super().dimension(output)

    def _converted(self) -> "LowNetwork":
        """Return a converted network."""
        from metasearch.encoders.low.bert import LowBert

        return LowBert(self._stored)


def _network(folder: Path, facts: Facts) -> StoredNetwork:
    try:
        weights = StoredWeights(folder / facts.place / WEIGHTS, facts.network.table)
        return StoredNetwork(facts.network, weights, lambda name: StoredWeights(folder / name / WEIGHTS))
    except (OSError, KeyError, SafetensorError) as error:
        raise EncoderError(f"{folder}: its weights cannot be read: {first_line(error)}") from error
