"""Vectors of a frozen encoder for the texts of a prepared corpus, kept by row in files that are mapped into memory.

    <folder>/<key>/about.json                    what the key stands for: encoder, role, length, output and type
    <folder>/<key>/about.lock                    held by a process while it writes that
    <folder>/<key>/<shard>/<sha256>.safetensors  rows of texts of a shard, ascending, and their vectors
    <folder>/<key>/<shard>.lock                  held by a process while it computes those of a shard

Processes take shards that no other one is at work on, and wait only for the last ones. A file has its name when it is
on the disk, so it is there whole or not at all; one that is damaged is deleted and computed again.
"""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from metasearch.config.distill_run import TargetType
from metasearch.config.recipe import Role
from metasearch.data.formats.arrays import NAME, SUFFIX, ArrayFile, ArraySpec, MappedArrays, open_arrays, write
from metasearch.data.prepared.shard import Shard
from metasearch.encoders.encoder import Encoder
from metasearch.errors import RunFolderError
from metasearch.io import atomic_write, write_error
from metasearch.pipelines.distill.target_store import VectorOutput, key_of, require_finite
from metasearch.retrieval.index.quantise import to_int8

log = logging.getLogger(__name__)

PIECE = 2**14
"""Texts that are computed before they are written."""
_ROLE: Role = "text"
_BYTES = {"fp32": 4, "fp16": 2, "int8": 1}

ShardRows = Iterable[tuple[Shard, NDArray[np.int64]]]
"""Rows of the texts that are wanted of each shard."""


class RowTargets:
    """The stored vectors of one encoder, role and output, read from the disk when they are needed.

    Args:
        folder: of their key.
        dimension: of a vector.
        kind: type in which they are stored.
    """

    def __init__(self, folder: Path, dimension: int, kind: TargetType) -> None:
        self.folder, self.dimension, self.kind = folder, dimension, kind
        self._files: dict[str, dict[str, MappedArrays]] = {}

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts of a prepared corpus, `(B, D)`; `KeyError` for one that was not asked for before.

        Vectors of eight bits are rounded to 1/127 of their greatest component, those of 16 to eleven binary digits.
        """
        found = np.empty((len(texts), self.dimension), np.float32)
        by_shard: dict[str, list[int]] = {}
        for i, text in enumerate(texts):
            by_shard.setdefault(text.shard.counts.stored.name, []).append(i)  # type: ignore[attr-defined]
        for name, places in by_shard.items():
            rows = np.array([texts[i].row for i in places])  # type: ignore[attr-defined]
            known = self._read(name, rows, np.array(places), found)
            if not known.all():
                raise KeyError(f"no stored vector of the text {texts[places[int(np.argmin(known))]]!r}")
        return found

    def _read(
        self, shard: str, rows: NDArray[Any], places: NDArray[Any], out: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Put the vectors of rows of a shard in their places, and return which rows there are."""
        known = np.zeros(len(rows), np.bool_)
        for mapped in self._files.get(shard, {}).values():
            own = mapped.arrays["rows"]
            at = np.minimum(np.searchsorted(own, rows), len(own) - 1)
            here = own[at] == rows
            values = mapped.arrays["vectors"][at[here]].astype(np.float32)
            if self.kind == "int8":
                values *= mapped.arrays["steps"][at[here], None]
            out[places[here]] = values
            known |= here
        return known

    def missing(self, shard: Shard, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of some rows that have no vector yet, in their order."""
        known = [mapped.arrays["rows"] for mapped in self._files.get(shard.counts.stored.name, {}).values()]
        return rows[~np.isin(rows, np.concatenate(known))] if known else rows

    def find(self, shard: Shard, repair: bool) -> None:
        """Open files of a shard that are new here. With `repair`, under the lock, delete damaged ones."""
        name = shard.counts.stored.name
        files = self._files.setdefault(name, {})
        for path in sorted((self.folder / name[:16]).glob(f"*{SUFFIX}")):
            if path.stem in files or not NAME.fullmatch(path.stem):
                continue
            try:
                mapped = open_arrays(
                    path.parent, ArrayFile(path.stem, path.stat().st_size), self._wanted, "computed again"
                )
                mapped.check()
                files[path.stem] = mapped
            except RunFolderError as error:
                if repair:
                    log.warning("%s", error)
                    path.unlink()

    def add(self, shard: Shard, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Write the vectors of some rows of a shard, under its lock."""
        order = np.argsort(rows)
        content: dict[str, NDArray[Any]] = {"rows": rows[order].astype(np.uint32)}
        if self.kind == "int8":
            content["vectors"], content["steps"] = to_int8(vectors[order])
        else:
            content["vectors"] = vectors[order].astype(np.float16 if self.kind == "fp16" else np.float32)
        write(self.folder / shard.counts.stored.name[:16], content)
        self.find(shard, repair=False)

    @property
    def _wanted(self) -> ArraySpec:
        kinds: dict[str, type[np.generic]] = {"fp32": np.float32, "fp16": np.float16, "int8": np.int8}
        found = {"rows": (np.uint32, (-1,)), "vectors": (kinds[self.kind], (-1, self.dimension))}
        return found | ({"steps": (np.float32, (-1,))} if self.kind == "int8" else {})


def row_targets(
    folder: Path,
    encoder: Encoder,
    wanted: ShardRows,
    output: VectorOutput,
    kind: TargetType = "fp32",
    on_progress: Callable[[int, int], None] | None = None,
) -> RowTargets:
    """Return the vectors of texts of a prepared corpus; missing ones are computed and stored.

    Args:
        folder: of the vectors of all encoders.
        encoder: the frozen encoder.
        wanted: rows of texts, shard by shard; it is gone through several times.
        output: of the encoder.
        kind: type in which they are stored.
        on_progress: called after each piece with the number of new texts done and of all new texts.

    Raises:
        NonFiniteError: the encoder gives a vector that is not finite, or that 16 bits cannot hold.
        RunFolderError: the folder cannot be written, for want of space say; what is done stays.
    """
    targets = opened(folder, encoder, output, kind)
    missing: dict[int, int] = {}
    for shard, rows in wanted:
        targets.find(shard, repair=False)
        if count := len(targets.missing(shard, rows)):
            missing[shard.number] = count
    total, done = sum(missing.values()), 0

    def told(count: int) -> None:
        nonlocal done
        done += count
        if on_progress:
            on_progress(done, max(total, done))

    # First those that nobody is at work on, then those that others have not finished.
    for patience in (0, -1):
        for shard, rows in wanted if missing else ():
            if shard.number not in missing:
                continue
            try:
                with FileLock(targets.folder / f"{shard.counts.stored.name[:16]}.lock", timeout=patience):
                    _compute(targets, encoder, shard, rows, output, told)
                del missing[shard.number]
            except Timeout:
                continue
            except OSError as error:
                raise write_error(targets.folder, error) from error
    return targets


def opened(folder: Path, encoder: Encoder, output: VectorOutput, kind: TargetType) -> RowTargets:
    """Return the vectors of an encoder and output that are kept in a folder; opens no shard's."""
    key, about = key_of(encoder, _ROLE, output, type=kind)
    path = folder / key
    if not (path / "about.json").exists():
        try:
            path.mkdir(parents=True, exist_ok=True)
            # Who comes second waits, or both would move the same new file into its place.
            with FileLock(path / "about.lock"):
                if not (path / "about.json").exists():
                    atomic_write(path / "about.json", json.dumps(about, indent=2, ensure_ascii=False))
        except OSError as error:
            raise write_error(path, error) from error
    return RowTargets(path, encoder.dimension(output), kind)


def _compute(
    targets: RowTargets,
    encoder: Encoder,
    shard: Shard,
    rows: NDArray[np.int64],
    output: VectorOutput,
    told: Callable[[int], None],
) -> None:
    """Compute and store the missing vectors of a shard, under its lock."""
    targets.find(shard, repair=True)
    missing = targets.missing(shard, rows)
    if len(missing) > PIECE:
        missing = np.sort(missing)  # texts of a piece lie together
    for start in range(0, len(missing), PIECE):
        some = missing[start : start + PIECE]
        texts = shard.texts(some)
        vectors = encoder.encode(texts, _ROLE, output)
        # What 16 bits cannot hold is infinite.
        held = vectors.astype(np.float16) if targets.kind == "fp16" else vectors
        require_finite(held, encoder, texts, _ROLE, output)
        targets.add(shard, some, vectors)
        encoder.forget()
        shard.mapped.forget()
        told(len(some))
