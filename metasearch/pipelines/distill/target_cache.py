"""Vectors of frozen encoders, computed once and kept on disk for all languages, epochs, stages and runs.

    <folder>/<key>/about.json                    what the key stands for: encoder, role, length, output and type
    <folder>/<key>/about.lock                    held by a process while it writes that
    <folder>/<key>/<group>/<sha256>.safetensors  keys of texts, ascending, and their vectors
    <folder>/<key>/<group>.lock                  held by a process while it computes vectors of a group

The texts of a prepared corpus are known by shard and row; a group is a shard. Other texts are one group and known by a
digest of 128 bits; two of a billion texts share one with a probability of 1.5e-21. Processes compute groups that no
other process is computing, and wait only for the last ones. A file gets its name when it is on the disk, so it is there
whole or not at all; a damaged one is deleted and computed again. Files are mapped into memory, not read whole.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeGuard

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from metasearch.config.distill_run import TargetType
from metasearch.config.recipe import Role
from metasearch.data.formats.arrays import NAME, SUFFIX, ArrayFile, ArraySpec, MappedArrays, open_arrays, write
from metasearch.data.prepared.shard import PreparedText, Shard
from metasearch.encoders.encoder import Encoder, Output
from metasearch.encoders.input_module import BY_TOKEN
from metasearch.errors import NonFiniteError, RunFolderError
from metasearch.io import atomic_write, write_error
from metasearch.retrieval.index.quantise import to_int8

log = logging.getLogger(__name__)

VectorOutput = Literal["sentence", "pooled", "embedding"]
"""Outputs of an encoder that are one vector for each text."""
Keys = NDArray[Any]
"""Keys of N texts: rows of a shard, uint32 `(N,)`, or digests, uint64 `(N, 2)`."""

PIECE = 2**13
"""Texts that are computed before they are written: whole batches of `Encoder.encode`."""
_TEXTS = "texts"
"""Group of texts that are known by digest."""
_TYPES: dict[str, type[np.generic]] = {"fp32": np.float32, "fp16": np.float16, "int8": np.int8}


def are_vectors(output: Output) -> TypeGuard[VectorOutput]:
    """Return whether an output is one vector for each text, which can be kept."""
    return output not in BY_TOKEN


@dataclass(frozen=True)
class TextGroup:
    """Texts whose vectors are kept together.

    Attributes:
        name: name of the group's folder.
        keys: keys of the texts, each once.
        read: positions in `keys` → texts.
        forget: lets go of memory that the texts were read to.
    """

    name: str
    keys: Keys
    read: Callable[[NDArray[np.int64]], Sequence[str]]
    forget: Callable[[], None] = lambda: None

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> Iterator["TextGroup"]:
        """Yield the group of texts that are no part of a prepared corpus, if there are any."""
        if distinct := list(dict.fromkeys(texts)):
            yield cls(_TEXTS, digests_of(distinct), lambda at: [distinct[i] for i in at])

    @classmethod
    def of_rows(cls, shard: Shard, rows: NDArray[np.int64]) -> "TextGroup":
        """Return the group of some rows of a shard."""
        return cls(_group_of(shard), rows.astype(np.uint32), lambda at: shard.texts(rows[at]), shard.mapped.forget)


class TargetCache:
    """The kept vectors of one encoder, role and output.

    Args:
        folder: folder of the vectors of all encoders.
        encoder: the frozen encoder.
        role: role of the texts.
        output: output of the encoder.
        kind: type in which vectors are kept.
    """

    def __init__(
        self, folder: Path, encoder: Encoder, role: Role, output: VectorOutput, kind: TargetType = "fp32"
    ) -> None:
        self.dimension, self.kind = encoder.dimension(output), kind
        self._encoder, self._role, self._output = encoder, role, output
        about = {
            "fingerprint": encoder.fingerprint,
            "role": role,
            "max_length": encoder.limit(role),
            "output": output,
            "dimension": self.dimension,
            "type": kind,
        }
        # The key has the fingerprint of the weights and not the encoder's name, which may come to stand for others.
        key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
        self.folder, self._about = folder / key, {"encoder": encoder.name, **about}
        self._files: dict[str, dict[str, MappedArrays]] = {}

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, `(B, D)`, in their order; `KeyError` for one that was not asked for before.

        Vectors of eight bits are rounded to 1/127 of their greatest component, those of 16 to eleven binary digits.
        """
        found = np.empty((len(texts), self.dimension), np.float32)
        for group, places, keys in _located(texts):
            known = self._look_up(group, keys, places, found)
            if not known.all():
                raise KeyError(f"no stored vector of the text {texts[places[int(np.argmin(known))]]!r}")
        return found

    def add(
        self, groups: Callable[[], Iterable[TextGroup]], on_progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Compute and keep the vectors of texts that have none; raises as `cached_targets`."""
        missing = self._count_missing(groups())
        total, done = sum(missing.values()), 0

        def report(count: int) -> None:
            nonlocal done
            done += count
            if on_progress:
                on_progress(done, max(total, done))

        try:
            if missing:
                self._write_about()
            # First groups that nobody is computing, then those that others have not finished.
            for patience in (0, -1):
                for group in groups() if missing else ():
                    if group.name not in missing:
                        continue
                    try:
                        with FileLock(self.folder / f"{group.name}.lock", timeout=patience):
                            self._compute(group, report)
                        del missing[group.name]
                    except Timeout:
                        continue
        except OSError as error:
            raise write_error(self.folder, error, (total - done) * (16 + 4 * self.dimension)) from error

    def _count_missing(self, groups: Iterable[TextGroup]) -> dict[str, int]:
        """Return how many texts of each group have no vector, of those that have such texts."""
        missing = {}
        for group in groups:
            self._find(group.name, repair=False)
            if count := len(self._missing(group)):
                missing[group.name] = count
        return missing

    def _write_about(self) -> None:
        path = self.folder / "about.json"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            # Without the lock two processes would move the same new file into its place.
            with FileLock(self.folder / "about.lock"):
                if not path.exists():
                    atomic_write(path, json.dumps(self._about, indent=2, ensure_ascii=False))

    def _compute(self, group: TextGroup, report: Callable[[int], None]) -> None:
        """Compute and keep the missing vectors of a group, under its lock."""
        self._find(group.name, repair=True)
        missing = self._missing(group)
        if len(missing) > PIECE:
            # Texts of a piece lie together in a shard.
            missing = missing[np.argsort(_sortable(group.keys[missing]), kind="stable")]
        for start in range(0, len(missing), PIECE):
            at = missing[start : start + PIECE]
            texts = group.read(at)
            vectors = self._encoder.encode(texts, self._role, self._output)
            # What 16 bits cannot hold is infinite.
            held = vectors.astype(np.float16) if self.kind == "fp16" else vectors
            self._require_finite(held, texts)
            self._keep(group.name, group.keys[at], vectors)
            group.forget()
            report(len(at))

    def _require_finite(self, vectors: NDArray[Any], texts: Sequence[str]) -> None:
        """Raise `NonFiniteError` where a vector is not finite; it names the text."""
        finite = np.isfinite(vectors).all(1)
        if not finite.all():
            text = str(texts[int(np.argmin(finite))])
            shown = text if len(text) <= 80 else f"{text[:80]}..."
            what = f"its {self._output} vector of the {self._role} '{shown}'"
            raise NonFiniteError(f"encoder {self._encoder.name}: {what} is not finite")

    def _keep(self, group: str, keys: Keys, vectors: NDArray[np.float32]) -> None:
        order = np.argsort(_sortable(keys))
        content: dict[str, NDArray[Any]] = {"keys": keys[order]}
        if self.kind == "int8":
            content["vectors"], content["steps"] = to_int8(vectors[order])
        else:
            content["vectors"] = vectors[order].astype(_TYPES[self.kind])
        write(self.folder / group, content)
        self._find(group, repair=False)

    def _find(self, group: str, repair: bool) -> None:
        """Open files of a group that are new here. With `repair`, under the lock, delete damaged ones."""
        files = self._files.setdefault(group, {})
        for path in sorted((self.folder / group).glob(f"*{SUFFIX}")):
            if path.stem in files or not NAME.fullmatch(path.stem):
                continue
            try:
                stored = ArrayFile(path.stem, path.stat().st_size)
                mapped = open_arrays(path.parent, stored, self._arrays(group), "computed again")
                mapped.check()
                files[path.stem] = mapped
            except RunFolderError as error:
                if repair:
                    log.warning("%s", error)
                    path.unlink()

    def _arrays(self, group: str) -> ArraySpec:
        keys: tuple[type[np.generic], tuple[int, ...]] = (np.uint64, (-1, 2)) if group == _TEXTS else (np.uint32, (-1,))
        found = {"keys": keys, "vectors": (_TYPES[self.kind], (-1, self.dimension))}
        return found | ({"steps": (np.float32, (-1,))} if self.kind == "int8" else {})

    def _missing(self, group: TextGroup) -> NDArray[np.int64]:
        """Return the positions of a group's texts that have no vector yet."""
        keys, known = _sortable(group.keys), np.zeros(len(group.keys), np.bool_)
        for mapped in self._files.get(group.name, {}).values():
            known |= _found_in(_sortable(mapped.arrays["keys"]), keys)[1]
        return np.flatnonzero(~known)

    def _look_up(self, group: str, keys: Keys, places: NDArray[Any], out: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Put the vectors of texts in their places, and return which there are."""
        keys, known = _sortable(keys), np.zeros(len(keys), np.bool_)
        for mapped in self._files.get(group, {}).values():
            at, here = _found_in(_sortable(mapped.arrays["keys"]), keys)
            if here.any():
                values = mapped.arrays["vectors"][at[here]].astype(np.float32)
                if self.kind == "int8":
                    values *= mapped.arrays["steps"][at[here], None]
                out[places[here]] = values
                known |= here
        return known


def cached_targets(
    folder: Path,
    encoder: Encoder,
    texts: Sequence[str],
    role: Role,
    output: VectorOutput = "sentence",
    kind: TargetType = "fp32",
    on_progress: Callable[[int, int], None] | None = None,
) -> TargetCache:
    """Return the vectors of texts; missing ones are computed and kept.

    Several processes and runs may use a folder at once. The last bits of a vector depend on the texts of its batch; a
    kept vector is never computed again, so every later run has the same bits. Finished pieces stay when this is
    interrupted, also by an exception of `on_progress`, which is called after each piece with the number of new texts
    done and of all new texts.

    Raises:
        NonFiniteError: the encoder gives a vector that is not finite, or that 16 bits cannot hold.
        RunFolderError: the folder cannot be written, for want of space say; finished pieces stay.
    """
    cache = TargetCache(folder, encoder, role, output, kind)
    cache.add(lambda: TextGroup.of_texts(texts), on_progress)
    return cache


def digests_of(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return 128 bits of the hash of each text, `(N, 2)`."""
    # A corpus may hold half a surrogate pair, which strict UTF-8 refuses; `<u8` is the same on every machine.
    raw = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts)
    return np.frombuffer(b"".join(raw), "<u8").reshape(-1, 2)


def _located(texts: Sequence[str]) -> Iterator[tuple[str, NDArray[Any], Keys]]:
    """Yield each group of some texts, their places among them, and their keys."""
    by_group: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        by_group.setdefault(_group_of(text.shard) if isinstance(text, PreparedText) else _TEXTS, []).append(i)
    for group, places in by_group.items():
        own = [texts[i] for i in places]
        rows = [text.row for text in own if isinstance(text, PreparedText)]
        yield group, np.array(places), np.array(rows, np.uint32) if group != _TEXTS else digests_of(own)


def _group_of(shard: Any) -> str:
    return str(shard.counts.stored.name[:16])


def _sortable(keys: Keys) -> NDArray[Any]:
    """Return keys as an array `(N,)` that numpy can sort and search: digests as texts of 16 bytes."""
    # NumPy ignores zeros at the end of bytes, which makes no two values of one width equal.
    return keys if keys.ndim == 1 else np.ascontiguousarray(keys).view("S16").ravel()


def _found_in(own: NDArray[Any], keys: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the place of each key among ascending ones, and whether it is there."""
    if not len(own):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
    at = np.minimum(np.searchsorted(own, keys), len(own) - 1)
    return at, own[at] == keys
