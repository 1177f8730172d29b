"""Texts in shards, which any number of processes encode: a file of texts becomes a file of vectors.

plan.json      how to open the encoder, and the names of all shards in their order; written whole, after all texts
NAME.json      texts of a shard; its name is their hash
NAME.vectors   their vectors; written whole
NAME.lock      held by the process that encodes the shard
done.jsonl     a line for each encoded shard
jobs/          logs of the processes

A shard has the texts that `metasearch index` encodes at a time, so its vectors have the same bits wherever they are
encoded. Where file locks reach no further than a machine, two machines may encode the same shard, and write the same.
"""

import io
import json
import logging
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from metasearch.config.base import FrozenConfig
from metasearch.config.index import Chosen
from metasearch.config.roles import Role
from metasearch.config.run import Device
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_reader
from metasearch.errors import EncoderError, RunFolderError
from metasearch.io import atomic_write, read_bytes, sha256_of_bytes, write_error
from metasearch.retrieval.search.passages import ROLE

FOLDER = "shards"
"""In the folder of an index, while jobs encode its texts."""
PLAN = "plan.json"
_SUFFIXES = (".json", ".vectors", ".lock")
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

    def open(self, trust_remote_code: bool) -> Encoder:
        """Open the encoder; `EncoderError` if it cannot be found or is another one here."""
        loaded = load_reader(self.name, self.device, self.prompts, trust_remote_code)
        if loaded.fingerprint != self.fingerprint:
            raise EncoderError(f"encoder '{self.name}' has other weights, tokens or prompts here than at the runner")
        return loaded.choose_precision(self.precision, tried=True)


class ShardPlan(FrozenConfig):
    """`plan.json`: the encoder, and the shards in their order."""

    encoder: EncoderPlan
    shards: tuple[str, ...]


class Shards:
    """The shards of some texts in a folder, for the process that has the texts."""

    def __init__(self, folder: Path, encoder: EncoderPlan) -> None:
        self.folder, self.encoder = folder, encoder
        self._left: Counter[str] = Counter()  # shards that were not taken; equal texts are one file

    def write(self, portions: Iterable[Sequence[str]]) -> None:
        """Write shards of these texts; files of a former plan stay as far as they belong to this one."""
        names = []
        for texts in portions:
            names.append(self.name(texts))
            if not (path := self._texts(names[-1])).exists():
                atomic_write(path, json.dumps(texts))
        self._left = Counter(names)
        atomic_write(self.folder / PLAN, ShardPlan(encoder=self.encoder, shards=tuple(names)).model_dump_json())
        known = {*names, Path(PLAN).stem}
        for path in self.folder.iterdir():
            if path.suffix in _SUFFIXES and path.stem not in known:
                path.unlink(missing_ok=True)

    def name(self, texts: Sequence[str]) -> str:
        """Return the name of the shard with these texts."""
        return sha256_of_bytes(json.dumps([self.encoder.fingerprint, self.encoder.precision, texts]).encode())[:32]

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Return the vectors of a shard `(n, D)`; None as long as it is not encoded."""
        path = self._texts(self.name(texts)).with_suffix(".vectors")
        try:
            found = read_bytes(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RunFolderError(f"{path} cannot be read: {error.strerror or error}") from None
        if sha256_of_bytes(found[_DIGEST:]).encode() != found[:_DIGEST]:
            log.warning("%s is damaged; its texts are encoded again", path)
            path.unlink()
            return None
        vectors: NDArray[np.float32] = np.load(io.BytesIO(found[_DIGEST:]), allow_pickle=False)
        return vectors

    def drop(self, texts: Sequence[str]) -> None:
        """Delete a shard whose vectors are stored."""
        name = self.name(texts)
        self._left[name] -= 1
        if not self._left[name]:
            for suffix in _SUFFIXES:
                self._texts(name).with_suffix(suffix).unlink(missing_ok=True)

    def __len__(self) -> int:
        return self._left.total()

    def _texts(self, name: str) -> Path:
        return self.folder / f"{name}.json"


def remove_shards(index: Path) -> None:
    """Delete the shards in the folder of an index, with the logs of jobs."""
    shutil.rmtree(index / FOLDER, ignore_errors=True)


def encode_shards(folder: Path, trust_remote_code: bool = False) -> int:
    """Encode shards of a folder until all are encoded, by this process or by others; return how many it encoded.

    A shard whose process dies is encoded by another one, which waits for it at the end.

    Raises:
        EncoderError: the encoder cannot be found or loaded, or is another one on this machine.
        ConfigError: this machine cannot compute in the precision.
        RunFolderError: there is no plan, or a file cannot be written.
    """
    plan, encoder = _read(folder / PLAN), None
    done = 0
    for patience in (0.0, -1.0):  # those that another process has begun come last
        for number, name in enumerate(plan.shards, 1):
            texts, vectors = folder / f"{name}.json", folder / f"{name}.vectors"
            if vectors.exists() or not texts.exists():
                continue
            encoder = encoder or plan.encoder.open(trust_remote_code)
            with _claimed(folder / f"{name}.lock", patience) as mine:
                if mine and not vectors.exists() and (count := _encode(texts, vectors, encoder)):
                    done += 1
                    log.info("shard %d of %d: %d texts encoded", number, len(plan.shards), count)
    return done


def _encode(source: Path, target: Path, encoder: Encoder) -> int:
    """Encode a shard; return the number of its texts, or 0 where others have stored it meanwhile."""
    began = time.monotonic()
    try:
        texts = json.loads(read_bytes(source))
    except FileNotFoundError:
        return 0
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{source} cannot be read: {error}; run metasearch index again") from None
    content = io.BytesIO()
    np.save(content, encoder.encode(texts, ROLE))
    encoder.forget()
    if not source.exists():
        return 0
    atomic_write(target, sha256_of_bytes(content.getvalue()).encode() + content.getvalue())
    line = {"shard": target.stem, "texts": len(texts), "seconds": round(time.monotonic() - began, 3)}
    with suppress(OSError), source.with_name("done.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return len(texts)


def _read(path: Path) -> ShardPlan:
    try:
        return ShardPlan.model_validate_json(read_bytes(path))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path} cannot be read: {error}; run metasearch index again") from None


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
