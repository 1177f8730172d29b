"""What the runner does before the process of a cell is begun: its run folder, and the scores that it takes over.

Zero-shot scores are the same in every run on a fold: they are taken over, not computed again.
"""

import shutil
from collections.abc import Collection
from pathlib import Path

from metasearch.config import registry
from metasearch.config.distill_run import DistillConfig
from metasearch.config.library import Library
from metasearch.config.recipe import ZERO_SHOT
from metasearch.config.run import RunConfig, ScoreConfig
from metasearch.config.study import StudyConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError, RunFolderError
from metasearch.io import held
from metasearch.pipelines import factory
from metasearch.pipelines.distill.checks import resolved as resolved_distillation
from metasearch.pipelines.distill.checks import roles_of
from metasearch.pipelines.run import ENCODER, WAIT_SECONDS, Row
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.plan import Cell, CellConfig
from metasearch.pipelines.task_encoder import encoder_of
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import load
from metasearch.runs.versions import differing, versions
from metasearch.training.hardware import device_of


def require_encoders(config: StudyConfig) -> dict[str, str]:
    """Load the encoders of a study once, as its cells will: none is to fail for what all have in common.

    Returns the fingerprint of the encoder that it starts from; nothing where weights are drawn from each seed.

    It takes the seconds and the memory of one cell's start, on the CPU: what is loaded is let go of again.

    Raises:
        ConfigError, EncoderError: as `encoder_of`, and for distillations as `roles_of`.
        DataError: the task's data is missing or damaged, or a corpus of a distillation.
    """
    benchmark = load_benchmark(config.on(config.folds[0]))
    device_of(config.compute.device)
    # A GPU would keep some memory for this process as long as the study runs.
    cpu = {"compute": config.compute.model_copy(update={"device": "cpu"})}
    encoder = encoder_of(config.model_copy(update=cpu), benchmark)
    for each in config.distilled:
        roles_of(each.model_copy(update=cpu))
    return {} if encoder.seeded else {ENCODER: encoder.origin}


def prepare(study: StudyFolder, cell: Cell, stored: StudyMetadata) -> None:
    """Make the run folder of a cell, unless it is there as it is wanted, and take over its zero-shot scores.

    Raises:
        RunFolderError: the run that is there was made with other settings, or another process is at work in it.
    """
    path = study.at(cell.name)
    if path.is_dir():
        # The process that a killed runner left here saves its checkpoint first. One elsewhere is waited for by the cell
        # itself: where its machine died, that takes a minute for each, and here it would be one after another.
        with held(path, f"{path}: another process is at work in this folder; wait for it to end", WAIT_SECONDS):
            pass
    files = _files(path, cell, stored)
    if cell.origin is None:
        return
    origin = RunFolder(study.at(cell.origin))
    if isinstance(cell.config, RunConfig):
        # With a part of dev held out, the dev score is on that part alone.
        splits = ("test",) if cell.config.recipe.budget.dev_holdout else ("dev", "test")
        facts: Row = {"mode": cell.config.mode, "recipe": cell.config.recipe.recipe}
        take_over(origin, files, facts, stored.data_fingerprint, splits)
    elif isinstance(cell.config, ScoreConfig) and _independent_of_seed(cell.config, stored):
        label, facts = cell.config.label, {"seed": cell.config.seed}
        take_over(origin, files, facts, stored.data_fingerprint, ("dev", "test"), label)


def take_over(
    origin: RunFolder, files: RunFolder, facts: Row, data: str, splits: Collection[str], label: str = ZERO_SHOT
) -> None:
    """Copy the scores of a run's untrained encoder, and the results of each question, to another one.

    Nothing is copied where the other run has them, or where they were made of other data or by other versions.

    Args:
        origin: a finished run.
        files: the run that takes them over.
        facts: what its rows say instead, such as seed and mode.
        data: fingerprint of its data.
        splits: which parts are the same in both runs.
        label: what the encoder is called in both.
    """
    rows = [row for row in origin.results() if row["learner"] == label and row["split"] in splits]
    now = versions()
    if not rows or any(row["data"] != data or differing(row["versions"], now) for row in rows):
        return
    if any(row["learner"] == label for row in files.results()):
        return
    for split in splits:
        questions = origin.queries(rows[0]["task"], label, split)
        if questions.is_file():
            # Before the rows, as where they were made.
            results, written = load(questions)
            results.save(files.queries(rows[0]["task"], label, split), {**written, **facts})
    files.add_results({**row, **facts} for row in rows)


def _files(path: Path, cell: Cell, stored: StudyMetadata) -> RunFolder:
    """Return the run folder of a cell; what is there is made anew where it is damaged or has come to nothing."""
    config = _resolved(cell.config)
    try:
        files, began = RunFolder.open(path, type(config))
        known = began.config
    except (ConfigError, RunFolderError):
        # What was begun is not thrown away for a configuration that was damaged since.
        if RunFolder(path).begun:
            raise
        known = None
    if known is not None and _resolved(known) == config:
        return files
    # Where the study was moved, and with it a distilled model, its scores are soon made again.
    if known is not None and files.begun and not isinstance(config, ScoreConfig):
        raise RunFolderError(f"{path}: the run that is here was made with other settings than the study has")
    if path.is_dir():
        with RunFolder(path).held(WAIT_SECONDS):
            pass
    # `create` refuses a folder that holds anything.
    shutil.rmtree(path, ignore_errors=True)
    # A distillation does not read the task's data: each of its stages keeps a fingerprint of its own.
    data = stored.data_fingerprint if cell.listed else ""
    starts = not isinstance(config, DistillConfig) and config.encoder.name == stored.config.encoder.name
    return RunFolder.create(path, config, data, stored.weights if starts else None)


def _resolved(config: CellConfig) -> CellConfig:
    """Return a configuration with all options of its learners spelt out."""
    if isinstance(config, RunConfig):
        return config.model_copy(update={"recipe": factory.resolved(config.recipe)})
    return resolved_distillation(config) if isinstance(config, DistillConfig) else config


def _independent_of_seed(config: ScoreConfig, stored: StudyMetadata) -> bool:
    """Whether the encoder is the same with the study's first seed; a checkpoint always is."""
    known = bool(stored.weights) and config.encoder.name == stored.config.encoder.name
    if known or config.encoder.name not in registry.names("encoders"):
        return True
    length = Library(config.data.include).task(config.data.task).max_length
    # A built-in encoder is drawn from the seed or ships with trained weights: only the weights themselves tell.
    seeds = (stored.config.seeds[0], config.seed)
    encoders = (factory.load_encoder(config.encoder, length, device="cpu", seed=seed) for seed in seeds)
    return len({encoder.fingerprint for encoder in encoders}) == 1
