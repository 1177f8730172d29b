"""A study from its configuration to its table."""

import os
from pathlib import Path

from metasearch.data.benchmark import load_benchmark
from metasearch.errors import CellsFailed, ConfigError, DataError
from metasearch.jobs.crossval.board import Board, Place, Unwatched, Watcher
from metasearch.jobs.crossval.folder import Stored, StudyFolder
from metasearch.jobs.crossval.merge import merged
from metasearch.jobs.crossval.plan import plan
from metasearch.jobs.crossval.pool import Pool
from metasearch.jobs.crossval.summary import report, results
from metasearch.runs.files import write_whole
from metasearch.runs.folder import versions
from metasearch.spec.recipe import DEFAULT_ENGINE
from metasearch.spec.study import StudyConfig
from metasearch.study.read import read_study
from metasearch.study.study import Study


def crossval(
    config: StudyConfig | None,
    folder: Path,
    jobs: int = 1,
    watcher: Watcher | None = None,
    trust_remote_code: bool = False,
) -> Study:
    """Do all cells of a study that are not done yet, each in its own process, and read their results back.

    Args:
        config: of the study, every name in it resolved; what a study in the folder lacks of it is added to it. None
            goes on with that study.
        folder: of the study.
        jobs: processes at a time.
        watcher: hears where the cells stand.
        trust_remote_code: run code that comes with the encoder; must be said again where the study began with it.

    Raises:
        CellsFailed: some cells failed; all others are done, and their report is written.
        ConfigError: the configuration contradicts the study that is there, or other versions began it.
        DataError: the data is not what the study began with.
        Interrupted: what was reached is saved.
        RunFolderError: another runner is at work in the folder, or it cannot be written.
    """
    study = StudyFolder(folder)
    if config is None:
        study.stored()
    with study.held():
        stored = _begun(study, config, jobs)
        if stored.config.trust_remote_code and not trust_remote_code:
            raise ConfigError(f"{study.path}: the study began with --trust-remote-code; say it again to go on")
        cells = plan(stored.config, study.path)
        done = [cell for cell in cells if study.done(cell.name)]
        for cell in done:
            study.tidy(cell, stored.config.keep_models)
        board = Board.of(cells, (cell.name for cell in done))
        if len(done) < len(cells):
            _require_versions(study, stored)
            Pool(study, board, jobs, stored.config.threads or 1, watcher or Unwatched()).run()
        return _finish(study, board)


def _begun(study: StudyFolder, config: StudyConfig | None, jobs: int) -> Stored:
    """Return what the study is to do, written down."""
    # A study that has come to nothing, for a wrong name of its encoder, say, may be configured anew.
    old = study.stored() if study.begun and (config is None or study.reached) else None
    if config is None:
        assert old is not None
        config = old.config
    elif old is not None:
        config = merged(old.config, config, study.path)
    data = load_benchmark(
        config.task, None, config.folds[0], config.data, config.include, config.fold_seed
    ).data.fingerprint
    if old is not None and data != old.data_fingerprint:
        raise DataError(
            f"{study.path}: the data has changed since the study began (fingerprint {old.data_fingerprint}, now "
            f"{data}); it cannot go on with other data"
        )
    begun = {"threads": config.threads or threads_of(jobs), "engine": config.engine or DEFAULT_ENGINE}
    config = config.model_copy(update=begun)
    cells = plan(config, study.path)
    names = [cell.name for cell in cells if cell.listed]
    made = [cell.name for cell in cells if not cell.listed]
    stored = Stored(
        data_fingerprint=data, versions=old.versions if old else versions(), cells=names, made=made, config=config
    )
    if stored != old:
        study.store(stored)
    return stored


def _require_versions(study: StudyFolder, stored: Stored) -> None:
    """Raise `ConfigError` where other versions began the study: their results could not be put together."""
    now = versions()
    for name in {**stored.versions, **now}:
        before, this = stored.versions.get(name), now.get(name)
        if before != this:
            raise ConfigError(
                f"{study.path}: the study began with {name} {before}, this is {this}; go on with that version, or "
                "choose another folder with -o"
            )


def threads_of(jobs: int) -> int:
    """Return the threads of each process, so that all of them together take the cores that there are."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // jobs)


def _finish(study: StudyFolder, board: Board) -> Study:
    """Read back what is there, write it down as one, and name the cells that failed."""
    lost = board.within("failed", "skipped")
    if not any(place.cell.listed for place in board.within("done")):
        raise _failed(study, lost)
    found = read_study([study.path])
    write_whole(study.path / "results.jsonl", results(found))
    write_whole(study.report, report(found))
    if lost:
        raise _failed(study, lost)
    return found


def _failed(study: StudyFolder, lost: list[Place]) -> CellsFailed:
    failed = sum(place.state == "failed" for place in lost)
    skipped = f", {len(lost) - failed} that need them skipped" if len(lost) > failed else ""
    lines = "\n".join(f"  {place.cell.name}: {place.error}" for place in lost)
    return CellsFailed(
        f"{failed} of the study's cells failed{skipped}; the others are done. The same command, or metasearch crossval "
        f"--resume {study.path}, tries again:\n{lines}"
    )
