"""Prepares the cells of a study and runs them, several at a time, until all are done or have failed."""

import shutil
import time
from pathlib import Path

from metasearch.config.distill_run import DistillConfig
from metasearch.config.run import RunConfig, ScoreConfig
from metasearch.config.study import StudyConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError, MetasearchError, RunFolderError
from metasearch.io import held
from metasearch.pipelines import factory
from metasearch.pipelines.distill.checks import load_roles
from metasearch.pipelines.distill.checks import resolved as resolved_distillation
from metasearch.pipelines.run import ENCODER, WAIT_SECONDS, stopped
from metasearch.pipelines.study.cell import begin_attempt, last_error
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers.base import JobEnd, Launcher
from metasearch.pipelines.study.plan import Cell, CellConfig
from metasearch.pipelines.study.status import CellStatus, StatusBoard, Watcher
from metasearch.runs.folder import RunFolder
from metasearch.training.hardware import device_of


class Pool:
    """The cells of a study, `jobs` of them submitted at a time."""

    def __init__(
        self,
        study: StudyFolder,
        stored: StudyMetadata,
        board: StatusBoard,
        launcher: Launcher,
        jobs: int,
        watcher: Watcher,
    ) -> None:
        self.study = study
        self.stored = stored
        self.board = board
        self.launcher = launcher
        self.jobs = jobs
        self.watcher = watcher
        self._prepared: set[str] = set()

    def run(self) -> None:
        """Run until all cells have ended."""
        try:
            try:
                # Cells that an earlier runner has submitted.
                for name in self.launcher.active:
                    self._queue(self.board.cells[name])
                    self.watcher.changed(self.board, self.board.cells[name])
                while self._submit():
                    self._look()
            finally:
                self._stop()
        except KeyboardInterrupt:
            raise stopped(self.study.path, "stopped; progress is saved") from None

    def _submit(self) -> bool:
        """Submit as many waiting cells as there is room for; return whether any cell is left."""
        ready: list[CellStatus] = []
        for status in self.board.within("waiting"):
            if len(self.launcher.active) + len(ready) >= self.jobs:
                break
            if self._prepare(status):
                ready.append(status)
        for status in ready:
            self._queue(status)
        taken = self.launcher.submit([status.cell for status in ready]) if ready else ()
        for status in ready:
            if status.cell.name not in taken:
                status.state = "waiting"
        return bool(self.launcher.active or self.board.within("waiting"))

    def _queue(self, status: CellStatus) -> None:
        log = self.study.log(status.cell.name)
        status.logged = log.stat().st_size if log.is_file() else 0
        status.state, status.began, status.error = "queued", time.monotonic(), ""

    def _prepare(self, status: CellStatus) -> bool:
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
        """Update the status of all cells; wait for a moment where none has ended."""
        ended = self.launcher.collect()
        for name in (*self.launcher.active, *ended):
            self._follow(self.board.cells[name])
        for name, end in ended.items():
            self._end(self.board.cells[name], end)
        self.watcher.ticked(self.board)
        if not ended:
            time.sleep(self.launcher.tick)

    def _follow(self, status: CellStatus) -> None:
        log = self.study.log(status.cell.name)
        if status.state != "running" and log.is_file() and log.stat().st_size > status.logged:
            status.state, status.began = "running", time.monotonic()
            self.watcher.changed(self.board, status)
        status.follow(self.study)

    def _end(self, status: CellStatus, end: JobEnd) -> None:
        status.seconds = time.monotonic() - status.began
        # The exit code alone does not do: a run is finished when its report, written last, is there.
        if end.code == 0 and self.study.done(status.cell):
            self.study.tidy(status.cell, self.stored.config.keep_models)
            status.state = "done"
        elif self.board.stopping:
            status.state = "stopped"
        else:
            status.state, status.error = "failed", self._explain(status.cell.name, end)
        self.watcher.changed(self.board, status)

    def _explain(self, name: str, end: JobEnd) -> str:
        """Return why a cell failed, and the path of its log."""
        log = self.study.log(name)
        why = end.reason if end.code is None else f"exit code {end.code}"
        return f"{why}: {last_error(log) or 'it wrote no error'} (log: {log})"

    def _stop(self) -> None:
        """Let all cells save a checkpoint and end, and wait for that; Ctrl-C meanwhile ends them at once."""
        again = False
        while self.launcher.active:
            try:
                self.board.stopping = True
                self.launcher.stop(again)
                while self.launcher.active:
                    self._look()
            except KeyboardInterrupt:
                again = True


def require_encoders(config: StudyConfig) -> dict[str, str]:
    """Load the encoders of a study once, on the CPU, so that no cell fails for what all have in common.

    Returns the fingerprint of the encoder that it starts from; nothing if weights are drawn from each seed.
    """
    benchmark = load_benchmark(config.on(config.folds[0]))
    device_of(config.compute.device)
    # A GPU would keep some memory for this process as long as the study runs.
    cpu = {"compute": config.compute.model_copy(update={"device": "cpu"})}
    encoder = factory.load_task_encoder(config.encoder, benchmark, "cpu", config.seeds[0])
    for each in config.distilled:
        load_roles(each.model_copy(update=cpu))
    return {} if encoder.seeded else {ENCODER: encoder.origin}


def prepare(study: StudyFolder, cell: Cell, stored: StudyMetadata) -> None:
    """Make the run folders of a cell that are not there with its settings."""
    for name, config in cell.runs.items():
        path = study.at(name)
        if path.is_dir():
            # The process of a killed runner saves its checkpoint first. A process on another machine is waited for by
            # the cell itself.
            with held(path, f"{path}: another process is at work in this folder; wait for it to end", WAIT_SECONDS):
                pass
        _make_folder(path, _resolved(config), stored)


def _make_folder(path: Path, config: CellConfig, stored: StudyMetadata) -> None:
    """Make a run folder; one that is damaged or has reached nothing is made anew."""
    try:
        files, began = RunFolder.open(path, type(config))
        known = _resolved(began.config)
    except (ConfigError, RunFolderError):
        # What was reached is not thrown away for a configuration that was damaged since.
        if RunFolder(path).begun:
            raise
        known = None
    if known == config:
        return
    # Where the study was moved, and with it a distilled model, its scores are soon computed again.
    if known is not None and files.begun and not isinstance(config, ScoreConfig):
        raise RunFolderError(f"{path}: this run was made with other settings than the study")
    # `create` refuses a folder that holds anything.
    shutil.rmtree(path, ignore_errors=True)
    # A distillation does not read the task's data: each of its stages keeps a fingerprint of its own.
    data = "" if isinstance(config, DistillConfig) else stored.data_fingerprint
    starts = not isinstance(config, DistillConfig) and config.encoder.name == stored.config.encoder.name
    RunFolder.create(path, config, data, stored.weights if starts else None)


def _resolved(config: CellConfig) -> CellConfig:
    """Return a configuration with all options of its learners spelt out."""
    if isinstance(config, RunConfig):
        return config.model_copy(update={"recipe": factory.resolved(config.recipe)})
    return resolved_distillation(config) if isinstance(config, DistillConfig) else config
