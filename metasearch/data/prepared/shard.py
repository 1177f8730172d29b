"""A shard of a prepared corpus: some hundred thousand pairs in one file of arrays.

Notation used for shapes: T distinct texts, P pairs.

    tokens       numbers of the tokens, text after text; 16 bits each where the vocabulary allows it
    token_ends   where each text's tokens end, behind a 0 `(T + 1,)`
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
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from metasearch.data.formats.arrays import ArrayFile, ArraySpec, open_arrays, write
from metasearch.data.prepared.manifest import REMEDY, SHARDS, ShardCounts, Tokens

PAIRS = 2**18
"""Pairs of a shard at most."""
Rows = NDArray[np.int64]
_SMALL = 2**16


class Place(Protocol):
    """The shard that a text is from; see `metasearch.data.prepared.shard.Shard`."""

    number: int

    def ids(self, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the numbers of the tokens of some texts, one after another, and where those of each end."""


class PreparedText(str):
    """A text that was tokenised before. What is cut out or made of it is an ordinary text without tokens.

    Attributes:
        shard: where it is stored.
        row: its row there.
    """

    __slots__ = ("row", "shard")
    shard: Place
    row: int

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def wanted(words: int) -> ArraySpec:
    """Return the arrays of a shard by the size of the vocabulary."""
    one: dict[str, Any] = {"digests": np.uint64, "source": np.uint32, "target": np.uint32, "part": np.uint16}
    one |= {"bytes": np.uint8, "byte_ends": np.uint32, "token_ends": np.uint32}
    one |= {"tokens": np.uint16 if words <= _SMALL else np.uint32}
    return {name: (kind, (-1,)) for name, kind in one.items()}


def write_shard(
    folder: Path,
    words: int,
    texts: Sequence[str],
    ids: Sequence[NDArray[Any]],
    pairs: tuple[Sequence[int], Sequence[int], Sequence[int]],
) -> ArrayFile:
    """Write a shard.

    Args:
        folder: of the shards.
        words: size of the vocabulary.
        texts: distinct texts `T`.
        ids: the tokens of each.
        pairs: row of the source, row of the target and number of the part, each `(P,)`.

    Raises:
        RunFolderError: it cannot be written.
    """
    raw = [text.encode("utf-8", "surrogatepass") for text in texts]
    content = {
        "tokens": np.concatenate([np.zeros(0, np.int64), *ids]),
        "token_ends": _ends(map(len, ids)),
        "bytes": np.frombuffer(b"".join(raw), np.uint8),
        "byte_ends": _ends(map(len, raw)),
        "digests": digests_of(raw),
        **dict(zip(("source", "target", "part"), pairs, strict=True)),
    }
    return write(folder / SHARDS, {name: np.asarray(content[name], kind) for name, (kind, _) in wanted(words).items()})


class Shard:
    """A shard that is mapped into memory.

    Args:
        folder: of the corpus.
        number: of the shard, from 0.
        counts: what the manifest says of it.
        tokenizer: how its texts were tokenised.

    Raises:
        RunFolderError: its file is missing or holds other arrays.
    """

    def __init__(self, folder: Path, number: int, counts: ShardCounts, tokenizer: Tokens) -> None:
        self.number, self.counts, self.tokenizer = number, counts, tokenizer
        self.mapped = open_arrays(folder / SHARDS, counts.stored, wanted(tokenizer.words), REMEDY)
        arrays = self.mapped.arrays
        self.tokens, self.token_ends = arrays["tokens"], arrays["token_ends"]
        self.bytes, self.byte_ends = memoryview(arrays["bytes"].data), arrays["byte_ends"]
        self.source, self.target, self.part = (arrays[name] for name in ("source", "target", "part"))
        self.digests = arrays["digests"]

    def ids(self, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the numbers of the tokens of some texts, one after another, and where those of each end."""
        starts = self.token_ends[rows].astype(np.int64)
        lengths = self.token_ends[rows + 1] - starts
        ends = np.cumsum(lengths)
        return self.tokens[np.repeat(starts - ends + lengths, lengths) + np.arange(ends[-1])], ends

    def texts(self, rows: NDArray[Any]) -> list[PreparedText]:
        """Return the texts of some rows, in their order."""
        found = []
        content, begins, ends = self.bytes, self.byte_ends[rows].tolist(), self.byte_ends[rows + 1].tolist()
        for row, begin, end in zip(rows.tolist(), begins, ends, strict=True):
            text = PreparedText(content[begin:end], "utf-8", "surrogatepass")
            text.shard, text.row = self, row
            found.append(text)
        return found

    def text_lengths(self) -> NDArray[np.int64]:
        """Return the tokens of each text `(T,)`."""
        return self.token_ends[1:].astype(np.int64) - self.token_ends[:-1]

    def lengths(self, pairs: NDArray[Any]) -> Rows:
        """Return the tokens of the longer side of some pairs."""
        rows = np.stack([self.source[pairs], self.target[pairs]]).astype(np.int64)
        found: Rows = (self.token_ends[rows + 1].astype(np.int64) - self.token_ends[rows]).max(0)
        return found


def digests_of(raw: Iterable[bytes]) -> NDArray[np.uint64]:
    """Return 64 bits of the hash of each text, given in UTF-8."""
    return np.frombuffer(b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in raw), "<u8")


def _ends(lengths: Iterable[int]) -> NDArray[np.uint32]:
    return np.fromiter(accumulate(lengths, initial=0), np.uint32)
