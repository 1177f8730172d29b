"""Passages in shards, which any number of processes encode.

plan.json         how to open the encoder, and the shards in their order; written whole, after all shards
NAME.json         passages that `metasearch index` encodes at a time, as rows of `_FIELDS`; the name is their hash
NAME-K.vectors    vectors of part K of their distinct texts; written whole
NAME-K.lock       held by the process that encodes the part
done.jsonl        a line for each encoded part
jobs/             logs of the processes

A part has whole batches of `Encoder.encode`, which takes texts by length, so its vectors have the same bits wherever it
is encoded.
"""

import io
import json
import logging
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from metasearch.config.base import FrozenConfig
from metasearch.config.precision import Chosen
from metasearch.config.roles import Role
from metasearch.config.run import Device
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.lengths import GPU_BATCH_TEXTS
from metasearch.errors import EncoderError, RunFolderError
from metasearch.io import NEW, atomic_write, read_bytes, sha256_of_bytes, write_error
from metasearch.search.documents.passage import Passage
from metasearch.search.inference.open import load_reader
from metasearch.search.query.passages import ROLE

FOLDER = "shards"
"""In the folder of an index, while jobs encode its texts."""
PLAN = "plan.json"
_PART = 256
"""Texts of a part, in whole batches of 64 texts; on a GPU, whose batches have more, `GPU_BATCH_TEXTS`."""
_FIELDS = tuple(each.name for each in fields(Passage))
_SUFFIXES = (".json", ".vectors", ".lock", NEW)
_DIGEST = 64
"""Bytes of the SHA-256, in hexadecimal, at the beginning of a file of vectors."""

log = logging.getLogger(__name__)


class EncoderPlan(FrozenConfig):
    """How every process opens the encoder: with the same weights, prompts and precision, on a device of its own."""

    name: str
    fingerprint: str
    prompts: dict[Role, str]
    precision: Chosen
    device: Device
    part: int

    @classmethod
    def of(cls, encoder: Encoder, name: str, prompts: dict[Role, str], device: Device) -> "EncoderPlan":
        """Return the plan for an encoder that was opened by this name, with these prompts and device."""
        part = _PART if encoder.device.type == "cpu" else GPU_BATCH_TEXTS
        return cls(
            name=name, fingerprint=encoder.fingerprint, prompts=prompts, precision=encoder.precision, device=device,
            part=part,
        )  # fmt: skip

    def open(self, trust_remote_code: bool) -> Encoder:
        """Open the encoder; `EncoderError` if it cannot be found or is another one here."""
        loaded = load_reader(self.name, self.device, self.prompts, trust_remote_code)
        if loaded.fingerprint != self.fingerprint:
            raise EncoderError(f"encoder '{self.name}' has other weights, tokens or prompts here than at the runner")
        return loaded.choose_precision(self.precision, tried=True)


class Plan(FrozenConfig):
    """`plan.json`: the encoder, and the shards in their order with their numbers of parts."""

    encoder: EncoderPlan
    shards: tuple[tuple[str, int], ...]


class Shards:
    """The shards of some passages in the folder of an index, for the process that stores them."""

    def __init__(self, index: Path, encoder: EncoderPlan) -> None:
        self.folder, self._encoder = index / FOLDER, encoder
        self._parts: dict[str, int] = {}

    def __len__(self) -> int:
        """Return the number of parts."""
        return sum(self._parts.values())

    def write(self, portions: Iterable[Sequence[Passage]]) -> None:
        """Write a shard of each portion; files of a former plan stay as far as they belong to this one."""
        self._parts = {}
        for some in portions:
            content = json.dumps([[getattr(each, name) for name in _FIELDS] for each in some])
            name = _name(content, self._encoder)
            if not (path := self.folder / f"{name}.json").exists():
                atomic_write(path, content)
            self._parts[name] = ceil(len({each.text for each in some}) / self._encoder.part)
        plan = Plan(encoder=self._encoder, shards=tuple(self._parts.items()))
        atomic_write(self.folder / PLAN, plan.model_dump_json())
        for path in self.folder.iterdir():
            if path.suffix in _SUFFIXES and path.name != PLAN and path.stem.partition("-")[0] not in self._parts:
                path.unlink(missing_ok=True)

    def passages(self) -> Iterator[tuple[str, list[Passage]]]:
        """Yield the names of all shards with their passages; one is deleted when the next is asked for."""
        for name in self._parts:
            yield name, [Passage(*row) for row in _read_rows(self.folder / f"{name}.json", self._encoder)]
            for path in (self.folder / f"{name}.json", *self._files(name, ".vectors"), *self._files(name, ".lock")):
                path.unlink(missing_ok=True)

    def vectors(self, name: str, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Return the vectors of a shard's texts `(n, D)`; None as long as a part is not encoded."""
        paths = self._files(name, ".vectors")
        if not all(path.exists() for path in paths):
            return None
        found = [each for path in paths if (each := _read_vectors(path))]
        if len(found) < len(paths):
            return None
        numbers, vectors = (np.concatenate(parts) for parts in zip(*found, strict=True))
        distinct: NDArray[np.float32] = vectors[np.argsort(numbers)]
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        return distinct[[place[text] for text in texts]]

    def _files(self, name: str, suffix: str) -> list[Path]:
        return [self.folder / f"{name}-{part}{suffix}" for part in range(self._parts[name])]


def remove_shards(index: Path) -> None:
    """Delete the shards in the folder of an index, with the logs of jobs."""
    shutil.rmtree(index / FOLDER, ignore_errors=True)


def _name(content: str, encoder: EncoderPlan) -> str:
    return sha256_of_bytes(f"{encoder.model_dump_json()}{content}".encode())[:32]


def _read_rows(path: Path, encoder: EncoderPlan) -> list[list[Any]]:
    """Return the passages of a shard, each as its `_FIELDS`; `RunFolderError` if it is damaged."""
    try:
        content = read_bytes(path).decode("ascii", "replace")
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}; run metasearch index again") from None
    if _name(content, encoder) != path.stem:
        raise RunFolderError(f"{path} is damaged; delete it and run metasearch index again")
    return list(json.loads(content))


def _read_vectors(path: Path) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
    """Return the numbers of a part's texts, and their vectors; None of a damaged file, which is deleted."""
    try:
        found = read_bytes(path)
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror or error}") from None
    if sha256_of_bytes(found[_DIGEST:]).encode() != found[:_DIGEST]:
        log.warning("%s is damaged; its texts are encoded again", path)
        path.unlink()
        return None
    content = io.BytesIO(found[_DIGEST:])
    return np.load(content, allow_pickle=False), np.load(content, allow_pickle=False)


# What the processes do.


def encode_shards(folder: Path, trust_remote_code: bool = False) -> int:
    """Encode parts of shards until all are encoded, by this process or by others; return how many it encoded.

    A part whose process dies is encoded by another one, which waits for it at the end.

    Raises:
        EncoderError: the encoder cannot be found or loaded, or is another one on this machine.
        ConfigError: this machine cannot compute in the precision.
        RunFolderError: there is no plan, or a file cannot be read or written.
    """
    try:
        plan = Plan.model_validate_json(read_bytes(folder / PLAN))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{folder / PLAN} cannot be read: {error}; run metasearch index again") from None
    encoder, done = None, 0
    for patience, (name, parts) in product((0.0, -1.0), plan.shards):  # those that another process has begun come last
        texts = folder / f"{name}.json"
        for part in range(parts):
            target = folder / f"{name}-{part}.vectors"
            if target.exists() or not texts.exists():
                continue
            encoder = encoder or plan.encoder.open(trust_remote_code)
            with _claimed(target.with_suffix(".lock"), patience) as mine:
                done += mine and not target.exists() and _encode(texts, target, part, plan.encoder, encoder)
        if encoder:
            encoder.forget()  # the tokens of this shard
    return done


def _encode(source: Path, target: Path, part: int, plan: EncoderPlan, encoder: Encoder) -> bool:
    """Encode a part of a shard; return False where the shard was stored meanwhile."""
    began = time.monotonic()
    if not source.exists():
        return False
    texts = list(dict.fromkeys(row[0] for row in _read_rows(source, plan)))
    # The order in which `encode` takes all texts of the shard.
    chosen = np.argsort(-encoder.lengths(texts, ROLE), kind="stable")[part * plan.part :][: plan.part]
    content = io.BytesIO()
    np.save(content, chosen)
    np.save(content, encoder.encode([texts[i] for i in chosen.tolist()], ROLE))
    if not source.exists():
        return False
    atomic_write(target, sha256_of_bytes(content.getvalue()).encode() + content.getvalue())
    seconds = time.monotonic() - began
    log.info("%s: %d texts encoded in %.1f s", target.name, len(chosen), seconds)
    line = {"part": target.stem, "texts": len(chosen), "seconds": round(seconds, 3)}
    with suppress(OSError), source.with_name("done.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return True


@contextmanager
def _claimed(path: Path, patience: float) -> Iterator[bool]:
    """Hold a lock, and tell whether it is held; a negative patience waits for it."""
    lock = FileLock(path, timeout=patience)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    except OSError as error:
        raise write_error(path, error) from None
    try:
        yield True
    finally:
        lock.release()
