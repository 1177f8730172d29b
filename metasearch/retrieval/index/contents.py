"""An index's passages by file and place, and the words that represent their keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasearch.retrieval.index.base import KEY_BYTES, Keys, Rows, SourceFile
from metasearch.retrieval.index.database import WHOLE, Database


@dataclass(frozen=True, eq=False)
class Contents:
    """The documents' passages: R rows at P places, files in order.

    Attributes:
        files: of the documents.
        ends: file i has the places from `ends[i - 1]` up to `ends[i]`.
        lines: of each place, `(P,)`.
        ids: number of the passage at each place, `(P,)`.
        sorted: numbers of the passages, ascending, `(R,)`.
        rows: row of each of `sorted`, `(R,)`.
        first: first place of each row, `(R,)`.
        counts: how many places each row has, `(R,)`.
    """

    files: Sequence[SourceFile]
    ends: Rows
    lines: NDArray[np.int32]
    ids: Rows
    sorted: Rows
    rows: Rows
    first: Rows
    counts: Rows

    @classmethod
    def read(cls, database: Database, count: int) -> "Contents":
        """Read `count` documents; `RunFolderError` for another number."""
        found = database.files()
        if len(found) != count:
            raise database.damaged("the list of documents", WHOLE)
        ids = np.concatenate([np.zeros(0, np.int64), *(part for _, part, _ in found)])
        lines = np.concatenate([np.zeros(0, np.int32), *(part for *_, part in found)])
        numbers, first, counts = np.unique(ids, return_index=True, return_counts=True)
        order = np.argsort(first)
        rows = np.empty(len(order), np.int64)
        rows[order] = np.arange(len(order))
        ends = np.cumsum([len(part) for _, part, _ in found], dtype=np.int64)
        return cls([file for file, *_ in found], ends, lines, ids, numbers, rows, first[order], counts[order])

    def parts(self) -> Iterator[tuple[SourceFile, slice]]:
        """Yield the files with their places."""
        ends = self.ends.tolist()
        yield from zip(self.files, map(slice, [0, *ends], ends), strict=True)

    def rows_of(self, ids: Rows) -> Rows:
        """Return each passage's row, -1 without a place."""
        if not len(self.sorted):
            return np.full(len(ids), -1, np.int64)
        place = np.minimum(np.searchsorted(self.sorted, ids), len(self.sorted) - 1)
        return np.where(self.sorted[place] == ids, self.rows[place], -1)


def key_words(keys: Keys) -> NDArray[np.bytes_]:
    """Return keys as one word each, which can be sorted and compared, `(n,)`."""
    words: NDArray[np.bytes_] = np.ascontiguousarray(keys).view(f"S{KEY_BYTES}").reshape(len(keys))
    return words


def is_in(ids: Rows, among: Rows) -> NDArray[np.bool_]:
    """Return which numbers are among others, which ascend, `(n,)`."""
    if not len(among):
        return np.zeros(len(ids), np.bool_)
    return np.asarray(among[np.minimum(np.searchsorted(among, ids), len(among) - 1)] == ids)
