"""A run from its configuration to its report: the steps that training, distillation and scoring have in common."""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NoReturn, Self

from metasearch.config.base import Settings
from metasearch.config.run import Config
from metasearch.errors import ConfigError, DataError, EncoderError, Interrupted, ProcessLost, to_resume
from metasearch.evaluation.study.read import STUDY_FILE
from metasearch.io import OutOfRoom, require_room
from metasearch.runs.callbacks import SILENT, Callback, OpenCallback
from metasearch.runs.folder import RunFolder, RunMetadata
from metasearch.runs.rows import Row
from metasearch.runs.signals import interrupted
from metasearch.training.distributed import SINGLE_PROCESS, ProcessGroup, join_processes

ENCODER = "encoder"
"""Key of the encoder's fingerprint in the metadata of a run; a distillation has one key for each role."""

WAIT_SECONDS = 60.0
"""How long a cell waits for the process of a killed runner to save its checkpoint and to release the folder."""


@dataclass(frozen=True)
class RunResult:
    """The result of a finished run: its folder, all scores as in `results.jsonl`, and its report in Markdown."""

    folder: Path
    rows: list[Row]
    report: str

    @classmethod
    def read(cls, files: RunFolder) -> "RunResult":
        """Read a finished run folder; `RunFolderError` if a file has changed since the run wrote it."""
        rows = files.results()
        files.require_unchanged()
        return cls(files.path, rows, files.report.read_text(encoding="utf-8"))


def silent(name: str) -> AbstractContextManager[Callback]:
    """Open a callback that does nothing."""
    return nullcontext(SILENT)


class Run(ABC, Generic[Config]):
    """Fills a run folder; a run that was stopped resumes to the same bits.

    `TrainRun(config, folder)` is a new run, whose folder `execute` makes once every check has passed.
    `TrainRun.open(folder)` is an existing one, with its metadata in `began`.
    """

    settings: ClassVar[type[Settings]]
    """Class of the configuration."""

    def __init__(self, config: Config, folder: Path) -> None:
        self.config, self.files = config, RunFolder(folder)
        self.began: RunMetadata[Config] | None = None
        self.processes: ProcessGroup = SINGLE_PROCESS
        self._start = 0.0

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Return the run in a folder; `RunFolderError` if there is none, `ConfigError` for a wrong configuration."""
        began = RunFolder(folder).stored(cls.settings)
        run = cls(began.config, folder)  # type: ignore[arg-type]
        run.began = began  # type: ignore[assignment]
        return run

    @abstractmethod
    def load_data(self) -> str:
        """Check names and options and load the data, but no weights; return the fingerprint of the data."""

    @abstractmethod
    def load_encoders(self) -> Mapping[str, str]:
        """Load the encoders; return the fingerprint of each checkpoint by its part in the run."""

    def validate(self) -> None:
        """Check what could fail later, such as disk space; skipped for a run that has scores or steps already."""

    @abstractmethod
    def work(self, open_callback: OpenCallback) -> None:
        """Do the remaining work, and write the report; `Interrupted` after saving progress."""

    def follow(self) -> None:
        """Take part in the work of the first process, which alone writes and scores."""

    @property
    def trusts_code(self) -> bool:
        """Whether the run was created with permission to run code that comes with its encoders."""
        return bool(self.config.encoder.trust_remote_code)  # type: ignore[attr-defined]

    def execute(
        self, open_callback: OpenCallback = silent, trust_remote_code: bool = False, patience: float = 0
    ) -> RunResult:
        """Run to the end, alone in the folder. A finished run is only read.

        A resumed run needs the permission to run code that comes with an encoder again. `patience` is the number of
        seconds to wait for another process that works in the folder.
        """
        if self.began:
            # Before anything is loaded: a finished run needs neither data nor encoder.
            if self.files.finished:
                # A process that died right after the report has left checkpoints.
                self.files.remove_checkpoint()
                return RunResult.read(self.files)
            require_trust(self.files.path, self.trusts_code, trust_remote_code)
        with resumable(self.files.path, self.continuation):
            data = self.load_data()
            if self.began:
                require_same_data(self.files.path, self.began.data_fingerprint, data)
            weights = self.load_encoders()
            if not self.files.begun:
                self.validate()
            self.processes = join_processes()
            if not self.processes.first:
                self.follow()
                self.processes.end()
                return RunResult(self.files.path, [], "")
            if self.began:
                # The options of its recipe are checked by now, and no longer texts.
                check_weights(self.files, self.began.model_copy(update={"config": self.config}), weights)
                return self._complete(open_callback, patience)
            self.files = RunFolder.create(self.files.path, self.config, data, weights)
            try:
                return self._complete(open_callback, patience)
            except (ConfigError, DataError, EncoderError):
                if not self.files.begun:
                    self._discard()
                raise

    def _complete(self, open_callback: OpenCallback, patience: float) -> RunResult:
        with self.files.held(patience):
            # Asked under the lock only: the process that was waited for may have finished the run.
            if not self.files.finished:
                self._start = time.monotonic()
                self.work(open_callback)
            self.processes.end()
        return RunResult.read(self.files)

    def require_disk_space(self, model: int) -> None:
        """Raise `RunFolderError` unless the disk has three times the bytes of the model free."""
        require_room(self.files.path, 3 * model, "model and checkpoints")

    @property
    def continuation(self) -> str:
        """How the user continues a stopped run: a command, or a call."""
        return to_resume(self.files.path)

    @property
    def seconds(self) -> float:
        """Seconds since the work began or was resumed."""
        return time.monotonic() - self._start

    def stop(self, reached: str) -> NoReturn:
        """Raise `Interrupted`, once every process has stopped after the same step."""
        # A process that ended before this would be taken for lost.
        self.processes.end()
        raise stopped(self.files.path, reached)

    def _discard(self) -> None:
        """Delete a folder that holds nothing but the configuration, so that the corrected command can have it."""
        for path in self.files.path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        with suppress(OSError):  # a link, or a mounted folder, stays
            self.files.path.rmdir()


@contextmanager
def resumable(folder: Path, continuation: str = "") -> Iterator[None]:
    """Add how to continue the run or study in a folder to an error that stops it.

    `continuation` is the command or call that continues it; by default `metasearch resume`.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise stopped(folder, continuation=continuation) from None
    except (OutOfRoom, ProcessLost) as error:
        raise type(error)(f"{error}{_hint(folder, continuation)}") from error


def stopped(folder: Path, what: str = "stopped", continuation: str = "") -> Interrupted:
    """Return the error of a run or study that was stopped, and how to continue it if the folder holds anything."""
    return interrupted(f"{what}{_hint(folder, continuation)}")


def holds_something(folder: Path) -> bool:
    """Whether `metasearch resume` can resume a folder."""
    return any((folder / name).is_file() for name in (STUDY_FILE, "config.yaml"))


def _hint(folder: Path, continuation: str) -> str:
    return f". Continue with: {continuation or to_resume(folder)}" if holds_something(folder) else ""


def require_trust(folder: Path, began_with: bool, said: bool, what: str = "run") -> None:
    """Raise `ConfigError` if a run or study needs code of its encoder that is not trusted again."""
    # A configuration is no consent: who wrote it need not be who resumes it.
    if began_with and not said:
        raise ConfigError(f"{folder}: the {what} was created with --trust-remote-code; pass it again to resume")


def require_same_data(folder: Path, before: str, now: str, what: str = "run") -> None:
    """Raise `DataError` if the fingerprint of the data is not the one that a run or study began with."""
    if before != now:
        raise DataError(
            f"{folder}: the data has changed since the {what} began (fingerprint {before}, now {now}); cannot resume "
            "with other data"
        )


def check_weights(files: RunFolder, began: RunMetadata[Any], now: Mapping[str, str]) -> None:
    """Raise `EncoderError` if the weights of an encoder differ from the start of the run; record unknown ones.

    `now` has the fingerprint of each encoder's checkpoint by its part in the run.
    """
    for what, fingerprint in now.items():
        require_same_weights(f"{files.path}: its {what}", began.weights.get(what, fingerprint), fingerprint)
    # A study makes the folders of its cells before it loads an encoder.
    files.record(began, now)


def require_same_weights(what: str, before: str, now: str) -> None:
    """Raise `EncoderError` if the fingerprint of an encoder is not the one that a run began with."""
    if before != now:
        raise EncoderError(
            f"{what} has different weights, vocabulary or prompts since the run was created (fingerprint {before}, now "
            f"{now}); cannot resume with another encoder"
        )
