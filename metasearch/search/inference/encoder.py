"""An encoder that encodes from its files, and opens its whole model when someone asks for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from tokenizers import Tokenizer
from torch import Tensor, nn

from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import Output, TextReader, unchanged
from metasearch.encoders.lengths import complete, shorten
from metasearch.encoders.low.base import PROBED, doubt
from metasearch.encoders.low.network import StoredNetwork
from metasearch.encoders.probe import probe_rows
from metasearch.encoders.prompts import Prompted
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

    `model`, `embedder` and `input` belong to the whole model: the first use opens it (`materialise`), and from then on
    it is the one that encodes.

    Args:
        name: name of the encoder in results.
        folder: folder of the checkpoint.
        facts: what is known of it.
        whole: opens the whole model, with the same prompts.
        max_length: longest inputs in tokens, as for `Encoder`.

    Raises:
        EncoderError: a file cannot be read.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        facts: Facts,
        whole: Callable[[], Encoder],
        max_length: MaxLength | None = None,
    ) -> None:
        self.facts = facts
        self._whole = whole
        # The weights first: what it takes to read them is free again when the tokenizer is made.
        self._network: StoredNetwork | None = _network(folder, facts)
        self._reader: _StoredInput | None = _StoredInput(folder / facts.place, facts.input)
        self._prompts = _Prompts(dict(facts.prompts), facts.default_prompt_name)
        self._begin(name, complete(max_length, MaxLength(**dict(facts.lengths))))

    def __getattr__(self, name: str) -> object:
        # Only called for what is not there: before the whole model is opened.
        if name not in ("model", "embedder"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        self.materialise()
        return self.__dict__[name]

    @property
    def materialised(self) -> bool:
        """Whether the whole model was opened."""
        return self._network is None

    def materialise(self) -> None:
        """Open the whole model, with its embedding matrix in float32: to train, save, trim, compress or export it.

        `EncoderError` if it is another one by now.
        """
        if self.materialised:
            return
        whole = self._whole()
        if whole.fingerprint != self.facts.fingerprint:
            raise EncoderError(f"{self.name}: its files were changed while it was in use; start again")
        self.model, self.embedder = whole.model, whole.embedder
        self._reader = self._network = self._low = None

    @property
    def reader(self) -> TextReader:
        """What reads texts."""
        return self._reader or self.input

    @property
    def network(self) -> nn.Module:
        """What encodes."""
        return self._network or self.embedder

    @property
    def prompted(self) -> Prompted:
        """What has its prompts."""
        return self.model if self.materialised else self._prompts

    @property
    def pools_prompts(self) -> bool:
        """True: others are opened in whole."""
        return True

    @property
    def neutral(self) -> bool:
        """Whether it ends in a language-neutral projection."""
        return super().neutral if self.materialised else self.facts.neutral

    @property
    def fingerprint(self) -> str:
        """The same as the whole model has."""
        return super().fingerprint if self.materialised else self.facts.fingerprint

    def dimension(self, output: Output = "sentence") -> int:
        """Return an output's width."""
        stored = output in ("sentence", "pooled") and not self.materialised
        return self.facts.dimension if stored else super().dimension(output)

    def _tried(self) -> "LowNetwork | str":
        """Return a converted network, or why it cannot be converted; without the whole model if it is not open."""
        if self._network is None or self._reader is None:
            return super()._tried()
        columns, rows = probe_rows(self._reader, *PROBED)
        with torch.no_grad():
            expected = self._network(self._reader.padded(columns, rows), "pooled")
        network = self._converted()
        return doubt(network, columns, rows, expected) or network

    def _converted(self) -> "LowNetwork":
        """Return a converted network; without the whole model if it is not open."""
        if self._network is None:
            return super()._converted()
        from metasearch.encoders.low.bert import LowBert

        return LowBert(self._network)

    def to(self, device: str | torch.device) -> "StoredEncoder":
        """Move the weights; on another device than a CPU the whole model runs."""
        if torch.device(device).type != "cpu":
            self.materialise()
        if self.materialised:
            super().to(device)
        return self


def _network(folder: Path, facts: Facts) -> StoredNetwork:
    try:
        weights = StoredWeights(folder / facts.place / WEIGHTS, facts.network.table)
        return StoredNetwork(facts.network, weights, lambda name: StoredWeights(folder / name / WEIGHTS))
    except (OSError, KeyError, SafetensorError) as error:
        raise EncoderError(f"{folder}: its weights cannot be read: {first_line(error)}") from error
