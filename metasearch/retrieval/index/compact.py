"""Compaction: dead rows are left out, and many small segments become one. No vector changes, so no result does."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metasearch.retrieval.index.locations import Locations
from metasearch.retrieval.index.manifest import Part
from metasearch.retrieval.index.segment import Rows, Segment

MOST_ROWS = 2**18
"""Rows of a segment at most: one is in memory while it is written."""
SMALL = 2**15
"""Rows below which a segment is a small one."""
_SMALL_ONES = 8
"""How many small segments there may be."""
_DEAD = 0.25
"""Share of a segment's rows that may be dead."""


def rewritten(sizes: Sequence[int], live: Sequence[int]) -> list[int]:
    """Return the numbers of the segments that are to be written anew, together, from their rows and live rows."""
    wasteful = {i for i, (size, count) in enumerate(zip(sizes, live, strict=True)) if size - count > _DEAD * size}
    small = {i for i, count in enumerate(live) if count < SMALL}
    return sorted(wasteful | small if len(small) > _SMALL_ONES else wasteful)


def compacted(
    folder: Path, segments: Sequence[Segment | None], locations: Locations
) -> tuple[list[Segment], Locations]:
    """Write anew what is worth it, and return all segments and the locations in them.

    Args:
        folder: of the index.
        segments: None for one that is damaged, in which no place is.
        locations: of the documents.

    Raises:
        RunFolderError: a segment cannot be written; what there was is there still.
    """
    live = locations.live([len(segment) if segment else 0 for segment in segments])
    chosen = rewritten([len(mask) for mask in live], [int(mask.sum()) for mask in live])
    kept = [i for i, segment in enumerate(segments) if segment is not None and i not in chosen]
    # Where each row of the old segments goes: segment and row, of those that are kept the same row.
    target = [np.full(len(mask), -1, np.int32) for mask in live]
    rows = [np.arange(len(mask), dtype=np.int32) for mask in live]
    for new, number in enumerate(kept):
        target[number][:] = new
    result = [segment for segment in (segments[i] for i in kept) if segment is not None]
    done = 0
    for number in chosen:
        place = done + np.arange(int(live[number].sum()))
        target[number][live[number]] = len(kept) + place // MOST_ROWS
        rows[number][live[number]] = place % MOST_ROWS
        done += len(place)
    result += [part.save(folder) for part in _merged([(segments[i], live[i]) for i in chosen])]
    return result, _moved(locations, target, rows)


def merged(folder: Path, segments: Iterable[Segment]) -> list[Segment]:
    """Write segments anew as few, with all of their rows; `RunFolderError` where that fails."""
    return [rows.save(folder) for rows in _merged([(each, np.ones(len(each), np.bool_)) for each in segments])]


def parts_of(segments: Sequence[Segment]) -> tuple[Part, ...]:
    """Return segments as a manifest names them."""
    return tuple(Part(segment.stored, len(segment)) for segment in segments)


def _merged(chosen: Sequence[tuple[Segment | None, NDArray[np.bool_]]]) -> Iterator[Rows]:
    """Yield the live rows of segments in portions of `MOST_ROWS`, the last one smaller."""
    waiting: list[Rows] = []
    for segment, live in chosen:
        if segment is None or not live.any():
            continue
        waiting.append(segment.rows(np.flatnonzero(live)))
        while sum(map(len, waiting)) >= MOST_ROWS:
            joined = Rows.joined(waiting)
            yield joined.part(0, MOST_ROWS)
            waiting = [joined.part(MOST_ROWS, len(joined))]
    if sum(map(len, waiting)):
        yield Rows.joined(waiting)


def _moved(locations: Locations, target: Sequence[NDArray[np.int32]], rows: Sequence[NDArray[np.int32]]) -> Locations:
    begins = np.cumsum([0, *map(len, target)])[:-1]
    place = begins[locations.segments] + locations.rows if len(locations) else np.zeros(0, np.int64)
    found = [np.concatenate([np.zeros(0, np.int32), *parts]) for parts in (target, rows)]
    return locations.moved(found[0][place], found[1][place])
