"""An encoder that encodes from its files, without its whole model.

Weights are as a safetensors file holds them: in 8, 16 or 32 bits, mapped into memory, where pages come when touched.

Notation used for tensor shapes: B texts in a batch, T tokens, V words, D columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import Output, pad, unchanged
from metasearch.encoders.lengths import complete, shorten
from metasearch.encoders.low.network import StoredNetwork
from metasearch.errors import EncoderError, first_line
from metasearch.search.inference.facts import Facts, InputFacts
from metasearch.search.inference.pieces import Pieces

if TYPE_CHECKING:
    from metasearch.encoders.low.base import LowNetwork

WEIGHTS = "model.safetensors"
SCALE = ".scale"
"""What the name of a matrix in int8 is followed by in the name of its steps."""


class StoredWeights:
    """The weights in a file, by name: a table stays there, all others are in memory in float32.

    Args:
        path: the file.
        table: name of the matrix whose rows stay in the file; empty for none.
    """

    def __init__(self, path: Path, table: str = "") -> None:
        self.path = path
        self._written = _written(path)
        mapped = {table, table + SCALE}
        # Pages that are read are in memory as long as the file is open, and copies are beside them.
        with safe_open(path, framework="pt") as file:
            names = [name for name in file.keys() if name not in mapped]  # noqa: SIM118 - not a mapping
            self._whole = {name: _in_memory(file, name) for name in names if not name.endswith(SCALE)}
        with safe_open(path, framework="pt") as file:
            self._table = {name: file.get_tensor(name) for name in file.keys() if name in mapped}  # noqa: SIM118

    def whole(self, name: str) -> Tensor:
        """Return a weight in float32."""
        return self._whole[name]

    def table(self, name: str) -> "StoredTable":
        """Return the matrix whose rows stay in the file."""
        return StoredTable(self, self._table[name], self._table.get(name + SCALE))

    def require_unchanged(self) -> None:
        """Raise `EncoderError` where the file was written since it was opened: rows would be of another one.

        A file that was deleted, or replaced by another one, stays open with its rows.
        """
        now = _written(self.path) if self.path.exists() else self._written
        if now[:2] == self._written[:2] and now != self._written:
            raise _changed(self.path)


class StoredTable(nn.Module):
    """An embedding matrix `(V, D)` that stays in its file; rows are taken to float32 where they are read."""

    def __init__(self, weights: StoredWeights, rows: Tensor, steps: Tensor | None) -> None:
        super().__init__()
        self._weights = weights
        # Not parameters or buffers, which may be moved, converted or trained.
        self._stored = (rows, steps)

    def forward(self, ids: Tensor) -> Tensor:
        """Return rows `(B, T, D)` for token ids `(B, T)`."""
        self._weights.require_unchanged()
        rows, steps = self._stored
        found = F.embedding(ids, rows).to(torch.float32)
        if steps is None:
            return found
        # A step for each row, or for each column.
        return found.mul_(F.embedding(ids, steps) if len(steps) == len(rows) else steps)


def _in_memory(file: Any, name: str) -> Tensor:
    found: Tensor = file.get_tensor(name)
    if found.dtype == torch.int8:
        return found.to(torch.float32).mul_(file.get_tensor(name + SCALE))
    return found.to(torch.float32, copy=True)


def _changed(path: Path) -> EncoderError:
    return EncoderError(f"{path}: the file was changed while it was in use; start again")


def _written(path: Path) -> tuple[int, int, int, int]:
    """Return device and inode of a file, which name it whatever its path, then its size and time."""
    try:
        found = path.stat()
    except OSError as error:
        raise EncoderError(f"{path}: {error.strerror or error}") from None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@dataclass
class _Prompts:
    prompts: dict[str, str]
    default_prompt_name: str | None


class _StoredInput:
    """The tokenizer of a checkpoint; for members without a docstring see `TransformerInput`."""

    kind, window = "bert", 0

    def __init__(self, folder: Path, facts: InputFacts, pieces: Pieces | None) -> None:
        self._path, self._pieces = folder / "tokenizer.json", pieces
        self._written = _written(self._path)
        if not pieces:
            _ = self.fast_tokenizer  # so that a damaged file is said at once
        self.special_ids = facts.special
        self.has_words = True  # else it would not have been opened in whole
        self.longest = facts.longest
        self._facts = facts

    @cached_property
    def fast_tokenizer(self) -> Tokenizer:
        """The whole tokenizer; `EncoderError` if its file was changed or deleted before it was needed."""
        if _written(self._path) != self._written:
            raise _changed(self._path)
        found = Tokenizer.from_file(str(self._path))
        found.no_truncation()
        found.no_padding()
        return found

    def _tokenizer(self, texts: Sequence[str]) -> tuple[Tokenizer, NDArray[np.int64] | None]:
        """Return a tokenizer for texts, and the ids that its own stand for; None for themselves."""
        pieces = None if "fast_tokenizer" in vars(self) else self._pieces
        return (pieces and pieces.tokenizer(texts)) or (self.fast_tokenizer, None)

    def tokenizer_of(self, texts: Sequence[str]) -> Tokenizer:
        """Return a tokenizer that segments these texts as the whole one, with ids of its own."""
        return self._tokenizer(texts)[0]

    def tokenise(self, texts: Sequence[str], limit: int) -> Mapping[str, Sequence[Sequence[int]]]:
        """Return the tokenizer's columns, truncated at a limit, as `TransformerInput.tokenise`."""
        left = self._facts.left

        def truncated(texts: list[str], limit: int) -> dict[str, list[list[int]]]:
            tokenizer, ids = self._tokenizer(texts)
            with unchanged(tokenizer):
                tokenizer.enable_truncation(limit, direction="left" if left else "right")
                read = tokenizer.encode_batch_fast(texts)
            every = {"input_ids": "ids", "token_type_ids": "type_ids", "attention_mask": "attention_mask"}
            found = {name: [getattr(each, every[name]) for each in read] for name in self._facts.columns}
            if ids is not None:
                found["input_ids"] = [ids[each].tolist() for each in found["input_ids"]]
            return found

        return truncated(shorten(texts, limit, left, lambda *cut: truncated(*cut)["input_ids"]), limit)

    def padded(self, columns: Sequence[str], rows: Sequence[NDArray[np.int32]]) -> dict[str, Tensor]:
        """Return tokens `(columns, length)` padded on their right, `(B, T)`."""
        found = pad(columns, rows, self._facts.padding)
        return {name: torch.from_numpy(values) for name, values in found.items()}


class StoredEncoder(Encoder):
    """An encoder whose embedding matrix stays in its file; its vectors have the bits of the whole model.

    It only encodes: `load_encoder` opens a model to train, save or export.

    Args:
        name: name of the encoder in results.
        folder: folder of the checkpoint.
        facts: what is known of it.
        max_length: longest inputs in tokens, as for `Encoder`.
        pieces: of its tokenizer, which short texts are read with; None for the whole tokenizer.

    Raises:
        EncoderError: a file cannot be read, or more is asked for than vectors.
    """

    def __init__(
        self, name: str, folder: Path, facts: Facts, max_length: MaxLength | None = None, pieces: Pieces | None = None
    ) -> None:
        self.facts = facts
        # The weights first: what it takes to read them is free again when the tokenizer is made.
        self._stored = _network(folder, facts)
        reader = _StoredInput(folder / facts.place, facts.input, pieces)
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
        from metasearch.encoders.low.bert import LowBert

        return LowBert(self._stored)


def _network(folder: Path, facts: Facts) -> StoredNetwork:
    try:
        weights = StoredWeights(folder / facts.place / WEIGHTS, facts.network.table)
        return StoredNetwork(facts.network, weights, lambda name: StoredWeights(folder / name / WEIGHTS))
    except (OSError, KeyError, SafetensorError) as error:
        raise EncoderError(f"{folder}: its weights cannot be read: {first_line(error)}") from error
