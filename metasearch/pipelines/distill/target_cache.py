"""Vectors of frozen encoders, computed once and kept on disk for all languages, epochs, stages and runs.

    <folder>/<key>/about.json          what the key stands for: encoder, length, output and type
    <folder>/<key>/<sha256>.vectors    128-bit digests of texts, ascending, and behind them the vectors
    <folder>/<key>/lock                held by a process while it computes vectors

Two of a billion texts share a digest with a probability of 1.5e-21. A second process waits for the first one and
computes missing vectors. A file gets its name when it is on the disk, so it is there whole or not at all; a damaged one
is deleted and computed again. Files are mapped into memory, not read whole.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from metasearch.config.precision import SHORT, TargetType
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import Output
from metasearch.errors import ConfigError, NonFiniteError, RunFolderError
from metasearch.io import atomic_write, cache_key, digest, sha256_of_bytes, write_error
from metasearch.training.packing.encoder import PackedEncoder
from metasearch.training.packing.parts import Parts

log = logging.getLogger(__name__)

VectorOutput = Literal["sentence", "pooled", "embedding"]
"""Outputs of an encoder that are one vector for each text."""
PIECE = 2**13
"""Texts that are computed before they are written: whole batches of `Encoder.encode`."""
_MANY = 2**21
"""Texts for each factor of `PIECE`, since a process has a limit of open files."""
_SUFFIX = ".vectors"
_DIGEST = 16
"""Bytes of the digest of a text."""

Progress = Callable[[int, int], None]
"""Called after each piece with the texts done and an upper bound of all new texts."""


class TargetCache:
    """Stored vectors for one frozen encoder and output, in `kind` of numbers.

    Several processes and runs may use a folder at once. The last bits of a vector depend on the texts of its batch; a
    stored vector is never computed again, so every later run has the same bits.
    """

    def __init__(
        self, folder: Path, encoder: Encoder, output: VectorOutput = "sentence", kind: TargetType = "float32"
    ) -> None:
        self.dimension = encoder.dimension(output)
        self._encoder, self._output, self._type = encoder, output, np.dtype(kind)
        about = {
            "fingerprint": encoder.fingerprint,
            "max_length": encoder.limit("text"),
            "output": output,
            "dimension": self.dimension,
            "type": SHORT[kind],
        }
        self.folder, self._about = folder / cache_key(about), {"encoder": encoder.name, **about}
        self._pieces: dict[Path, tuple[NDArray[Any], NDArray[Any]]] = {}
        """File → ascending digests, and their vectors."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors `(B, D)` in order; `KeyError` for a text that was not requested before."""
        found, keys = np.empty((len(texts), self.dimension), np.float32), compute_digests(texts)
        known = np.zeros(len(texts), np.bool_)
        for own, vectors in self._pieces.values():
            at, here = _find(own, keys)
            found[here] = vectors[at[here]]
            known |= here
        if not known.all():
            raise KeyError(f"no stored vector of the text {texts[int(np.argmin(known))]!r}")
        return found

    def add(self, texts: Callable[[], Iterable[str]], on_progress: Progress | None = None) -> None:
        """Compute and store missing vectors; `texts` is called twice, so that the texts need not fit in memory."""
        self._open_pieces(repair=False)
        total, done = sum(len(self._missing(block)) for block in _blocks(texts())), 0
        if not total:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / "lock"):
                atomic_write(self.folder / "about.json", json.dumps(self._about, indent=2, ensure_ascii=False))
                self._open_pieces(repair=True)
                for piece in self._new_texts(texts(), PIECE * (1 + total // _MANY)):
                    self._compute(piece)
                    done += len(piece)
                    if on_progress:
                        on_progress(done, max(total, done))
        except OSError as error:
            needed = (total - done) * (_DIGEST + self._type.itemsize * self.dimension)
            raise write_error(self.folder, error, needed) from error

    def _new_texts(self, texts: Iterable[str], size: int) -> Iterator[list[str]]:
        """Yield distinct texts without a vector in their order, `size` at a time."""
        pending: dict[str, None] = {}
        for block in _blocks(texts):
            pending |= dict.fromkeys(self._missing(block))
            while len(pending) >= size:
                yield (piece := list(islice(pending, size)))
                pending = dict.fromkeys(islice(pending, len(piece), None))
        if pending:
            yield list(pending)

    def _missing(self, texts: Iterable[str]) -> list[str]:
        """Return the distinct texts that have no vector yet, in their order."""
        distinct = list(dict.fromkeys(texts))
        keys, known = compute_digests(distinct), np.zeros(len(distinct), np.bool_)
        for own, _ in self._pieces.values():
            known |= _find(own, keys)[1]
        return [distinct[i] for i in np.flatnonzero(~known).tolist()]

    def _compute(self, texts: Sequence[str]) -> None:
        """Compute and store the vectors of distinct texts; `NonFiniteError` names a text."""
        # What 16 bits cannot hold is infinite.
        vectors = self._encoder.encode(texts, "text", self._output).astype(self._type)
        finite = np.isfinite(vectors).all(1)
        if not finite.all():
            text = str(texts[int(np.argmin(finite))])
            shown = text if len(text) <= 80 else f"{text[:80]}..."
            what = f"its {self._output} vector of the text '{shown}'"
            raise NonFiniteError(f"encoder {self._encoder.name}: {what} is not finite")
        keys = compute_digests(texts)
        order = np.argsort(keys)
        content = keys[order].tobytes() + vectors[order].tobytes()
        atomic_write(self.folder / f"{sha256_of_bytes(content)}{_SUFFIX}", content)
        self._open_pieces(repair=False)

    def _open_pieces(self, repair: bool) -> None:
        """Open files that are new here. With `repair`, under the lock, delete damaged ones."""
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            if path in self._pieces:
                continue
            try:
                if digest(path) == path.stem:
                    self._pieces[path] = self._map(path)
                elif repair:
                    log.warning("%s: checksum mismatch; its vectors are computed again", path)
                    path.unlink()
            except OSError as error:
                # It may be sound: this process may have too many open files, or no right to read it.
                if repair:
                    raise RunFolderError(f"{path} cannot be read: {error.strerror or error}") from None

    def _map(self, path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
        content = np.memmap(path, np.uint8, "r")
        count = len(content) // (_DIGEST + self._type.itemsize * self.dimension)
        keys, vectors = np.split(np.asarray(content), [_DIGEST * count])
        return keys.view(f"S{_DIGEST}"), vectors.view(self._type).reshape(count, self.dimension)


def compute_digests(texts: Sequence[str]) -> NDArray[Any]:
    """Return the digest of each text as bytes, which numpy can sort and search, `(N,)`."""
    # A corpus may hold half a surrogate pair, which strict UTF-8 refuses.
    raw = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest() for text in texts)
    # NumPy ignores zeros at the end of bytes, which makes no two values of one width equal.
    return np.frombuffer(b"".join(raw), f"S{_DIGEST}")


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield texts, some thousand at a time."""
    rest = iter(texts)
    while block := list(islice(rest, PIECE)):
        yield block


def _find(own: NDArray[Any], keys: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return each key's position among ascending ones, and whether it is there."""
    at = np.minimum(np.searchsorted(own, keys), len(own) - 1)
    return at, own[at] == keys


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


def require_comparable(frozen: Encoder, trained: Encoder, output: Output) -> None:
    """Raise `ConfigError` unless an encoder can learn a frozen encoder's output."""
    theirs, ours = frozen.dimension(output), trained.dimension(output)
    if theirs != ours:
        raise ConfigError(
            f"'{frozen.name}' gives vectors of {theirs} dimensions and '{trained.name}', which learns them, of {ours}; "
            "they must be equal"
        )
    if output != "states":
        return
    # Token outputs are compared place by place: both encoders must cut a text into the same tokens.
    where = f"output {output}"
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
