"""The process of one cell: `python -m metasearch.jobs.crossval.cell STUDY NAME PIPE`.

It writes what happens as JSON lines to the pipe, and everything else to its log. Its standard input is open as long as
the runner lives; at its end the cell stops as after SIGTERM, with a checkpoint.
"""

import json
import logging
import os
import shutil
import signal
import sys
import threading
import traceback
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from metasearch.errors import ConfigError, Interrupted, MetasearchError, RunFolderError
from metasearch.jobs import compose, train
from metasearch.jobs.crossval.folder import Stored, StudyFolder
from metasearch.jobs.crossval.plan import Cell, plan
from metasearch.jobs.crossval.take_over import take_over
from metasearch.jobs.distill import job
from metasearch.jobs.distill.checks import resolved as resolved_distillation
from metasearch.jobs.scoring import Row, score
from metasearch.runs.folder import RunFolder
from metasearch.runs.listener import Listener
from metasearch.spec.distill_run import DistillConfig
from metasearch.spec.library import Library
from metasearch.spec.recipe import MaxLength, RunConfig, ScoreConfig
from metasearch.training.machine import keep_memory

WAIT_SECONDS = 60.0
"""How long is waited for the process of a runner that was killed to save its checkpoint and let go of the cell."""


class Reports:
    """A listener that tells the runner what happens.

    Args:
        pipe: where lines of JSON go.
        stage: of a distillation; empty otherwise.
    """

    def __init__(self, pipe: int, stage: str = "") -> None:
        self.pipe = pipe
        self.stage = stage

    def say(self, **event: Any) -> None:
        """Write an event."""
        try:
            os.write(self.pipe, json.dumps({**event, "stage": self.stage}).encode() + b"\n")
        except BrokenPipeError:
            return  # the runner is gone; `_stop_without_runner` sees to it

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Tell of a step."""
        self.say(step=step, total=total)

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Tell of a dev score."""
        self.say(step=step, dev=score, best=best)


def do(study: StudyFolder, cell: Cell, stored: Stored, reports: Reports) -> None:
    """Begin a cell, or go on with it, to its end.

    Raises:
        MetasearchError: of every kind; what was reached is saved.
    """
    path = study.at(cell.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(f"{path}.lock", timeout=WAIT_SECONDS):
            if not study.done(cell.name):
                _go(study, cell, stored, reports)
            study.tidy(cell, stored.config.keep_models)
    except Timeout:
        raise RunFolderError(f"{path}: another process is at work in this folder; wait for it to end") from None


def _go(study: StudyFolder, cell: Cell, stored: Stored, reports: Reports) -> None:
    path, trust = study.at(cell.name), stored.config.trust_remote_code
    if isinstance(cell.config, DistillConfig):
        _distill(path, cell.config, reports, trust)
        return
    files = _opened(path, cell.config, stored.data_fingerprint)
    if isinstance(cell.config, ScoreConfig):
        if cell.origin is not None and _independent_of_seed(cell.config, stored.config.seeds[0]):
            said: Row = {"seed": cell.config.seed}
            take_over(RunFolder(study.at(cell.origin)), files, said, stored.data_fingerprint, ("dev", "test"))
        with files.held():
            score(cell.config, files)
        return
    recipe = cell.config.recipe
    if cell.origin is not None:
        # With a part of dev held out, the dev score is on that part alone.
        splits = ("test",) if recipe.budget.dev_holdout else ("dev", "test")
        said = {"mode": cell.config.mode, "recipe": recipe.recipe}
        take_over(RunFolder(study.at(cell.origin)), files, said, stored.data_fingerprint, splits)
    train.resume(path, reports, trust)


def _opened(path: Path, config: ScoreConfig | RunConfig, fingerprint: str) -> RunFolder:
    """Return the run folder of a cell, made anew unless it is there as it is wanted."""
    if isinstance(config, RunConfig):
        config = config.model_copy(update={"recipe": compose.resolved(config.recipe)})
    try:
        files, found, _ = RunFolder.open(path, type(config))
    except (ConfigError, RunFolderError):  # never made, or killed while its first file was written
        return _made(path, config, fingerprint)
    if isinstance(found, RunConfig):
        found = found.model_copy(update={"recipe": compose.resolved(found.recipe)})
    if found != config:
        if isinstance(config, ScoreConfig):  # the study was moved, and with it the model; scores are soon made again
            return _made(path, config, fingerprint)
        raise RunFolderError(f"{path}: the run that is here was made with other settings than the study has")
    return files


def _made(path: Path, config: ScoreConfig | RunConfig, fingerprint: str) -> RunFolder:
    shutil.rmtree(path, ignore_errors=True)
    return RunFolder.create(path, config, fingerprint)


def _independent_of_seed(config: ScoreConfig, first: int) -> bool:
    """Whether the encoder is the same with the study's first seed."""
    length = Library(config.include).task(config.task).max_length
    return len({_fingerprint(config, seed, length) for seed in (first, config.seed)}) == 1


def _fingerprint(config: ScoreConfig, seed: int, length: MaxLength) -> str:
    return compose.load_encoder(config.encoder, length, "cpu", seed, config.trust_remote_code).fingerprint


def _distill(path: Path, config: DistillConfig, reports: Reports, trust: bool) -> None:
    def hear(stage: str) -> AbstractContextManager[Listener]:
        return nullcontext(Reports(reports.pipe, stage))

    try:
        _, found, _ = RunFolder.open(path, DistillConfig)
    except (ConfigError, RunFolderError):
        shutil.rmtree(path, ignore_errors=True)
        job.distill(config, path, hear)
        return
    if resolved_distillation(found) != resolved_distillation(config):
        raise RunFolderError(f"{path}: the run that is here was made with other settings than the study has")
    job.resume(path, hear, trust)


def main(study: StudyFolder, name: str, pipe: int) -> int:
    """Do a cell of a study; return the exit code, after an error has been written to the log and the pipe."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_stop_without_runner, daemon=True).start()
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("metasearch").setLevel(logging.INFO)
    keep_memory()
    reports = Reports(pipe)
    try:
        stored = study.stored()
        do(study, next(cell for cell in plan(stored.config, study.path) if cell.name == name), stored, reports)
    except KeyboardInterrupt:
        return _failed(reports, "stopped", Interrupted.exit_code)
    except MetasearchError as error:
        return _failed(reports, str(error), error.exit_code)
    except Exception as error:
        traceback.print_exc()
        return _failed(reports, f"a bug in metasearch: {type(error).__name__}: {error}", 1)
    return 0


def _failed(reports: Reports, message: str, code: int) -> int:
    sys.stderr.write(f"metasearch: error: {message}\n")
    reports.say(error=message)
    return code


def _stop_without_runner() -> None:
    """Wait for the end of standard input, then ask this process to stop as a user would."""
    while os.read(0, 1024):
        continue
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(StudyFolder(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])))
