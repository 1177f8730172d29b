"""Holds pairs of a prepared corpus out for the dev score: the same ones as `Corpus.hold_out`, without all in memory.

What was found is kept in the folder of the corpus, as every stage, process and resumed run wants it again.
"""

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from metasearch.config.seeding import seed_of
from metasearch.data.formats.arrays import SUFFIX, ArrayFile, ArraySpec, open_arrays, write
from metasearch.data.prepared.corpus import CorpusSelection
from metasearch.data.prepared.shard import digests_of
from metasearch.errors import DataError, RunFolderError

log = logging.getLogger(__name__)
Rows = NDArray[np.int64]
_WANTED: ArraySpec = {"dev": (np.int64, (-1,)), "out": (np.int64, (-1,))}


def hold_out(chosen: CorpusSelection, dev: int, seed: int) -> tuple[CorpusSelection, Rows]:
    """Split off pairs for the dev score; returns what is left to train on, and the rows of dev, ascending.

    Args:
        chosen: pairs of the corpus.
        dev: number of pairs of each language in dev.
        seed: seed of the run.

    Raises:
        DataError: a language is left none to train on.
    """
    about = json.dumps([{n: rows.starts.tolist() for n, rows in chosen.parts.items()}, len(chosen), dev, seed])
    name = hashlib.sha256((chosen.corpus.manifest.seal + about).encode()).hexdigest()
    folder = chosen.corpus.folder / "held" / name[:16]
    with alone(folder):
        found = _kept(folder)
        if found is None:
            held = _least(chosen, dev, seed)
            found = {"dev": held, "out": _with_sources_of(chosen, held)}
            try:
                write(folder, found)
            except RunFolderError as error:
                log.info("what is held out is found again at every start: %s", error)
    train = chosen.without(found["out"])
    for code, count in chosen.counts.items():
        if code not in train.counts:
            raise DataError(
                f"dev={dev}: {code} has {count} pairs; none with a source of its own is left to train on."
                " Lower dev, or add text"
            )
    return train, found["dev"]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process at a time make what is kept in a corpus; where that cannot be written, each makes its own."""
    with ExitStack() as stack:
        with suppress(OSError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(folder.with_suffix(".lock")))
        yield


def _kept(folder: Path) -> Mapping[str, Rows] | None:
    """Return what was found before; None where it was not, or is damaged."""
    for path in folder.glob(f"*{SUFFIX}"):
        try:
            mapped = open_arrays(folder, ArrayFile(path.stem, path.stat().st_size), _WANTED, "it is found again")
            mapped.check()
            return mapped.arrays
        except RunFolderError as error:
            log.warning("%s", error)
            with suppress(OSError):  # a folder that cannot be written keeps it
                path.unlink()
    return None


def _least(chosen: CorpusSelection, dev: int, seed: int) -> Rows:
    """Return the rows of each language whose sources have the least ranks."""
    least = {code: (np.zeros(0, np.int64), np.zeros(0, np.int64)) for code, _ in chosen.by_language()}
    for shard, start in zip(chosen.corpus.shards, chosen.corpus.starts.tolist(), strict=False):
        rows = start + np.arange(shard.counts.pairs)
        used = np.unique(shard.source[chosen.rows.has(rows)])
        rank = np.zeros(shard.counts.texts, np.int64)
        rank[used] = [seed_of(seed, "corpus", "dev", text) for text in shard.texts(used)]
        for code, of_language in chosen.by_language():
            own = rows[of_language.has(rows)]
            ranks = np.concatenate([least[code][0], rank[shard.source[own - start]]])
            known = np.concatenate([least[code][1], own])
            # Pairs of one source have the same rank, and are taken in the order of the files.
            order = np.lexsort((known, ranks))[:dev]
            least[code] = ranks[order], known[order]
        shard.mapped.forget()
    return np.sort(np.concatenate([rows for _, rows in least.values()]))


def _with_sources_of(chosen: CorpusSelection, held: Rows) -> Rows:
    """Return all rows whose source is that of a row that is held out."""
    sources = {pair.source for pair in chosen.corpus.pairs(held)}
    digests = digests_of(text.encode("utf-8", "surrogatepass") for text in sources)
    found = []
    for shard, start in zip(chosen.corpus.shards, chosen.corpus.starts.tolist(), strict=False):
        alike = np.flatnonzero(np.isin(shard.digests, digests))
        # 64 bits may be alike by chance.
        same = alike[[text in sources for text in shard.texts(alike)]] if len(alike) else alike
        found.append(start + np.flatnonzero(np.isin(shard.source, same)))
        shard.mapped.forget()
    rows: Rows = np.concatenate(found)
    return rows[chosen.rows.has(rows)]
