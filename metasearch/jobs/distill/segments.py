"""The files of stored vectors: segments that are there whole or not at all, in one folder for all who need them."""

import hashlib
import io
import json
import logging
import os
import re
import shutil
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from metasearch.files import move, unwritable

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
            raise unwritable(self.path, error, needed) from error

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
