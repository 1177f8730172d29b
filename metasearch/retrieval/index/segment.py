"""A segment: quantised vectors with their texts, in one file that is never changed."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.data.formats.arrays import (
    ArrayFile,
    ArrayReadError,
    ArraySpec,
    LoadedArrays,
    MappedArrays,
    json_array,
    write,
)
from metasearch.errors import RunFolderError
from metasearch.retrieval.index.arrays import SEGMENTS, damaged, open_arrays
from metasearch.retrieval.index.quantise import to_int8

KEY_BYTES = 16

log = logging.getLogger(__name__)

Keys = NDArray[np.uint8]
"""Hashes of what a vector depends on, `(n, 16)`."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a segment in memory: n vectors of D dimensions and their texts.

    Attributes:
        codes: `(n, D)`, as `to_int8` gives them.
        steps: `(n,)`.
        keys: `(n, 16)`.
        texts: in UTF-8.
        languages: tag of each.
    """

    codes: NDArray[np.int8]
    steps: NDArray[np.float32]
    keys: Keys
    texts: Sequence[bytes]
    languages: Sequence[str]

    @classmethod
    def of(cls, vectors: NDArray[np.float32], keys: Keys, texts: Sequence[str], languages: Sequence[str]) -> "Rows":
        """Return rows of vectors `(n, D)`, quantised."""
        return cls(*to_int8(vectors), keys, [text.encode() for text in texts], languages)

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> "Rows":
        """Return the rows of several, one after another."""
        arrays = [np.concatenate([getattr(part, name) for part in parts]) for name in ("codes", "steps", "keys")]
        texts = [text for part in parts for text in part.texts]
        return cls(arrays[0], arrays[1], arrays[2], texts, [tag for part in parts for tag in part.languages])

    def part(self, start: int, end: int) -> "Rows":
        """Return the rows from `start` up to `end`."""
        arrays = (self.codes[start:end], self.steps[start:end], self.keys[start:end])
        return Rows(*arrays, self.texts[start:end], self.languages[start:end])

    def __len__(self) -> int:
        return len(self.steps)

    def save(self, folder: Path) -> "Segment":
        """Write a segment of an index, whole or not at all; `RunFolderError` where that fails."""
        tags = sorted(set(self.languages))
        numbers = {tag: i for i, tag in enumerate(tags)}
        arrays: dict[str, NDArray[Any]] = {
            "codes": self.codes,
            "steps": self.steps,
            "keys": self.keys,
            "ends": np.cumsum([len(text) for text in self.texts], dtype=np.int64),
            "texts": np.frombuffer(b"".join(self.texts), np.uint8),
            "language": np.array([numbers[tag] for tag in self.languages], np.int32),
            "tags": json_array(tags),
        }
        stored = write(folder / SEGMENTS, arrays)
        return Segment.open(folder, stored, len(self), self.codes.shape[1])


@dataclass(frozen=True, eq=False)
class Segment:
    """A segment on the disk, of n vectors of D dimensions; what is not used is not read.

    Attributes:
        file: its file.
    """

    file: MappedArrays

    @classmethod
    def open(cls, folder: Path, stored: ArrayFile, rows: int, dimension: int) -> "Segment":
        """Open a segment of an index; `RunFolderError` where it is missing or its header or size is wrong."""
        wanted: ArraySpec = {
            "codes": (np.int8, (rows, dimension)),
            "steps": (np.float32, (rows,)),
            "keys": (np.uint8, (rows, KEY_BYTES)),
            "ends": (np.int64, (rows,)),
            "texts": (np.uint8, (-1,)),
            "language": (np.int32, (rows,)),
            "tags": (np.uint8, (-1,)),
        }
        return cls(open_arrays(folder / SEGMENTS, stored, wanted))

    def __len__(self) -> int:
        return len(self.arrays["steps"])

    @property
    def stored(self) -> ArrayFile:
        """Name and size of its file."""
        return self.file.stored

    @property
    def arrays(self) -> LoadedArrays:
        """All that is in it, by name."""
        return self.file.arrays

    @property
    def codes(self) -> NDArray[np.int8]:
        """Codes of the vectors, `(n, D)`."""
        return self.arrays["codes"]

    @property
    def steps(self) -> NDArray[np.float32]:
        """Steps of the vectors, `(n,)`."""
        return self.arrays["steps"]

    @cached_property
    def tags(self) -> list[str]:
        """Languages of the texts; `languages` numbers them."""
        try:
            found: list[str] = json.loads(self.arrays["tags"].tobytes())
        except ValueError:
            raise self._damaged("its list of languages is not JSON") from None
        if not isinstance(found, list) or not all(isinstance(tag, str) for tag in found):
            raise self._damaged("its list of languages is none")
        return found

    @cached_property
    def languages(self) -> NDArray[np.int32]:
        """Number of the language of each text, `(n,)`."""
        found: NDArray[np.int32] = self.arrays["language"]
        if not (0 <= found.min(initial=0) <= found.max(initial=0) < max(len(self.tags), 1)):
            raise self._damaged("it numbers languages that it does not name")
        return found

    def text(self, row: int) -> str:
        """Return the text of a row."""
        try:
            return self._bytes(row).decode()
        except UnicodeDecodeError:
            raise self._damaged(f"the text of row {row} is not UTF-8") from None

    def tag(self, row: int) -> str:
        """Return the language of a row."""
        return self.tags[int(self.languages[row])]

    def rows(self, chosen: NDArray[np.int64]) -> Rows:
        """Return some rows in memory, in the order in which they are named."""
        tags = self.tags
        arrays = (self.codes[chosen], self.steps[chosen], self.arrays["keys"][chosen])
        languages = [tags[number] for number in self.languages[chosen]]
        return Rows(*arrays, [self._bytes(row) for row in chosen.tolist()], languages)

    def find(self, keys: Keys) -> NDArray[np.int64]:
        """Return the row of each key, -1 of one that is not here, `(n,)`."""
        order, known = self._sorted
        if not len(known):
            return np.full(len(keys), -1, np.int64)
        wanted = as_words(keys)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, order[place], -1)

    def check(self) -> None:
        """Raise `RunFolderError` where its file is not, to the bit, what was written."""
        self.file.check()

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.bytes_]]:
        words = as_words(self.arrays["keys"])
        order = np.argsort(words, kind="stable")
        return order, words[order]

    def _bytes(self, row: int) -> bytes:
        ends = self.arrays["ends"]
        begin, end = int(ends[row - 1]) if row else 0, int(ends[row])
        if not 0 <= begin <= end <= len(self.arrays["texts"]):
            raise self._damaged(f"the text of row {row} is beyond it")
        return self.arrays["texts"][begin:end].tobytes()

    def _damaged(self, what: str) -> RunFolderError:
        return damaged(self.file.path, what)


def sound(folder: Path, stored: ArrayFile, rows: int, dimension: int) -> Segment | None:
    """Return a segment that is whole; None of one that is damaged, whose texts are then encoded again.

    Raises:
        RunFolderError: its file may be sound, and cannot be read.
    """
    try:
        segment = Segment.open(folder, stored, rows, dimension)
        segment.check()
    except ArrayReadError:
        raise
    except RunFolderError as error:
        log.warning("%s; the vectors of its %d passages are made again", error, rows)
        return None
    return segment


def as_words(keys: Keys) -> NDArray[np.bytes_]:
    """Return keys as one word each, which can be sorted and compared, `(n,)`."""
    words: NDArray[np.bytes_] = np.ascontiguousarray(keys).view(f"S{KEY_BYTES}").reshape(len(keys))
    return words
