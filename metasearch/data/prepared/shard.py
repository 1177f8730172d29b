"""A shard of a prepared corpus: some hundred thousand pairs in one array file.

Notation used for shapes: T distinct texts, P pairs.

    bytes        the texts in UTF-8, one after another
    byte_ends    where each text ends, behind a 0 `(T + 1,)`
    digests      64 bits of the hash of each text `(T,)`
    source       row of the text in the pivot language `(P,)`
    target       row of its translation `(P,)`
    part         number of the part of each pair `(P,)`
"""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.data.formats.arrays import ArrayFile, ArraySpec, open_arrays, write
from metasearch.data.prepared.manifest import REMEDY, SHARDS, ShardCounts

PAIRS = 2**18
"""Pairs of a shard at most."""
ARRAYS: ArraySpec = {
    "digests": (np.uint64, (-1,)), "source": (np.uint32, (-1,)), "target": (np.uint32, (-1,)),
    "part": (np.uint16, (-1,)), "bytes": (np.uint8, (-1,)), "byte_ends": (np.uint32, (-1,)),
}  # fmt: skip
Rows = NDArray[np.int64]


class PreparedText(str):
    """A text in a prepared corpus that knows its position; derived texts are ordinary strings.

    Attributes:
        shard: where it is stored.
        row: its row there.
    """

    __slots__ = ("row", "shard")
    shard: "Shard"
    row: int

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def write_shard(
    folder: Path, texts: Sequence[str], pairs: tuple[Sequence[int], Sequence[int], Sequence[int]]
) -> ArrayFile:
    """Write a shard.

    Args:
        folder: of the corpus.
        texts: distinct texts `T`.
        pairs: row of the source, row of the target and number of the part, each `(P,)`.

    Raises:
        RunFolderError: it cannot be written.
    """
    raw = [text.encode("utf-8", "surrogatepass") for text in texts]
    content = {
        "bytes": np.frombuffer(b"".join(raw), np.uint8),
        "byte_ends": np.fromiter(accumulate(map(len, raw), initial=0), np.uint32),
        "digests": digests_of(raw),
        **dict(zip(("source", "target", "part"), pairs, strict=True)),
    }
    return write(folder / SHARDS, {name: np.asarray(content[name], kind) for name, (kind, _) in ARRAYS.items()})


class Shard:
    """A shard that is mapped into memory.

    Args:
        folder: of the corpus.
        number: of the shard, from 0.
        counts: what the manifest says of it.

    Raises:
        RunFolderError: its file is missing or holds other arrays.
    """

    def __init__(self, folder: Path, number: int, counts: ShardCounts) -> None:
        self.number, self.counts = number, counts
        self.mapped = open_arrays(folder / SHARDS, counts.stored, ARRAYS, REMEDY)
        arrays = self.mapped.arrays
        self.bytes, self.byte_ends = memoryview(arrays["bytes"].data), arrays["byte_ends"]
        self.source, self.target, self.part = (arrays[name] for name in ("source", "target", "part"))
        self.digests = arrays["digests"]

    def texts(self, rows: NDArray[Any]) -> list[PreparedText]:
        """Return the texts of some rows, in order."""
        found = []
        content, begins, ends = self.bytes, self.byte_ends[rows].tolist(), self.byte_ends[rows + 1].tolist()
        for row, begin, end in zip(rows.tolist(), begins, ends, strict=True):
            text = PreparedText(content[begin:end], "utf-8", "surrogatepass")
            text.shard, text.row = self, row
            found.append(text)
        return found


def digests_of(raw: Iterable[bytes]) -> NDArray[np.uint64]:
    """Return a 64-bit hash for each text, given in UTF-8."""
    return np.frombuffer(b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in raw), "<u8")
