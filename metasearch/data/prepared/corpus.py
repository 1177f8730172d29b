"""Reads a prepared corpus: its pairs by row; their texts stay on the disk.

Rows are numbered over all shards, in the order of the files and of their lines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from metasearch.config.corpus import Balance, CorpusSettings
from metasearch.config.seeding import seed_of
from metasearch.data.parallel.corpus import held_pairs
from metasearch.data.prepared.manifest import Manifest
from metasearch.data.prepared.shard import Shard
from metasearch.data.translation import Translation
from metasearch.errors import ConfigError, DataError, nearest

Rows = NDArray[np.int64]


class PreparedCorpus:
    """A corpus whose files are mapped into memory.

    Args:
        folder: of the corpus.
        manifest: of it.

    Raises:
        RunFolderError: a shard is missing or is not, to the bit, what was written.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        self.shards = [Shard(folder, number, each) for number, each in enumerate(manifest.shards)]
        for shard in self.shards:
            shard.mapped.check()
        self.starts = np.concatenate([[0], np.cumsum([each.pairs for each in manifest.shards])]).astype(np.int64)
        self._part_starts = np.concatenate([[0], np.cumsum([part.pairs for part in manifest.parts])]).astype(np.int64)
        self._languages = [(part.pivot, part.language) for part in manifest.parts]

    def __len__(self) -> int:
        return int(self.starts[-1])

    def pairs(self, rows: NDArray[Any]) -> list[Translation]:
        """Return the pairs for some rows in order; texts are `PreparedText`."""
        found: list[Translation] = [None] * len(rows)  # type: ignore[list-item]  # each is put in its place below
        for shard, places, own in self.by_shard(rows):
            sources, targets = shard.texts(shard.source[own]), shard.texts(shard.target[own])
            parts = shard.part[own].tolist()
            for place, source, target, part in zip(places.tolist(), sources, targets, parts, strict=True):
                found[place] = Translation(source, target, self._languages[part])
        return found

    def by_shard(self, rows: NDArray[Any]) -> Iterator[tuple[Shard, Rows, Rows]]:
        """Yield the shards for some rows: shard, positions among the rows, and row numbers within the shard."""
        if len(self.shards) == 1:
            yield self.shards[0], np.arange(len(rows)), np.asarray(rows)
            return
        number = np.searchsorted(self.starts, rows, side="right") - 1
        order = np.argsort(number, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(rows) else ():
            shard = int(number[places[0]])
            yield self.shards[shard], places, rows[places] - self.starts[shard]

    def chosen(self, settings: CorpusSettings) -> "CorpusSelection":
        """Return the pairs that a stage asks for.

        Raises:
            ConfigError: it asks for what was not done when the corpus was prepared.
            DataError: nothing is there of a language or a corpus that it asks for.
        """
        _require_prepared(self.folder, settings, self.manifest.asked.settings)
        for key, values in (("language", settings.languages), ("corpus", settings.only)):
            known = {getattr(part, key) for part in self.manifest.parts}
            for value in values:
                if value not in known:
                    raise DataError(f"{self.folder}: no parallel text of {key} '{value}'.{nearest(value, known)}")
        rows = []
        for number, part in enumerate(self.manifest.parts):
            wanted = part.language in (settings.languages or {part.language})
            if wanted and part.corpus in (settings.only or {part.corpus}):
                start, end = self._part_starts[number : number + 2].tolist()
                rows.append(np.arange(start, min(end, start + (settings.max_lines or end))))
        return CorpusSelection(self, np.concatenate([np.zeros(0, np.int64), *rows]))

    def part(self, rows: NDArray[Any]) -> NDArray[np.int16]:
        """Return the part number for each row."""
        return (np.searchsorted(self._part_starts, rows, side="right") - 1).astype(np.int16)


@dataclass(frozen=True, eq=False)
class CorpusSelection(Sequence[Translation]):
    """Some pairs of a corpus, read on demand.

    Attributes:
        corpus: that they are from.
        rows: their rows, ascending `(P,)`.
    """

    corpus: PreparedCorpus
    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Translation: ...

    @overload
    def __getitem__(self, index: slice) -> "CorpusSelection": ...

    def __getitem__(self, index: int | slice) -> "Translation | CorpusSelection":
        if isinstance(index, slice):
            return CorpusSelection(self.corpus, self.rows[index])
        return self.corpus.pairs(np.array([self.rows[index]]))[0]

    @property
    def counts(self) -> dict[str, int]:
        """Language → how many pairs translate into it; those that have any, sorted."""
        codes, pairs = np.unique(self.languages, return_counts=True)
        return dict(zip(codes.tolist(), pairs.tolist(), strict=True))

    def groups(self, balance: Balance) -> NDArray[np.int16] | None:
        """Return each pair's sampling group `(P,)`, as in `Corpus.groups`."""
        if balance == "none":
            return None
        if balance == "file":
            return self.corpus.part(self.rows)
        return np.unique(self.languages, return_inverse=True)[1].astype(np.int16)

    @property
    def languages(self) -> NDArray[np.str_]:
        """Language of each pair's translation `(P,)`."""
        return np.array([part.language for part in self.corpus.manifest.parts])[self.corpus.part(self.rows)]

    def subset(self, mask: NDArray[np.bool_]) -> "CorpusSelection":
        """Return the pairs for which the mask `(P,)` holds."""
        return CorpusSelection(self.corpus, self.rows[mask])

    def describe(self) -> str:
        """Return the size in words, such as `161000 pairs of en with ar, de from 2 files`."""
        files, pivot = len(np.unique(self.corpus.part(self.rows))), self.corpus.manifest.asked.settings.pivot
        return f"{len(self)} pairs of {pivot} with {', '.join(self.counts)} from {files} files"


def open_corpus(folder: Path) -> PreparedCorpus:
    """Return a prepared corpus; its files are compared with their hashes once in the life of a process.

    Raises:
        DataError: the folder is no prepared corpus, or its preparation is not finished.
        RunFolderError: a file is missing or damaged; the message names it.
    """
    return _opened(folder, Manifest.read(folder).seal)


@lru_cache(4)
def _opened(folder: Path, seal: str) -> PreparedCorpus:
    return PreparedCorpus(folder, Manifest.read(folder))


def _require_prepared(folder: Path, asked: CorpusSettings, done: CorpusSettings) -> None:
    """Raise `ConfigError` where a stage asks for pairs that were not chosen so when the corpus was prepared."""
    # A limit of 0 is none.
    fewer = ["max_chars"] if asked.max_chars and not 0 < done.max_chars <= asked.max_chars else []
    if asked.pivot != done.pivot:
        fewer.append("pivot")
    if asked.normalise and not done.normalise:
        fewer.append("normalise")
    if fewer:
        name = fewer[0]
        flag = f"--{name.replace('_', '-')}" + ("" if name == "normalise" else f" {getattr(asked, name)}")
        raise ConfigError(
            f"corpus.{name}={getattr(asked, name)}: {folder} was prepared with {name} {getattr(done, name)}. "
            f"Prepare it with {flag}, or set the stage's to {getattr(done, name)} with --set"
        )


def hold_out(chosen: CorpusSelection, dev: int, seed: int) -> tuple[CorpusSelection, CorpusSelection]:
    """Split off pairs for the dev score; returns (train, dev).

    Takes about 3 s for a million pairs.

    Args:
        chosen: pairs of the corpus.
        dev: number of pairs of each language in dev.
        seed: seed of the run.

    Raises:
        DataError: a language is left none to train on.
    """
    # A text has a row in each shard that it is in, and the same digest in all of them.
    digests = np.zeros(len(chosen), np.uint64)
    for shard, places, own in chosen.corpus.by_shard(chosen.rows):
        digests[places] = shard.digests[shard.source[own]]
    _, first, source = np.unique(digests, return_index=True, return_inverse=True)
    rank = np.zeros(len(first), np.int64)
    for shard, places, own in chosen.corpus.by_shard(chosen.rows[first]):
        rank[places] = [seed_of(seed, "corpus", "dev", text) for text in shard.texts(shard.source[own])]
        shard.mapped.forget()
    held, kept = held_pairs(source, rank[source], chosen.languages, dev)
    return chosen.subset(kept), chosen.subset(held)
