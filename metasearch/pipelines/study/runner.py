"""A study from its configuration to its table."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from metasearch.config.study import LauncherConfig, StudyConfig
from metasearch.data.benchmark import build
from metasearch.encoders.device import device_of
from metasearch.errors import CellsFailed, ConfigError, to_resume
from metasearch.evaluation.report.formats import markdown
from metasearch.evaluation.report.main_table import main_table, ordered, over_languages
from metasearch.evaluation.study.read import read_study
from metasearch.evaluation.study.study import ScoreSelection, Study
from metasearch.io import atomic_write
from metasearch.pipelines import factory
from metasearch.pipelines.run import ENCODER, require_same_data, require_trust, resumable
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers import open_launcher
from metasearch.pipelines.study.pool import Cell, Pool, plan
from metasearch.pipelines.study.resolve import merged
from metasearch.runs.versions import differing, versions


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
            launcher = open_launcher(
                study, stored.place, stored.config.threads or 1, stored.config.encoder.trust_remote_code
            )
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


def means(study: Study) -> list[dict[str, Any]]:
    """Return the means of every arm over languages, seeds and folds, by measure, pool and split, as JSON."""
    rows = []
    for arm in ordered(study):
        for selection in (
            ScoreSelection(m, p, s) for s in ("test", "dev") for m in study.measures for p in study.pools
        ):
            mean = over_languages(study, arm, selection)
            if mean is not None:
                named = {"arm": arm.label, "split": selection.split, **selection._asdict()}
                rows.append({**named, "mean": mean.mean, "sd": mean.sd, "count": mean.count, "over": mean.over})
    return rows
