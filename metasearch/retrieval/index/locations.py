"""Locations: which rows of the segments the documents have, and where. A row without a place is dead."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metasearch.data.formats.arrays import ArrayFile, json_array, write
from metasearch.retrieval.index.arrays import LOCATIONS, check, damaged, open_arrays
from metasearch.retrieval.index.segment import Keys

_SEGMENT_BITS = 32


@dataclass(frozen=True)
class SourceFile:
    """A file of the documents as it was when its passages were cut.

    Attributes:
        path: as it is shown, with forward slashes.
        size: bytes.
        sha256: hash of its content, in hexadecimal digits.
        language: that its name told; its siblings may tell another one later.
    """

    path: str
    size: int
    sha256: str
    language: str = ""


@dataclass(frozen=True, eq=False)
class FilePlaces:
    """The passages of a file of the documents, n of them.

    Attributes:
        file: the file.
        keys: of its passages, `(n, 16)`.
        lines: in which they begin, `(n,)`.
    """

    file: SourceFile
    keys: Keys
    lines: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Locations:
    """P places in F files, in the order of the files and their lines.

    Attributes:
        files: in the order in which hits of equal scores come.
        ends: file i has the places from `ends[i - 1]` up to `ends[i]`, `(F,)`.
        segments: number of the segment of each place, `(P,)`.
        rows: row in that segment, `(P,)`.
        lines: line of the file, from 1, `(P,)`.
    """

    files: Sequence[SourceFile]
    ends: NDArray[np.int64]
    segments: NDArray[np.int32]
    rows: NDArray[np.int32]
    lines: NDArray[np.int32]

    @classmethod
    def none(cls) -> "Locations":
        """Return the locations of no file."""
        empty = np.zeros(0, np.int32)
        return cls((), np.zeros(0, np.int64), empty, empty, empty)

    def save(self, folder: Path) -> ArrayFile:
        """Write them to an index, whole or not at all; `RunFolderError` where that fails."""
        files = json_array([asdict(file) for file in self.files])
        places = {"segments": self.segments, "rows": self.rows, "lines": self.lines}
        return write(folder / LOCATIONS, {**places, "ends": self.ends, "files": files})

    @classmethod
    def open(cls, folder: Path, stored: ArrayFile, sizes: Sequence[int]) -> "Locations":
        """Read them, checked against their hash.

        Args:
            folder: of the index.
            stored: their file.
            sizes: rows of each segment.

        Raises:
            RunFolderError: the file is missing or damaged.
        """
        place = folder / LOCATIONS
        check(place, stored)
        numbers = {name: (np.int32, (-1,)) for name in ("segments", "rows", "lines")}
        found = open_arrays(place, stored, {**numbers, "ends": (np.int64, (-1,)), "files": (np.uint8, (-1,))}).arrays
        files = [SourceFile(**file) for file in json.loads(found["files"].tobytes())]
        segments, rows, lines = (np.array(found[name]) for name in ("segments", "rows", "lines"))
        limits = np.array([*sizes, 0], np.int64)
        if len(segments) and not (
            0 <= segments.min() <= segments.max() < len(sizes) and (rows < limits[segments]).all()
        ):
            raise damaged(stored.path(place), "it names rows that no segment has")
        return cls(files, np.array(found["ends"]), segments, rows, lines)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def words(self) -> NDArray[np.int64]:
        """Segment and row of each place as one number, `(P,)`."""
        return self.segments.astype(np.int64) << _SEGMENT_BITS | self.rows

    def part(self, number: int) -> slice:
        """Return which places a file has."""
        return slice(int(self.ends[number - 1]) if number else 0, int(self.ends[number]))

    def live(self, sizes: Sequence[int]) -> list[NDArray[np.bool_]]:
        """Return for each segment which of its rows have a place."""
        found = [np.zeros(size, np.bool_) for size in sizes]
        for number, mask in enumerate(found):
            mask[self.rows[self.segments == number]] = True
        return found

    def moved(self, segments: NDArray[np.int32], rows: NDArray[np.int32]) -> "Locations":
        """Return the same places with their texts in other segments and rows, `(P,)`."""
        return Locations(self.files, self.ends, segments, rows, self.lines)


def located(
    parts: Iterable[tuple[SourceFile, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]],
) -> Locations:
    """Return the locations of files, each with segments, rows and lines of its places."""
    found = list(parts)
    if not found:
        return Locations.none()
    arrays = [np.concatenate([part[i] for part in found]).astype(np.int32) for i in (1, 2, 3)]
    ends = np.cumsum([len(part[1]) for part in found], dtype=np.int64)
    return Locations([part[0] for part in found], ends, arrays[0], arrays[1], arrays[2])
