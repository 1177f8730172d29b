"""The files of a run: configuration, log and results.

    config.yaml      the resolved configuration; `metasearch resume` reads it
    log.jsonl        one line an outer step or dev score
    results.jsonl    one line a score, and lines of facts that scores share: `metasearch.runs.rows`
    queries/         the score of each test question, and what ranked where: `metasearch.runs.per_query_results`
    facts.json       time, memory and hardware
    SHA256SUMS       hashes of the files above, once the run is finished, as for `sha256sum --check`
    report.md        the table against zero-shot; written last
    model/           loads with plain SentenceTransformer
    checkpoint/      only while a run is not finished

Results and report appear whole or not at all.
"""

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic

from metasearch.config import yaml
from metasearch.config.base import FrozenConfig, Settings
from metasearch.config.run import Config
from metasearch.errors import ConfigError, DataError, RunFolderError, quoted, to_resume
from metasearch.io import NEW, atomic_write, digest, held, move, read_bytes, sha256_of_bytes, share, taken, write_error
from metasearch.runs.rows import Row, format_rows, read_rows

log = logging.getLogger(__name__)

CONFIG = "config.yaml"
SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_COVERED = (CONFIG, "results.jsonl", "log.jsonl", "facts.json", "queries/*.npz")


class RunMetadata(FrozenConfig, Generic[Config]):
    """`config.yaml`: a run's configuration and starting state.

    Attributes:
        data_fingerprint: of the task's data; empty if each stage of the run keeps its own.
        weights: role such as `encoder` or `teacher` → fingerprint of its checkpoint; empty before they are loaded.
    """

    data_fingerprint: str
    weights: Mapping[str, str] = {}
    config: Config


class RunFolder:
    """Reads and writes one run's files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = path / "model"
        self.report = path / "report.md"
        self._results = path / "results.jsonl"
        self._log = path / "log.jsonl"
        self._facts = path / "facts.json"
        self._goes_on = False

    @classmethod
    def create(
        cls, path: Path, config: Settings, fingerprint: str, weights: Mapping[str, str] | None = None
    ) -> "RunFolder":
        """Make a new run folder and write what it begins with, as in `RunMetadata`."""
        if taken(path, CONFIG):
            known = f", or continue with: {to_resume(path)}" if _is_run(path) else ""
            what = "exists already" if known else "exists already and is no run"
            raise RunFolderError(f"{path} {what}; choose another folder with -o{known}")
        files = cls(path)
        files._begin(RunMetadata(data_fingerprint=fingerprint, weights=weights or {}, config=config))
        return files

    def stored(self, kind: type[Config]) -> RunMetadata[Config]:
        """Return what the run began with; `kind` is the class of its configuration."""
        if not (self.path / CONFIG).is_file():
            raise RunFolderError(f"{self.path} is not a run folder: it has no {CONFIG}")
        return yaml.read_stored(self.path / CONFIG, RunMetadata[kind])  # type: ignore[valid-type]

    def record(self, begun: RunMetadata[Config], weights: Mapping[str, str]) -> None:
        """Record weights that the file lacks."""
        self._begin(begun.model_copy(update={"weights": {**weights, **begun.weights}}))

    def _begin(self, begun: RunMetadata[Any]) -> None:
        path, text = self.path / CONFIG, yaml.dump(begun.model_dump(mode="json"))
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            atomic_write(path, text)

    @contextmanager
    def held(self, patience: float = 0) -> Iterator[None]:
        """Lock the folder against other processes; wait `patience` seconds for them."""
        busy = f"{self.path}: another process is at work in this folder; wait for it to end"
        with held(self.path, busy, patience):
            yield

    @property
    def finished(self) -> bool:
        """Whether the run is finished."""
        return self.report.is_file()

    @property
    def begun(self) -> bool:
        """Whether the run, or a stage of it, can be resumed: from scores, steps, targets or a checkpoint."""
        reached = ("**/results.jsonl", "**/log.jsonl", "**/checkpoint*", "targets/*/*")
        return any(any(self.path.glob(pattern)) for pattern in reached)

    def save_model(self, save: Callable[[Path], None], size: int) -> None:
        """Let `save` write a model of `size` bytes, which becomes `model/`.

        `RunFolderError` when there is no room; a former model then stays.
        """
        new = self.model.with_name(f"{self.model.name}{NEW}")
        try:
            # What a process left that died while it wrote.
            shutil.rmtree(new, ignore_errors=True)
            save(new)
            share(new)
            shutil.rmtree(self.model, ignore_errors=True)
            move(new, self.model)
        except Exception as error:  # safetensors raises its own error type for a full disk
            shutil.rmtree(new, ignore_errors=True)
            raise write_error(self.model, error, size) from error

    def log(self, event: Mapping[str, Any]) -> None:
        """Append an event, which has a step, to `log.jsonl`.

        A crash leaves events of steps that no checkpoint has. The first event after it says where the run continues:
        what the log has of that step and later ones is dropped, as it comes again.
        """
        if not self._goes_on:
            events = [earlier for earlier in self.events() if earlier["step"] < event["step"]]
            atomic_write(self._log, "".join(json.dumps(earlier) + "\n" for earlier in events))
            self._goes_on = True
        line = json.dumps(event) + "\n"
        try:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            raise write_error(self._log, error, len(line)) from None

    def events(self) -> list[dict[str, Any]]:
        """Return the events in `log.jsonl`; skip an unfinished last line, and other damaged lines with a warning."""
        try:
            lines = read_bytes(self._log).splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RunFolderError(f"{self._log} cannot be read: {error.strerror}") from None
        events = [_event(line) for line in lines]
        if damaged := [number for number, event in enumerate(events[:-1], 1) if event is None]:
            # Not as arguments: of one message with other arguments, the command line would show the first file alone.
            log.warning(f"{self._log}: skipped {len(damaged)} damaged lines, the first is line {damaged[0]}")
        return [event for event in events if event is not None]

    def add_results(self, rows: Iterable[Row]) -> None:
        """Add scores to `results.jsonl`, all or none."""
        # Written anew rather than appended to: a crash leaves the scores of an evaluation whole or not at all.
        try:
            old = read_bytes(self._results) if self._results.exists() else b""
        except OSError as error:
            raise write_error(self._results, error) from None
        atomic_write(self._results, old + format_rows(rows).encode())

    def results(self) -> list[dict[str, Any]]:
        """Return all scores; `DataError` names the line that is damaged."""
        try:
            return read_rows(self._results) if self._results.exists() else []
        except DataError as error:
            if self.finished:
                raise
            raise DataError(f"{error}. To score again, delete {quoted(self._results)}") from None

    def facts(self) -> dict[str, Any]:
        """Return time, memory and hardware of a finished run, else nothing."""
        try:
            known = json.loads(read_bytes(self._facts)) if self._facts.exists() else {}
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{self._facts}: not JSON: {error}. The file is truncated or damaged") from None
        if not isinstance(known, dict):
            raise DataError(f"{self._facts}: not the facts of a run: {json.dumps(known)[:40]}")
        return known

    def require_unchanged(self) -> None:
        """Raise `RunFolderError` if a file in a finished run has changed."""
        sums = self.path / SUMS
        for name, expected in _read_checksums(sums).items():
            path = self.path / name
            if path.is_file() and digest(path) != expected:
                raise RunFolderError(
                    f"{path}: checksum mismatch: it was changed since the run wrote it, or damaged; its hash is in "
                    f"{quoted(sums)}. Restore the file, or delete {SUMS} if you changed it on purpose"
                )

    def finish(self, report: str, facts: Mapping[str, Any] | None = None) -> None:
        """Write facts, hashes and report, which mark the run as finished, and delete the checkpoint."""
        if facts is not None:
            atomic_write(self._facts, json.dumps(facts, indent=2) + "\n")
        write_checksums(self.path, report)
        # A crash here leaves a finished run with a checkpoint, and never an unfinished one without.
        atomic_write(self.report, report)
        self.remove_checkpoint()

    def remove_checkpoint(self) -> None:
        """Delete the checkpoint, if any."""
        for path in self.path.glob("checkpoint*"):
            shutil.rmtree(path, ignore_errors=True)


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    # Half a line that is just being written, or that a crash left; a character cut in two is a ValueError, too.
    except (ValueError, RecursionError):
        return None
    # In Python True is an int.
    return event if isinstance(event, dict) and type(event.get("step")) is int else None


def read_config(folder: Path) -> dict[str, Any]:
    """Return the configuration of a run of any kind and version, unchecked; `ConfigError` if it has none."""
    config = yaml.tree(folder / CONFIG).get("config")
    if not isinstance(config, dict):  # other programs have a `config.yaml`, too
        raise ConfigError(f"{folder / CONFIG}: config: missing key; this is not a metasearch run")
    return config


def _is_run(path: Path) -> bool:
    try:
        read_config(path)
    except ConfigError:
        return False
    return True


def write_checksums(folder: Path, report: str) -> None:
    """Write hashes of a run's files and final report; `RunFolderError` on failure."""
    paths = sorted(path for pattern in _COVERED for path in folder.glob(pattern))
    hashes = {path.relative_to(folder).as_posix(): digest(path) for path in paths}
    hashes["report.md"] = sha256_of_bytes(report.encode())
    atomic_write(folder / SUMS, "".join(f"{each}  {name}\n" for name, each in hashes.items()))


def _read_checksums(path: Path) -> Mapping[str, str]:
    """Return file name → hash; empty if there is no such file."""
    if not path.exists():
        return {}
    try:
        lines = read_bytes(path).decode().removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    known: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not (found := _LINE.fullmatch(line)):
            raise RunFolderError(f"{path}:{number}: expected a SHA-256 and a file's name. The file is damaged")
        known[found[2]] = found[1]
    return known
