"""Vectors of frozen encoders, computed once and kept on disk for all languages, epochs, stages and runs.

    <folder>/<key>/about.json                    what the key stands for: encoder, role, length, output and type
    <folder>/<key>/texts/<sha256>.safetensors    digests of texts, ascending, and their vectors
    <folder>/<key>/texts.lock                    held by a process while it computes vectors

A text is known by a digest of 128 bits; two of a billion texts share one with a probability of 1.5e-21. A second
process waits for the first one and computes missing vectors. A file gets its name when it is on the disk, so it
is there whole or not at all; a damaged one is deleted and computed again. Files are mapped into memory, not read whole.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeGuard

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from metasearch.algorithms.base import Targets, TargetSpec
from metasearch.config.distill_run import DistillConfig, TargetType
from metasearch.config.recipe import Role
from metasearch.data.formats.arrays import SUFFIX, LoadedArrays, open_arrays, write
from metasearch.encoders.encoder import Encoder, Output
from metasearch.encoders.input_module import BY_TOKEN
from metasearch.errors import ConfigError, NonFiniteError, RunFolderError
from metasearch.io import atomic_write, write_error
from metasearch.pipelines.distill.sources import StageData
from metasearch.retrieval.index.exact_search import to_int8
from metasearch.runs.callbacks import Callback
from metasearch.training.packing import PackedEncoder, Parts

log = logging.getLogger(__name__)

VectorOutput = Literal["sentence", "pooled", "embedding"]
"""Outputs of an encoder that are one vector for each text."""
PIECE = 2**13
"""Texts that are computed before they are written: whole batches of `Encoder.encode`."""
_MANY = 2**21
"""Texts from which on pieces are four times as large, since a process has a limit of open files."""
_TEXTS = "texts"
"""Folder of the pieces."""
_TYPES: dict[str, type[np.generic]] = {"fp32": np.float32, "fp16": np.float16, "int8": np.int8}


def are_vectors(output: Output) -> TypeGuard[VectorOutput]:
    """Return whether an output is one vector for each text, which can be kept."""
    return output not in BY_TOKEN


class TargetCache:
    """Stored vectors for one frozen encoder, role and output, in `kind` of numbers."""

    def __init__(
        self, folder: Path, encoder: Encoder, role: Role, output: VectorOutput, kind: TargetType = "fp32"
    ) -> None:
        self.dimension, self.kind = encoder.dimension(output), kind
        self._encoder, self._role, self._output = encoder, role, output
        about = {
            "fingerprint": encoder.fingerprint,
            "role": role,
            "max_length": encoder.limit(role),
            "output": output,
            "dimension": self.dimension,
            "type": kind,
        }
        key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
        self.folder, self._about = folder / key, {"encoder": encoder.name, **about}
        self._files: dict[str, LoadedArrays] = {}

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors `(B, D)` in order; `KeyError` for a text that was not requested before.

        Vectors of eight bits are rounded to 1/127 of their greatest component, those of 16 to eleven binary digits.
        """
        found, keys = np.empty((len(texts), self.dimension), np.float32), _sortable(compute_digests(texts))
        known = np.zeros(len(texts), np.bool_)
        for arrays in self._files.values():
            at, here = _found_in(_sortable(arrays["keys"]), keys)
            if here.any():
                values = arrays["vectors"][at[here]].astype(np.float32)
                if self.kind == "int8":
                    values *= arrays["steps"][at[here], None]
                found[here] = values
                known |= here
        if not known.all():
            raise KeyError(f"no stored vector of the text {texts[int(np.argmin(known))]!r}")
        return found

    def add(self, texts: Callable[[], Iterable[str]], on_progress: Callable[[int, int], None] | None = None) -> None:
        """Compute and store missing vectors; `texts` is called twice, so that the texts need not fit in memory.

        `on_progress` is called after each piece with the texts done and an upper bound of all new texts.
        """
        self._find(repair=False)
        total, done = sum(len(self._missing(block)) for block in _blocks(texts())), 0
        if not total:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / f"{_TEXTS}.lock"):
                atomic_write(self.folder / "about.json", json.dumps(self._about, indent=2, ensure_ascii=False))
                self._find(repair=True)
                for piece in self._pieces(texts(), PIECE if total < _MANY else 4 * PIECE):
                    self._compute(piece)
                    done += len(piece)
                    if on_progress:
                        on_progress(done, max(total, done))
        except OSError as error:
            raise write_error(self.folder, error, (total - done) * (16 + 4 * self.dimension)) from error

    def _pieces(self, texts: Iterable[str], size: int) -> Iterator[list[str]]:
        """Yield distinct texts without a vector in their order, `size` at a time."""
        pending: dict[str, None] = {}
        for block in _blocks(texts):
            pending |= dict.fromkeys(self._missing(block))
            while len(pending) >= size:
                yield (piece := list(islice(pending, size)))
                pending = dict.fromkeys(islice(pending, len(piece), None))
        if pending:
            yield list(pending)

    def _compute(self, texts: Sequence[str]) -> None:
        """Compute and store the vectors of distinct texts."""
        vectors = self._encoder.encode(texts, self._role, self._output)
        # What 16 bits cannot hold is infinite.
        self._require_finite(vectors.astype(np.float16) if self.kind == "fp16" else vectors, texts)
        keys = compute_digests(texts)
        order = np.argsort(_sortable(keys))
        content: dict[str, NDArray[Any]] = {"keys": keys[order]}
        if self.kind == "int8":
            content["vectors"], content["steps"] = to_int8(vectors[order])
        else:
            content["vectors"] = vectors[order].astype(_TYPES[self.kind])
        write(self.folder / _TEXTS, content)
        self._find(repair=False)

    def _require_finite(self, vectors: NDArray[Any], texts: Sequence[str]) -> None:
        """Raise `NonFiniteError` where a vector is not finite; it names the text."""
        finite = np.isfinite(vectors).all(1)
        if not finite.all():
            text = str(texts[int(np.argmin(finite))])
            shown = text if len(text) <= 80 else f"{text[:80]}..."
            what = f"its {self._output} vector of the {self._role} '{shown}'"
            raise NonFiniteError(f"encoder {self._encoder.name}: {what} is not finite")

    def _find(self, repair: bool) -> None:
        """Open files that are new here. With `repair`, under the lock, delete damaged ones."""
        for path in sorted((self.folder / _TEXTS).glob(f"*{SUFFIX}")):
            if path.stem in self._files:
                continue
            try:
                self._files[path.stem] = open_arrays(path)
            except RunFolderError as error:
                if repair:
                    log.warning("%s; its vectors are computed again", error)
                    path.unlink()
            except OSError as error:
                # It may be sound: this process may have too many open files, or no right to read it.
                if repair:
                    raise RunFolderError(f"{path} cannot be read: {error.strerror or error}") from None

    def _missing(self, texts: Iterable[str]) -> list[str]:
        """Return the distinct texts that have no vector yet, in their order."""
        distinct = list(dict.fromkeys(texts))
        keys, known = _sortable(compute_digests(distinct)), np.zeros(len(distinct), np.bool_)
        for arrays in self._files.values():
            known |= _found_in(_sortable(arrays["keys"]), keys)[1]
        return [distinct[i] for i in np.flatnonzero(~known).tolist()]


def cached_targets(
    folder: Path,
    encoder: Encoder,
    texts: Sequence[str],
    role: Role,
    output: VectorOutput = "sentence",
    kind: TargetType = "fp32",
    on_progress: Callable[[int, int], None] | None = None,
) -> TargetCache:
    """Return the vectors of texts; missing ones are computed and stored.

    Several processes and runs may use a folder at once. The last bits of a vector depend on the texts of its batch; a
    stored vector is never computed again, so every later run has the same bits. Finished pieces stay after an
    interruption.
    """
    cache = TargetCache(folder, encoder, role, output, kind)
    cache.add(lambda: texts, on_progress)
    return cache


def compute_digests(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return a 128-bit hash per text, `(N, 2)`."""
    # A corpus may hold half a surrogate pair, which strict UTF-8 refuses; `<u8` is the same on every machine.
    raw = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts)
    return np.frombuffer(b"".join(raw), "<u8").reshape(-1, 2)


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield texts, some thousand at a time."""
    rest = iter(texts)
    while block := list(islice(rest, PIECE)):
        yield block


def _sortable(keys: NDArray[np.uint64]) -> NDArray[Any]:
    """Return digests `(N, 2)` as 16-byte strings `(N,)`, which numpy can sort and search."""
    # NumPy ignores zeros at the end of bytes, which makes no two values of one width equal.
    return np.ascontiguousarray(keys).view("S16").ravel()


def _found_in(own: NDArray[Any], keys: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return each key's position among ascending ones, and whether it is there."""
    at = np.minimum(np.searchsorted(own, keys), len(own) - 1)
    return at, own[at] == keys


# The targets of a stage.


class LiveTokens:
    """Outputs of a frozen encoder at every token, computed on demand, since they would fill a disk."""

    def __init__(self, encoder: Encoder, output: Output, bf16: bool = False) -> None:
        self._packed = PackedEncoder(encoder)
        self._output, self._bf16 = output, bf16

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the output at every token, `(N, H)`, text after text."""
        parts = Parts(self._packed, texts, self._output, self._bf16)
        outputs = parts.outputs(parts.batch.cut(self._packed.weights))
        rows: NDArray[np.float32] = outputs.float().cpu().numpy()
        return rows


class TargetStore(NamedTuple):
    """Location and type of stored outputs of frozen encoders; `bf16` is for outputs that are not stored."""

    folder: Path
    kind: TargetType
    bf16: bool
    callback: Callback


def build_targets(
    frozen: Encoder, trained: Encoder, wanted: TargetSpec, data: StageData, store: TargetStore
) -> Targets:
    """Return a frozen encoder's outputs for a stage's texts; missing ones are computed."""
    comparable(frozen, trained, wanted)
    if not are_vectors(wanted.output):
        return LiveTokens(frozen, wanted.output, store.bf16)

    def report(done: int, total: int) -> None:
        store.callback.on_encode(f"targets by {frozen.name}", done, total)

    cache = TargetCache(store.folder, frozen, "text", wanted.output, store.kind)
    cache.add(lambda: texts_for(wanted, data.source.seen(data.batches, data.steps)), report)
    return cache


def texts_for(wanted: TargetSpec, pairs: Iterable[Any]) -> Iterator[str]:
    """Yield the texts in pairs that have an output, with duplicates."""
    return (text for pair in pairs for text in pair.texts[: 2 if wanted.translations else 1])


def targets_folder(config: DistillConfig, run: Path) -> Path:
    """Return the folder with outputs of a run's frozen encoders."""
    return Path(config.targets) if config.targets else run / "targets"


def comparable(frozen: Encoder, trained: Encoder, wanted: TargetSpec) -> None:
    """Raise `ConfigError` unless an encoder can learn a frozen encoder's output."""
    theirs, ours = frozen.dimension(wanted.output), trained.dimension(wanted.output)
    if theirs != ours:
        raise ConfigError(
            f"'{frozen.name}' gives vectors of {theirs} dimensions and '{trained.name}', which learns them, of {ours}; "
            "they must be equal"
        )
    if are_vectors(wanted.output):
        return
    # Token outputs are compared place by place: both encoders must cut a text into the same tokens.
    where = f"output {wanted.output}"
    if frozen.model.tokenizer.get_vocab() != trained.model.tokenizer.get_vocab():
        raise ConfigError(
            f"{where}: '{frozen.name}' and '{trained.name}' have different vocabularies; trim first (metasearch "
            "compress --trim-vocab), then cut the student out of the trimmed encoder and let it learn from that one"
        )
    if frozen.prompt("text") != trained.prompt("text"):
        raise ConfigError(
            f"{where}: '{frozen.name}' puts '{frozen.prompt('text')}' before texts and '{trained.name}' "
            f"'{trained.prompt('text')}'; they must be equal"
        )
    if frozen.limit("text") != trained.limit("text"):
        raise ConfigError(
            f"{where}: '{frozen.name}' takes {frozen.limit('text')} tokens and '{trained.name}' "
            f"{trained.limit('text')}; set max_length of the stage to the smaller number"
        )
