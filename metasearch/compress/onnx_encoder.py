"""An exported folder with an ONNX graph: its file `metasearch.json`, and an encoder by onnxruntime and tokenizers.

Notation used for tensor shapes: B texts in a batch, T tokens, D dimensions.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, ValidationError
from tokenizers import Tokenizer

from metasearch.config.base import FrozenConfig
from metasearch.config.extras import import_extra
from metasearch.config.roles import MaxLength, Role
from metasearch.data.formats.given import list_texts
from metasearch.encoders.features import pad, unchanged
from metasearch.encoders.lengths import BATCH_TOKENS, complete, encode_in_batches, shorten
from metasearch.errors import EncoderError, first_line
from metasearch.io import digest, read_bytes

FILE = "metasearch.json"


class Facts(FrozenConfig):
    """Content of `metasearch.json`: how to use the graph, and its origin.

    Attributes:
        layout: number of this set of keys.
        precision: of the graph's weights and products; earlier releases wrote `int8`, too.
        model: path of the graph in the folder, with slashes.
        dimension: numbers of a vector.
        longest: tokens that the graph can take; None without a limit.
        lengths: role → tokens at which its texts are truncated.
        difference: largest absolute difference between the graph and the encoder.
        versions: of libraries that made it.
        results: scores of the encoder before and after.
    """

    format: Literal["metasearch-onnx"] = "metasearch-onnx"
    layout: Literal[1] = 1
    name: str
    fingerprint: str
    precision: Literal["fp32", "int8"]
    model: str
    dimension: int = Field(ge=1)
    longest: int | None
    lengths: MaxLength
    prompts: dict[Role, str]
    difference: float
    versions: dict[str, str]
    results: tuple[dict[str, Any], ...] = ()


def is_exported(folder: Path) -> bool:
    """Return whether a folder has such a file."""
    return (folder / FILE).is_file()


def read_facts(folder: Path) -> Facts:
    """Return the facts in a folder; `EncoderError` if the file is missing, damaged or has another layout."""
    path = folder / FILE
    try:
        return Facts.model_validate_json(read_bytes(path))
    except OSError as error:
        raise EncoderError(f"{path}: {error.strerror or error}") from error
    except ValidationError as error:
        wrong = error.errors()[0]
        place = ".".join(map(str, wrong["loc"])) or "the file"
        raise EncoderError(f"{path}: {place}: {wrong['msg']}; it was changed, or written by another version") from None


_COLUMNS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""Inputs that a graph may have, and what they are called in the library tokenizers."""
TOKENIZER = "tokenizer.json"
_TOKENISED_AT_ONCE = 4096


class OnnxEncoder:
    """Embeddings from an exported folder with `metasearch.json`, the graph that it names and `tokenizer.json`.

    `max_length` and `prompts` replace the folder's own.

    Raises:
        EncoderError: a file is missing or damaged.
        ConfigError: onnxruntime is not installed.
    """

    seeded = False

    def __init__(
        self, folder: Path, max_length: MaxLength | None = None, prompts: Mapping[Role, str] | None = None
    ) -> None:
        import_extra("onnxruntime", "onnx", "ONNX")
        self.folder = folder
        self.facts: Facts = read_facts(folder)
        self.name = self.facts.name
        self.max_length = complete(max_length, self.facts.lengths)
        self.prompts: dict[Role, str] = {**self.facts.prompts, **(prompts or {})}
        self.on_progress: Callable[[int, int], None] | None = None
        """Hears after each batch of `encode` how many of its texts are done, and how many there are."""
        self._tokenizer = _tokenizer(folder / TOKENIZER)
        self._cut: dict[str, Any] = self._tokenizer.truncation or {}
        self._padding: dict[str, Any] = self._tokenizer.padding or {}
        self._tokenizer.no_padding()
        self._session = _session(folder / self.facts.model)
        self.inputs: tuple[str, ...] = tuple(each.name for each in self._session.get_inputs())
        """Names of the graph's inputs."""

    @property
    def device(self) -> torch.device:
        """The processor."""
        return torch.device("cpu")

    @property
    def origin(self) -> str:
        """Hash of graph, tokenizer and the folder's prompts; prompts of this encoder excluded."""
        parts = [digest(self.folder / name) for name in (self.facts.model, TOKENIZER)]
        return hashlib.sha256("".join([*parts, str(sorted(self.facts.prompts.items()))]).encode()).hexdigest()[:16]

    def dimension(self) -> int:
        """Return D."""
        return self.facts.dimension

    def limit(self, role: Role) -> int:
        """Return the longest input in tokens for a role."""
        length = int(getattr(self.max_length, role))
        return min(length, self.facts.longest or length)

    def prompt(self, role: Role) -> str:
        """Return the prompt for a role."""
        return self.prompts[role]

    def run(self, features: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Run the graph on columns `(B, T)` and return vectors `(B, D)`; unused columns are ignored."""
        found = self._session.run(None, {name: features[name].astype(np.int64) for name in self.inputs})
        vectors: NDArray[np.float32] = found[0]
        return vectors

    def encode(self, texts: Iterable[str], role: Role, batch_size: int = 64) -> NDArray[np.float32]:
        """Return unit vectors `(len(texts), D)`; each distinct text is encoded once, in batches of similar length."""
        texts = list_texts(texts)
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return np.zeros((0, self.dimension()), np.float32)
        rows = self._tokens([self.prompt(role) + text for text in distinct], self.limit(role))
        lengths = np.array([row.shape[1] for row in rows], np.int64)

        def embed(numbers: list[int]) -> NDArray[np.float32]:
            return self.run(self._padded([rows[i] for i in numbers]))

        vectors = encode_in_batches(lengths, embed, batch_size, BATCH_TOKENS, self.on_progress)
        place = {text: i for i, text in enumerate(distinct)}
        return vectors[[place[text] for text in texts]]

    def _tokens(self, texts: Sequence[str], limit: int) -> list[NDArray[np.int64]]:
        """Return each text's graph inputs, `(inputs, T)`, truncated at a limit."""

        def truncated(chunk: list[str], limit: int) -> list[Any]:
            # Its direction stays as in the file.
            self._tokenizer.enable_truncation(**{**self._cut, "max_length": limit})
            rows: list[Any] = self._tokenizer.encode_batch(chunk)
            return rows

        left = self._cut.get("direction") == "left"
        found: list[NDArray[np.int64]] = []
        # A tokenizer holds far more of each text than its ids until all of its texts are done.
        for start in range(0, len(texts), _TOKENISED_AT_ONCE):
            with unchanged(self._tokenizer):
                rows = truncated(shorten(texts[start : start + _TOKENISED_AT_ONCE], limit, left, truncated), limit)
            found += [np.array([getattr(row, _COLUMNS[name]) for name in self.inputs], np.int64) for row in rows]
        return found

    def _padded(self, rows: Sequence[NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
        """Return padded token columns `(B, T)`, T the longest text."""
        fills = {"input_ids": self._padding["pad_id"], "token_type_ids": self._padding["pad_type_id"]}
        return pad(self.inputs, rows, fills, self._padding["direction"] == "left")


def _tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise EncoderError(f"{path}: cannot be read: {first_line(error)}") from error
    if tokenizer.truncation is None or tokenizer.padding is None:
        raise EncoderError(f"{path}: settings for truncation and padding are missing; export the encoder again")
    return tokenizer


def _session(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # A thread that waits gives its core to others.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # As torch does; onnxruntime itself would take every core, whatever else runs.
    options.intra_op_num_threads = torch.get_num_threads()
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has error types of its own
        raise EncoderError(f"{path}: onnxruntime cannot load it: {first_line(error)}") from error
    unknown = [each.name for each in session.get_inputs() if each.name not in _COLUMNS]
    if unknown:
        raise EncoderError(f"{path}: its input '{unknown[0]}' is none of {', '.join(_COLUMNS)}")
    return session
