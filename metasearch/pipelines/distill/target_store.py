"""Vectors of frozen encoders, computed once and stored on disk for all languages, epochs, stages and runs.

    <folder>/<key>/about.json        what the key stands for: encoder, role, length and output
    <folder>/<key>/segment-<hash>/   texts.npy: digests of N texts; vectors.npy: their vectors, `(N, D)` float32
    <folder>/<key>/lock              held by a process while it computes a segment

A segment is written beside the others and gets its name when it is on the disk, so it is there whole or not at all.
The name is a hash of its content: a damaged segment is noticed, deleted and computed again. Processes that need the
same vectors share the work segment by segment.

Texts are known by a digest of 128 bits. That two of a billion texts share one has a probability of 1.5e-21.
"""

import hashlib
import io
import itertools
import json
import logging
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeGuard

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from metasearch.config.recipe import Role
from metasearch.encoders.encoder import Encoder, Output
from metasearch.encoders.input_module import BY_TOKEN
from metasearch.errors import NonFiniteError
from metasearch.io import move, write_error

# The files of stored vectors: segments that are there whole or not at all, in one folder for all who need them.

log = logging.getLogger(__name__)

_FILES = ("texts", "vectors")
_DAY = 24 * 3600
_HOST = re.sub(r"[^A-Za-z0-9.]", "_", socket.gethostname())


@dataclass(frozen=True)
class Segment:
    """Digests of texts `(N, 2)`, and their vectors `(N, D)`, which stay on disk until they are read."""

    digests: NDArray[np.uint64]
    vectors: NDArray[np.float32]


class SegmentFolder:
    """The segments of one key, and the texts that have no vector in them yet.

    Attributes:
        segments: the segments that are open, by name.
        missing: the distinct texts without a vector by their digests, in the order of the texts.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], texts: Sequence[str]) -> None:
        self.path = path
        self.about = about
        self.segments: dict[str, Segment] = {}
        self.missing: dict[bytes, str] = {}
        raw = digests_of(texts).tobytes()
        for i, text in enumerate(texts):
            self.missing.setdefault(raw[16 * i : 16 * i + 16], text)
        # Without the lock nothing may be deleted: another process may be at work.
        self.find(repair=False)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder; an error of the disk becomes one that says how much room is needed."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with FileLock(self.path / "lock"):
                yield
        except OSError as error:
            needed = len(self.missing) * bytes_each(self.about["dimension"])
            raise write_error(self.path, error, needed) from error

    def find(self, repair: bool) -> None:
        """Open segments that are new here. With `repair`, under the lock, delete damaged ones and leftovers."""
        for path in sorted(self.path.glob("segment-*")):
            if path.name in self.segments:
                continue
            try:
                self._open(path)
            except (OSError, ValueError) as error:
                if repair:
                    log.warning("%s is damaged and computed again: %s", path, error)
                    shutil.rmtree(path)
        for path in sorted(self.path.glob("new-*")) if repair else ():
            # A process of this machine is dead: a living one holds the lock while it writes. Of one elsewhere that is
            # not known for a day, on a file system where each machine has locks of its own.
            if path.name.startswith(f"new-{_HOST}-") or time.time() - path.stat().st_mtime > _DAY:
                shutil.rmtree(path)

    def add(self, texts: Mapping[bytes, str], vectors: NDArray[np.float32]) -> None:
        """Write a segment of some missing texts, under the lock."""
        new = self.path / f"new-{_HOST}-{os.getpid()}"
        try:
            new.mkdir()
            digests = np.frombuffer(b"".join(texts), "<u8").reshape(-1, 2)
            for name, values in zip(_FILES, (digests, vectors), strict=True):
                # By way of memory: of a full disk NumPy says only how many values it has written.
                content = io.BytesIO()
                np.save(content, values)
                with (new / f"{name}.npy").open("wb") as file:
                    file.write(content.getbuffer())
                    file.flush()
                    # On the disk before the rename: a crash would else leave a whole name with half a content.
                    os.fsync(file.fileno())
            (new / "about.json").write_text(json.dumps(self.about, indent=2, ensure_ascii=False), encoding="utf-8")
            # The same for all segments of the folder: it moves up, and is replaced whole.
            move(new / "about.json", self.path / "about.json")
            path = self.path / f"segment-{_hash(new)}"
            if not path.exists():  # as it may where another machine has encoded the same texts meanwhile
                move(new, path)
        finally:
            shutil.rmtree(new, ignore_errors=True)
        try:
            self._open(path)
        except ValueError as error:
            # What was just written reads back differently: `locked` says so as of any other error of the disk.
            raise OSError(f"{path}: {error}") from error

    def _open(self, path: Path) -> None:
        """Open a segment, whose texts are missing no more; `OSError` or `ValueError` when it is damaged."""
        if f"segment-{_hash(path)}" != path.name:
            raise ValueError("its content is not what was written")
        # The digests are searched and come into memory; the vectors stay on the disk.
        digests, vectors = (np.load(path / f"{name}.npy", mmap_mode="r") for name in _FILES)
        # Plain views: indexing a numpy.memmap takes ten times as long as reading the row.
        self.segments[path.name] = Segment(np.array(digests), np.asarray(vectors))
        raw = digests.tobytes()
        for start in range(0, len(raw), 16):
            self.missing.pop(raw[start : start + 16], None)


def bytes_each(dimension: int) -> int:
    """Return the bytes of a text in a segment: its digest and its vector."""
    return 16 + 4 * dimension


def digests_of(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return 128 bits of the hash of each text, `(N, 2)`."""
    # A corpus may hold half a surrogate pair, which strict UTF-8 refuses; `<u8` is the same on every machine.
    raw = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts)
    return np.frombuffer(b"".join(raw), "<u8").reshape(-1, 2)


def _hash(segment: Path) -> str:
    digest = hashlib.sha256()
    for name in _FILES:
        with (segment / f"{name}.npy").open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


VectorOutput = Literal["sentence", "pooled", "embedding"]
"""Outputs of an encoder that are one vector for each text."""


def are_vectors(output: Output) -> TypeGuard[VectorOutput]:
    """Return whether an output is one vector for each text, which can be kept."""
    return output not in BY_TOKEN


SEGMENT = 4096
"""Number of texts in a segment: whole batches of `Encoder.encode`, so that segments change no batch and no bit."""


class Targets:
    """The stored vectors `(N, D)` of one encoder, role and output, read from the disk when they are needed."""

    def __init__(self, segments: Sequence[Segment], dimension: int) -> None:
        self.dimension = dimension
        self._vectors = [segment.vectors for segment in segments]
        # The empty parts are for no segments at all, which `concatenate` refuses.
        digests = _as_bytes(np.concatenate([np.zeros((0, 2), np.uint64), *(segment.digests for segment in segments)]))
        sizes = [len(segment.digests) for segment in segments]
        order = np.argsort(digests)
        self._digests = digests[order]
        self._segment = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[order]
        self._row = np.concatenate([np.zeros(0, np.int32), *(np.arange(n, dtype=np.int32) for n in sizes)])[order]

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, `(B, D)`, in their order; `KeyError` for one that was not asked for before."""
        wanted = _as_bytes(digests_of(texts))
        places = np.searchsorted(self._digests, wanted)
        known = places < len(self._digests)
        # A place behind the last digest has nothing to compare with.
        known[known] = self._digests[places[known]] == wanted[known]
        if not known.all():
            raise KeyError(f"no stored vector of the text {texts[int(np.argmin(known))]!r}")
        vectors = np.empty((len(texts), self.dimension), np.float32)
        segments, rows = self._segment[places].tolist(), self._row[places].tolist()
        for i, (segment, row) in enumerate(zip(segments, rows, strict=True)):
            vectors[i] = self._vectors[segment][row]
        return vectors


def stored_targets(
    folder: Path,
    encoder: Encoder,
    texts: Sequence[str],
    role: Role,
    output: VectorOutput = "sentence",
    on_progress: Callable[[int, int], None] | None = None,
) -> Targets:
    """Return the vectors of texts; missing ones are computed and stored, a segment at a time, longest texts first.

    Several processes and runs may use a folder at once. Vectors depend in their last bits on the texts that share their
    batch. A stored vector is never computed again, so every later run sees the same bits; a folder filled in another
    order may differ in the last ones. Finished segments stay when this is interrupted, also by an exception of
    `on_progress`, which is called after each segment with the number of new texts done and of all new texts.

    Raises:
        NonFiniteError: the encoder gives a vector that is not finite.
        RunFolderError: the folder cannot be written, for want of space say; finished segments stay.
    """
    stored = _opened(folder, encoder, texts, role, output)
    items = list(stored.missing.items())
    lengths = encoder.lengths([text for _, text in items], role)
    # The order of `Encoder.encode`: segments have the batches that one call with all texts would have.
    stored.missing = dict(items[i] for i in np.argsort(-lengths, kind="stable"))
    while stored.missing:
        with stored.locked():
            stored.find(repair=True)
            chunk = dict(itertools.islice(stored.missing.items(), SEGMENT))
            # Another process may have added the last ones meanwhile.
            if chunk:
                stored.add(chunk, _encoded(encoder, list(chunk.values()), role, output))
        if on_progress:
            on_progress(len(items) - len(stored.missing), len(items))
    return Targets(list(stored.segments.values()), encoder.dimension(output))


def _opened(folder: Path, encoder: Encoder, texts: Sequence[str], role: Role, output: VectorOutput) -> SegmentFolder:
    key, about = key_of(encoder, role, output)
    return SegmentFolder(folder / key, about, texts)


def key_of(encoder: Encoder, role: Role, output: VectorOutput, **more: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of the folder of an encoder's outputs, and what it stands for, `more` included."""
    about = {
        "fingerprint": encoder.fingerprint,
        "role": role,
        "max_length": encoder.limit(role),
        "output": output,
        "dimension": encoder.dimension(output),
        **more,
    }
    # The key has the fingerprint of the weights and not the encoder's name, which may come to stand for others.
    key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    return key, {"encoder": encoder.name, **about}


def _as_bytes(digests: NDArray[np.uint64]) -> NDArray[np.bytes_]:
    """Return digests `(N, 2)` as texts of 16 bytes `(N,)`, which numpy can sort and search."""
    # NumPy ignores zeros at the end of bytes, which makes no two values of one width equal.
    return np.ascontiguousarray(digests).view("S16").ravel()


def _encoded(encoder: Encoder, texts: Sequence[str], role: Role, output: VectorOutput) -> NDArray[np.float32]:
    vectors = encoder.encode(texts, role, output)
    require_finite(vectors, encoder, texts, role, output)
    return vectors


def require_finite(
    vectors: NDArray[Any], encoder: Encoder, texts: Sequence[str], role: Role, output: VectorOutput
) -> None:
    """Raise `NonFiniteError` where one of an encoder's vectors `(N, D)` is not finite; it names the text."""
    finite = np.isfinite(vectors).all(1)
    if not finite.all():
        text = str(texts[int(np.argmin(finite))])
        shown = text if len(text) <= 80 else f"{text[:80]}..."
        raise NonFiniteError(f"encoder {encoder.name}: its {output} vector of the {role} '{shown}' is not finite")
