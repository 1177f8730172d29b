"""Prepares the cells of a study and runs them, several at a time, until all are done or have failed."""

import logging
import shutil
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import mean
from typing import Literal, get_args

from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
from metasearch.config.run import ComputeConfig, RunConfig, ScoreConfig
from metasearch.config.study import StudyConfig
from metasearch.errors import ConfigError, MetasearchError, RunFolderError
from metasearch.evaluation.report.formats import duration
from metasearch.pipelines import factory
from metasearch.pipelines.run import WAIT_SECONDS, stopped
from metasearch.pipelines.study.cell import begin_attempt, last_error
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers import JobEnd, Launcher
from metasearch.runs.folder import RunFolder

log = logging.getLogger(__name__)

EVERY_SECONDS = 10.0
"""Time between two lines of progress."""

State = Literal["done", "failed", "stopped", "queued", "running", "waiting"]


CellConfig = ScoreConfig | RunConfig


@dataclass(frozen=True)
class Cell:
    """One run of a study, such as `maml-trans/fold-0-seed-1`: an encoder is scored, or trained."""

    name: str
    config: CellConfig


def plan(config: StudyConfig) -> list[Cell]:
    """Return the cells of a study in the order in which they begin.

    Base encoders come first, then all arms of a fold, so that an unfinished study is comparable.
    """
    # Scores are computed in float32, so precision and checkpointing do not matter.
    compute = ComputeConfig(device=config.compute.device)
    labels = {ZERO_SHOT: None, **({NEUTRAL: config.neutral} if config.neutral else {})}
    cells = []
    for (label, neutralise), seed, fold in product(labels.items(), config.seeds, config.folds):
        score = ScoreConfig(
            data=config.on(fold), encoder=config.encoder, compute=compute, label=label, neutralise=neutralise, seed=seed
        )
        cells.append(Cell(f"{label}/fold-{fold}-seed-{seed}", score))
    for seed, fold, arm in product(config.seeds, config.folds, config.trained):
        run = RunConfig(
            data=config.on(fold), encoder=config.encoder, compute=config.compute, mode=arm.mode,
            recipe=arm.recipe, seed=seed, max_steps=config.max_steps,
        )  # fmt: skip
        cells.append(Cell(f"{arm.arm}/fold-{fold}-seed-{seed}", run))
    return cells


@dataclass(eq=False)
class _Status:
    """A cell: `queued` from its submission until its log grows beyond `logged` bytes, then `running`."""

    cell: Cell
    state: State = "waiting"
    began: float = 0.0
    logged: int = 0
    error: str = ""


class Pool:
    """The cells of a study, `jobs` of them submitted at a time; every change is logged."""

    def __init__(
        self, study: StudyFolder, stored: StudyMetadata, cells: Sequence[Cell], done: Collection[str],
        launcher: Launcher, jobs: int,
    ) -> None:  # fmt: skip
        self.study, self.stored, self.launcher, self.jobs = study, stored, launcher, jobs
        self._cells = {cell.name: _Status(cell, "done" if cell.name in done else "waiting") for cell in cells}
        self._prepared: set[str] = set()
        self._seconds: dict[str, list[float]] = {}  # kind of a cell → durations
        self._said, self._stopping = time.monotonic(), False

    def run(self) -> dict[str, str]:
        """Run until all cells have ended; return the error of each failed one."""
        try:
            try:
                for name in self.launcher.active:  # cells that an earlier runner has submitted
                    self._queue(self._cells[name])
                    log.info("%s queued (%s)", name, self._counts())
                while self._submit():
                    self._look()
            finally:
                self._stop()
        except KeyboardInterrupt:
            raise stopped(self.study.path, "stopped; progress is saved") from None
        return {status.cell.name: status.error for status in self._within("failed")}

    def _within(self, *states: State) -> list[_Status]:
        return [status for status in self._cells.values() if status.state in states]

    def _submit(self) -> bool:
        """Submit as many waiting cells as there is room for; return whether any cell is left."""
        ready: list[_Status] = []
        for status in self._within("waiting"):
            if len(self.launcher.active) + len(ready) >= self.jobs:
                break
            if self._prepare(status):
                ready.append(status)
        for status in ready:
            self._queue(status)
        taken = self.launcher.submit([status.cell.name for status in ready]) if ready else ()
        for status in ready:
            if status.cell.name not in taken:
                status.state = "waiting"
        return bool(self.launcher.active or self._within("waiting"))

    def _queue(self, status: _Status) -> None:
        text = self.study.log(status.cell.name)
        status.state, status.began = "queued", time.monotonic()
        status.logged = text.stat().st_size if text.is_file() else 0

    def _prepare(self, status: _Status) -> bool:
        """Make the run folders of a cell; a cell where that fails has failed alone."""
        if status.cell.name in self._prepared:
            return True
        try:
            prepare(self.study, status.cell, self.stored)
        except MetasearchError as error:
            begin_attempt(self.study.log(status.cell.name), str(error))
            self._end(status, JobEnd(error.exit_code))
            return False
        self._prepared.add(status.cell.name)
        return True

    def _look(self) -> None:
        """Update the status of all cells; wait for a moment if none has ended."""
        ended = self.launcher.collect()
        for name in (*self.launcher.active, *ended):
            status, text = self._cells[name], self.study.log(name)
            if status.state == "queued" and text.is_file() and text.stat().st_size > status.logged:
                status.state, status.began = "running", time.monotonic()
                log.info("%s running (%s)", name, self._counts())
        for name, end in ended.items():
            self._end(self._cells[name], end)
        if time.monotonic() - self._said >= EVERY_SECONDS:
            self._said = time.monotonic()
            log.info("%s", self._counts())
        if not ended:
            time.sleep(self.launcher.tick)

    def _end(self, status: _Status, end: JobEnd) -> None:
        name, seconds = status.cell.name, time.monotonic() - status.began
        # A run is finished when its report, written last, is there; its node may have died before it told so.
        if not end.code and self.study.done(name):
            self.study.tidy(name, self.stored.config.keep_models)
            status.state, said = "done", f"done in {duration(seconds)}"
            self._seconds.setdefault(status.cell.config.kind, []).append(seconds)
        elif self._stopping:
            status.state = said = "stopped"
        else:
            text, why = self.study.log(name), end.reason if end.code is None else f"exit code {end.code}"
            status.state, status.error = "failed", f"{why}: {last_error(text) or 'it wrote no error'} (log: {text})"
            said = f"failed: {status.error}"
        log.info("%s %s (%s)", name, said, self._counts())

    def _counts(self) -> str:
        """Return the number of cells by state and the time left, such as `3 of 8 done, 1 failed, about 5 min left`."""
        counts = Counter(status.state for status in self._cells.values())
        shown = [f"{counts['done']} of {len(self._cells)} done"]
        shown += [f"{counts[state]} {state}" for state in get_args(State)[1:4] if counts[state]]
        left = self._within("waiting", "queued", "running")
        # By the mean duration of finished cells of the same kind, once there is one of each.
        if left and all(status.cell.config.kind in self._seconds for status in left):
            seconds = sum(mean(self._seconds[status.cell.config.kind]) for status in left)
            shown.append(f"about {duration(seconds / max(1, len(self.launcher.active)))} left")
        return ", ".join(shown)

    def _stop(self) -> None:
        """Let all cells save a checkpoint and end, and wait for that; Ctrl-C meanwhile ends them at once."""
        again = False
        while self.launcher.active:
            try:
                if not self._stopping:
                    log.info("stopping, with checkpoints; Ctrl-C again stops at once")
                self._stopping = True
                self.launcher.stop(again)
                while self.launcher.active:
                    self._look()
            except KeyboardInterrupt:
                again = True


def prepare(study: StudyFolder, cell: Cell, stored: StudyMetadata) -> None:
    """Make the run folder of a cell; one that is damaged or has reached nothing is made anew."""
    path, config = study.at(cell.name), _resolved(cell.config)
    files = RunFolder(path)
    if path.is_dir():
        # The process of a killed runner saves its checkpoint first. A process on another machine is waited for by the
        # cell itself.
        with files.held(WAIT_SECONDS):
            pass
    try:
        known = _resolved(files.stored(type(config)).config)
    except (ConfigError, RunFolderError):
        # What was reached is not thrown away for a configuration that was damaged since.
        if files.begun:
            raise
        known = None
    if known == config:
        return
    if known is not None and files.begun:
        raise RunFolderError(f"{path}: this run was made with other settings than the study")
    # `create` refuses a folder that holds anything.
    shutil.rmtree(path, ignore_errors=True)
    RunFolder.create(path, config, stored.data_fingerprint, stored.weights)


def _resolved(config: CellConfig) -> CellConfig:
    """Return a configuration with all options of its learner spelt out."""
    if isinstance(config, ScoreConfig):
        return config
    return config.model_copy(update={"recipe": factory.resolved(config.recipe)})
