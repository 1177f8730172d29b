"""Writes the pairs of a shard."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metasearch.data.formats.arrays import check
from metasearch.data.prepared.blocks import Block
from metasearch.data.prepared.manifest import REMEDY, SHARDS, ShardCounts, read_sealed, write_sealed
from metasearch.data.prepared.shard import write_shard
from metasearch.errors import RunFolderError

ShardPieces = Sequence[tuple[int, Path, NDArray[np.int32]]]
"""Number of a part, file of a block, and pairs of it."""


def make_shard(folder: Path, number: int, pieces: ShardPieces) -> ShardCounts:
    """Write a shard, unless it was before; a note of it in `work` is written last.

    Raises:
        RunFolderError: it cannot be written.
    """
    note = folder / "work" / f"shard-{number:06d}.json"
    if made := _read_made(folder, note):
        return made
    texts: dict[str, int] = {}
    source, target, part = list[int](), list[int](), list[int]()
    for own, path, pairs in pieces:
        for first, second in Block(path).texts(pairs):
            source.append(texts.setdefault(first, len(texts)))
            target.append(texts.setdefault(second, len(texts)))
        part += [own] * len(pairs)
    stored = write_shard(folder, list(texts), (source, target, part))
    counts = ShardCounts(stored=stored, pairs=len(part), texts=len(texts))
    write_sealed(note, counts.model_dump())
    return counts


def _read_made(folder: Path, note: Path) -> ShardCounts | None:
    """Return what was written of a shard before; None where it is not there whole."""
    if not note.is_file():
        return None
    try:
        tree, _ = read_sealed(note)
        counts = ShardCounts.model_validate({key: tree[key] for key in ShardCounts.model_fields})
        check(folder / SHARDS, counts.stored, REMEDY)
    except RunFolderError:
        note.unlink()
        return None
    return counts
