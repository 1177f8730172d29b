"""What all commands that fill a run folder share: how the work is done, and stopped."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metasearch.errors import ConfigError, DataError, EncoderError, Interrupted, ProcessLost, to_resume
from metasearch.evaluation.study.read import STUDY_FILE
from metasearch.io import OutOfRoom, require_room
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.folder import RunFolder, RunMetadata
from metasearch.runs.signals import interrupted
from metasearch.training.distributed import SINGLE_PROCESS, ProcessGroup

Row = dict[str, Any]
"""A score, as in `results.jsonl`."""

CallbackFactory = Callable[[str], AbstractContextManager[Callback]]
"""Opens a callback for what is called so, a run or a stage of one."""

ENCODER = "encoder"
"""What the encoder of a run is called beside its fingerprint; those of a distillation are called by their roles."""

WAIT_SECONDS = 60.0
"""How long a cell waits for the process of a runner that was killed to save its checkpoint and let go of the folder."""


@dataclass(frozen=True)
class RunResult:
    """What a finished run gives back.

    Attributes:
        folder: the run folder.
        rows: all scores, as in `results.jsonl`.
        report: the Markdown of `report.md`.
    """

    folder: Path
    rows: list[Row]
    report: str

    @classmethod
    def of(cls, files: RunFolder) -> "RunResult":
        """Return what stands in a finished run folder; `RunFolderError` where it is not what the run wrote."""
        rows = files.results()
        files.require_unchanged()
        return cls(files.path, rows, files.report.read_text(encoding="utf-8"))


def silent(name: str) -> AbstractContextManager[Callback]:
    """Open a callback that says nothing."""
    return nullcontext(SILENT)


def complete(
    files: RunFolder, work: Callable[[], object], patience: float = 0, processes: ProcessGroup = SINGLE_PROCESS
) -> RunResult:
    """Do the work of a run that is not finished, alone in its folder; wait `patience` seconds for who is at work there.

    The other processes of the run are let go when everything is written.

    Raises:
        Interrupted: by Ctrl-C or SIGTERM; it says how to go on.
        RunFolderError: another process is at work in the folder, or the disk is full; it says how to go on.
    """
    with resumable(files.path), files.held(patience):
        # Asked under the lock only: the process that was waited for may have finished the run.
        if not files.finished:
            work()
        processes.end()
    return RunResult.of(files)


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """While entered, whatever stops the work in the folder of a run or study says how to resume it.

    Raises:
        Interrupted: by Ctrl-C or SIGTERM.
        RunFolderError: the disk is full.
        ProcessLost: another process of the run has ended.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise stopped(folder) from None
    except (OutOfRoom, ProcessLost) as error:
        # Entered twice where a command makes the folder.
        if _go_on(folder) in str(error) or not holds_something(folder):
            raise
        raise type(error)(f"{error}{_go_on(folder)}") from error


def stopped(folder: Path, what: str = "stopped") -> Interrupted:
    """Return the error of a run or study that was stopped, with the command that resumes it if there is anything."""
    return interrupted(f"{what}{_go_on(folder) if holds_something(folder) else ''}")


def holds_something(folder: Path) -> bool:
    """Whether `metasearch resume` can go on with a folder."""
    return any((folder / name).is_file() for name in (STUDY_FILE, "config.yaml"))


def _go_on(folder: Path) -> str:
    return f". Go on with: {to_resume(folder)}"


def require_disk_space(folder: Path, model: int) -> None:
    """Raise `RunFolderError` unless the disk of a run folder has three times the bytes of its model free."""
    require_room(folder, 3 * model, "model and checkpoints")


def require_trust(folder: Path, began_with: bool, said: bool, what: str = "run") -> None:
    """Raise `ConfigError` where a run or study began with code of its encoder's, and that is not trusted again."""
    # A configuration is no consent: who wrote it need not be who resumes it.
    if began_with and not said:
        raise ConfigError(f"{folder}: the {what} began with --trust-remote-code; say it again to go on")


def require_same_data(folder: Path, before: str, now: str, what: str = "run") -> None:
    """Raise `DataError` where the fingerprint of the data is not the one that a run or study began with."""
    if before != now:
        raise DataError(
            f"{folder}: the data has changed since the {what} began (fingerprint {before}, now {now}); it cannot go on "
            "with other data"
        )


def check_weights(files: RunFolder, began: RunMetadata[Any], now: Mapping[str, str]) -> None:
    """Raise `EncoderError` where the weights of an encoder are not those that a run began with; note those not known.

    Args:
        files: of the run.
        began: with what it did.
        now: what an encoder is to the run → fingerprint of its checkpoint.
    """
    before = dict(began.weights)
    for row in files.results():
        if "weights" in row:
            # Of a cell whose untrained scores another cell made, these say it first.
            before.setdefault(ENCODER, row["weights"])
    for what, fingerprint in now.items():
        require_same_weights(f"{files.path}: its {what}", before.get(what, fingerprint), fingerprint)
    # A study makes the folders of its cells before it loads an encoder.
    if now.keys() - began.weights.keys():
        files.record_weights(began, now)


def require_same_weights(what: str, before: str, now: str) -> None:
    """Raise `EncoderError` where the fingerprint of an encoder, called `what`, is not the one that a run began with."""
    if before != now:
        raise EncoderError(
            f"{what} has other weights, words or prompts than when the run began (fingerprint {before}, now {now}); it "
            "cannot go on with another encoder"
        )
