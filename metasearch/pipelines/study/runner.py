"""A study from its configuration to its table: its cells run, several at a time, until all are done or have failed."""

import json
import logging
import shutil
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Literal, get_args

from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
from metasearch.config.run import ComputeConfig, RunConfig, ScoreConfig
from metasearch.config.study import LauncherConfig, StudyConfig
from metasearch.data.benchmark import build
from metasearch.encoders.device import device_of
from metasearch.errors import CellsFailed, ConfigError, MetasearchError, RunFolderError, to_resume
from metasearch.evaluation.report.formats import duration, markdown
from metasearch.evaluation.report.main_table import main_table
from metasearch.evaluation.study.read import read_study
from metasearch.evaluation.study.study import Study
from metasearch.io import atomic_write
from metasearch.pipelines import factory
from metasearch.pipelines.run import ENCODER, WAIT_SECONDS, require_same_data, require_trust, resumable, stopped
from metasearch.pipelines.study.cell import begin_attempt, last_error
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers import JobEnd, Launcher, open_launcher
from metasearch.pipelines.study.resolve import merged
from metasearch.runs.folder import RunFolder
from metasearch.runs.versions import differing, versions

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


def begin(
    config: StudyConfig | None,
    folder: Path,
    jobs: int | None = None,
    trust_remote_code: bool = False,
    place: LauncherConfig | None = None,
) -> Study:
    """Run all unfinished jobs of a study, each in its own process, and read their results.

    Args:
        config: the study; it may add to the study in the folder. None continues the study in the folder.
        folder: folder of the study; other machines need it, the data and the encoder at the same paths.
        jobs: number of cells at a time; by default the launcher's: one on this machine.
        trust_remote_code: run code that comes with the encoder; must be repeated if the study began with it.
        place: where the cells run; by default where they ran before, else on this machine.

    Raises:
        CellsFailed: some cells failed; all others are done, and their report is written.
        ConfigError: the configuration contradicts the study, other versions began it, or its cells cannot run at the
            place, or are still at work at another one.
        DataError: the data is not what the study began with.
        EncoderError: the encoder of a new study cannot be loaded.
        Interrupted: what was reached is saved.
        RunFolderError: another runner is at work in the folder, it cannot be written, or there is no study.
    """
    study = StudyFolder(folder)
    weights: dict[str, str] = {}
    # Both before the folder is made.
    if config is None:
        study.stored()
    elif not (study.begun and study.reached):
        weights = require_encoder(config)
    with resumable(study.path), study.held():
        stored = _stored(study, config, place, jobs, weights)
        require_trust(study.path, stored.config.encoder.trust_remote_code, trust_remote_code, "study")
        cells = plan(stored.config)
        done = {cell.name for cell in cells if study.done(cell.name)}
        # A runner that was killed may have left checkpoints and models of finished cells.
        for name in done:
            study.tidy(name, stored.config.keep_models)
        failed: Mapping[str, str] = {}
        # A finished study is only read, which another version may do.
        if len(done) < len(cells):
            _require_versions(study, stored)
            launcher = open_launcher(study, stored)
            failed = Pool(study, stored, cells, done, launcher, jobs or stored.place.jobs).run()
        if not failed:
            shutil.rmtree(study.jobs, ignore_errors=True)
        if len(failed) == len(cells):
            raise _failed(study, failed)
        results = _report(study)
        if failed:
            raise _failed(study, failed)
        return results


def require_encoder(config: StudyConfig) -> dict[str, str]:
    """Load the encoder of a study once, on the CPU, so that no cell fails for what all have in common.

    Returns its fingerprint; nothing if weights are drawn from each seed.
    """
    device_of(config.compute.device)
    benchmark = build(config.on(config.folds[0]))
    # A GPU would keep some memory for this process as long as the study runs.
    encoder = factory.load_task_encoder(config.encoder, benchmark, "cpu", config.seeds[0])
    return {} if encoder.seeded else {ENCODER: encoder.origin}


def listed_cells(config: StudyConfig, folder: Path) -> list[tuple[Cell, bool]]:
    """Return the cells that `begin` would have, and whether each is done; writes nothing."""
    study = StudyFolder(folder)
    return [(cell, study.done(cell.name)) for cell in plan(_configured(study, config)[1])]


def _configured(study: StudyFolder, asked: StudyConfig | None) -> tuple[StudyMetadata | None, StudyConfig]:
    """Return the metadata of a study that has reached anything, and the configuration with additions."""
    if asked is None:
        old = study.stored()
        return old, old.config
    if not (study.begun and study.reached):  # it may be configured anew
        return None, asked
    old = study.stored()
    return old, merged(old.config, asked, study.path)


def _place(study: StudyFolder, before: LauncherConfig, asked: LauncherConfig | None) -> LauncherConfig:
    """Return where the cells run; `ConfigError` if some may still be at work at another place."""
    if asked is not None and asked.launcher != before.launcher and study.queued():
        raise ConfigError(
            f"{study.path}: jobs may be running in {before.launcher}; continue there with --launcher "
            f"{before.launcher}, and stop them with Ctrl-C to continue elsewhere"
        )
    # The same launcher without settings keeps its settings.
    return before if asked is None or (asked.launcher == before.launcher and not asked.settings) else asked


def _stored(
    study: StudyFolder,
    asked: StudyConfig | None,
    place: LauncherConfig | None,
    jobs: int | None,
    weights: Mapping[str, str],
) -> StudyMetadata:
    """Return and store the metadata of a study; `weights` belong to a new one."""
    old, config = _configured(study, asked)
    place = _place(study, old.place if old else LauncherConfig(), place)
    # The fingerprint is of all data, so any fold will do.
    data = build(config.on(config.folds[0])).data.fingerprint
    if old is not None:
        require_same_data(study.path, old.data_fingerprint, data, "study")
    # Written down for good: the number of threads can change the last bits of a result.
    config = config.model_copy(update={"threads": config.threads or place.threads(jobs or place.jobs)})
    stored = StudyMetadata(
        data_fingerprint=data,
        versions=old.versions if old else versions(),
        weights=old.weights if old else weights,
        place=place,
        cells=[cell.name for cell in plan(config)],
        config=config,
    )
    if stored != old:
        study.store(stored)
    return stored


def _require_versions(study: StudyFolder, stored: StudyMetadata) -> None:
    """Raise `ConfigError` where other versions began the study: their results could not be put together."""
    now = versions()
    if name := differing(stored.versions, now):
        raise ConfigError(
            f"{study.path}: the study began with {name} {stored.versions.get(name)}, this is {now.get(name)}; continue "
            "with that version, or choose another folder with -o"
        )


def _report(study: StudyFolder) -> Study:
    """Read the results and write the report."""
    results = read_study([study.path])
    rows = [{"arm": scored.arm.label, **row} for scored in results.scored for row in scored.rows]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    atomic_write(study.path / "results.jsonl", lines)
    parts = [f"# {results.name}\n", markdown(main_table(results, results.select()))]
    if results.missing:
        parts.append("\n".join(f"- {line}" for line in results.missing) + "\n")
    atomic_write(study.report, "\n".join(parts))
    return results


def _failed(study: StudyFolder, failed: Mapping[str, str]) -> CellsFailed:
    lines = "\n".join(f"  {name}: {error}" for name, error in failed.items())
    return CellsFailed(
        f"{len(failed)} of the study's runs failed; the others are done. The same command, or "
        f"{to_resume(study.path)}, tries again:\n{lines}"
    )
