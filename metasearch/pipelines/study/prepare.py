"""What the runner does before the process of a cell begins: it loads the encoders once, and makes the run folder."""

import shutil
from pathlib import Path

from metasearch.config.distill_run import DistillConfig
from metasearch.config.run import RunConfig, ScoreConfig
from metasearch.config.study import StudyConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError, RunFolderError
from metasearch.io import held
from metasearch.pipelines import factory
from metasearch.pipelines.distill.checks import load_roles
from metasearch.pipelines.distill.checks import resolved as resolved_distillation
from metasearch.pipelines.run import ENCODER, WAIT_SECONDS
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.plan import Cell, CellConfig
from metasearch.runs.folder import RunFolder
from metasearch.training.hardware import device_of


def require_encoders(config: StudyConfig) -> dict[str, str]:
    """Load the encoders of a study once, as its cells will: none is to fail for what all have in common.

    Returns the fingerprint of the encoder that it starts from; nothing where weights are drawn from each seed.

    It takes the seconds and the memory of one cell's start, on the CPU: what is loaded is let go of again.
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
