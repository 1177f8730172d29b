"""Assignment of pairs to shards, and line counts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metasearch.data.formats.arrays import check
from metasearch.data.parallel.files import Part
from metasearch.data.prepared.blocks import Block
from metasearch.data.prepared.manifest import REMEDY, SHARDS, PartCounts, ShardCounts, read_sealed, write_sealed
from metasearch.data.prepared.shard import PAIRS, write_shard
from metasearch.data.report import EXAMPLES
from metasearch.errors import DataError, RunFolderError

Piece = tuple[int, int, NDArray[np.int32]]
"""Number of a part and of a block, and pairs of that block."""


@dataclass
class Counts:
    """Line counts for a part; each line is counted once.

    Attributes:
        read: lines, to the last one that is looked at.
        pairs: that stay before long ones are left out.
        dropped: reason → lines.
        examples: the first few lines of each reason, as `file:line: reason`.
    """

    part: Part
    read: int = 0
    pairs: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def drop(self, why: str, line: int) -> None:
        """Count a dropped line."""
        self.dropped[why] += 1
        if self.dropped[why] <= EXAMPLES:
            self.examples.append(f"{self.part.path}:{line}: {why}")

    def done(self) -> PartCounts:
        """Return the counts; `pairs` is the number of kept pairs."""
        return PartCounts(
            paths=tuple(map(str, self.part.paths)),
            corpus=self.part.corpus,
            language=self.part.language,
            pivot=self.part.pivot,
            read=self.read,
            dropped=dict(sorted(self.dropped.items())),
            pairs=self.read - self.dropped.total(),
        )


def pieces(
    blocks: Sequence[tuple[int, Block]], kept: Sequence[NDArray[np.bool_]], counts: Sequence[Counts], most: int
) -> Iterator[Piece]:
    """Yield the pairs that stay, block after block, and count the lines.

    Args:
        blocks: all blocks in the order of the lines, each with the number of its part.
        kept: which pairs of each block are no duplicates.
        counts: of each part; they are right once all pieces were taken.
        most: pairs that are taken of a part, at most; 0 takes all. Lines after the last of them are not counted.

    Raises:
        DataError: a part has no pair.
    """
    for number, (part, block) in enumerate(blocks):
        own = counts[part]
        if most and own.pairs >= most:
            continue
        stays = kept[number]
        pairs = np.flatnonzero(stays)[: most - own.pairs if most else None]
        lines = block.array("lines")
        own.pairs += len(pairs)
        last = int(lines[pairs[-1]]) if most and own.pairs == most else own.read + block.read
        _count(own, block, lines[~stays], last)
        own.read = last
        yield part, number, pairs.astype(np.int32)
    for own in counts:
        if not own.pairs:
            why = ", ".join(f"{count} {reason}" for reason, count in own.dropped.items())
            raise DataError(
                f"{own.part.path}: " + (f"no line of {own.read} is a pair: {why}" if own.read else "the file is empty")
            )


def _count(own: Counts, block: Block, repeated: NDArray[np.uint32], last: int) -> None:
    """Count dropped lines in a block in order, up to a last line."""
    numbers, whys = block.left_out()
    out = [*zip(numbers.tolist(), whys, strict=True), *((line, "duplicate") for line in repeated.tolist())]
    for line, why in sorted(out):
        if line <= last:
            own.drop(why, line)


def in_shards(found: Iterator[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces of each shard: as many pairs as it may have, in their order."""
    shard: list[Piece] = []
    room = PAIRS
    for part, block, pairs in found:
        while len(pairs):
            shard.append((part, block, pairs[:room]))
            pairs = pairs[room:]
            room -= len(shard[-1][2])
            if not room:
                yield shard
                shard, room = [], PAIRS
    if shard:
        yield shard


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
    """Return a shard written earlier; None if it is incomplete."""
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
