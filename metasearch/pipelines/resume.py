"""`metasearch resume`: goes on with whatever a folder holds, a run, a cell of a study, a distillation or a study."""

from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from metasearch.config import yaml
from metasearch.config.distill_run import DistillConfig
from metasearch.config.run import RunConfig, ScoreConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError, RunFolderError, nearest, require_known, to_resume
from metasearch.evaluation.study.read import STUDY_FILE
from metasearch.pipelines import score, train
from metasearch.pipelines.distill import job as distill
from metasearch.pipelines.distill.checks import benchmarks_of, check_stages, roles_of
from metasearch.pipelines.distill.models import RoleEncoders
from metasearch.pipelines.run import (
    ENCODER,
    CallbackFactory,
    RunResult,
    check_weights,
    complete,
    holds_something,
    require_disk_space,
    require_same_data,
    require_trust,
    resumable,
    silent,
)
from metasearch.pipelines.task_encoder import encoder_of
from metasearch.runs.folder import CONFIG, RunFolder, RunMetadata
from metasearch.runs.torchrun_env import rank, require_alone, require_divides
from metasearch.training.distributed import join_processes

Kind = Literal["study", "train", "distill", "score"]
CONFIGS: dict[str, type[RunConfig | DistillConfig | ScoreConfig]] = {
    "train": RunConfig,
    "distill": DistillConfig,
    "score": ScoreConfig,
}
"""Kind of a run → its configuration."""


def kind_of(folder: Path) -> Kind:
    """Return which command goes on with a folder, by its configuration.

    Raises:
        RunFolderError: the folder does not exist or holds none; what is near is named.
        ConfigError: its configuration is none of metasearch.
    """
    if not holds_something(folder):
        raise RunFolderError(_what_is_missing(folder))
    if (folder / STUDY_FILE).is_file():
        return "study"
    config = yaml.tree(folder / CONFIG).get("config")
    if not isinstance(config, dict):
        raise ConfigError(f"{folder / CONFIG}: config: this key is missing; it is no run of metasearch")
    require_known(f"{folder / CONFIG}: config.kind:", str(config.get("kind")), CONFIGS)
    return cast(Kind, config["kind"])


def resume_run(
    folder: Path, open_callback: CallbackFactory = silent, trust_remote_code: bool = False, patience: float = 0
) -> RunResult:
    """Go on with a run, a distillation or a cell of a study; a finished one is only read.

    Args:
        folder: the run folder.
        open_callback: opens a callback for a run or for the stage of a name.
        trust_remote_code: run code that comes with an encoder; must be said again where the run began with it.
        patience: seconds to wait for another process that is at work in the folder.

    Raises:
        ConfigError: the folder holds a study, or code that comes with an encoder is not trusted.
        DataError: the data is not what the run began with.
        EncoderError: the encoder is not the one that the run began with.
        RunFolderError: the folder is no run, its configuration was changed, or its checkpoints are damaged.
        MetasearchError: of every kind; what was reached is saved.
    """
    kind = kind_of(folder)
    if kind == "study":
        raise ConfigError(f"{folder} is a study; its cells are the runs. Go on with: {to_resume(folder)}")
    files, began = RunFolder.open(folder, CONFIGS[kind])
    # Before anything is loaded: a finished run needs neither data nor encoder.
    if files.finished:
        # A process that died right after the report has left them.
        files.remove_checkpoint()
        return RunResult.of(files)
    require_trust(folder, trusts_code(began.config), trust_remote_code)
    if kind == "score":
        require_alone("the scoring of an encoder")
    with resumable(folder):
        return _go_on(files, began, open_callback, patience)


def trusts_code(config: RunConfig | ScoreConfig | DistillConfig) -> bool:
    """Whether a run was created with permission to run code that comes with its encoders."""
    return (config.encoders if isinstance(config, DistillConfig) else config.encoder).trust_remote_code


def _go_on(
    files: RunFolder,
    began: RunMetadata[RunConfig | DistillConfig | ScoreConfig],
    open_callback: CallbackFactory,
    patience: float,
) -> RunResult:
    config = began.config
    if isinstance(config, DistillConfig):
        return _go_on_distilling(files, began, config, open_callback, patience)
    if isinstance(config, RunConfig):
        require_divides(rank().count, config.recipe.budget.shards, "budget.shards")
    benchmark = load_benchmark(config.data, config.mode if isinstance(config, RunConfig) else None)
    if isinstance(config, RunConfig):
        benchmark = benchmark.trained_on(config.recipe.translate)
    require_same_data(files.path, began.data_fingerprint, benchmark.data.fingerprint)
    encoder = encoder_of(config, benchmark)
    processes = join_processes()
    if isinstance(config, RunConfig) and not processes.first:
        return train.follow(config, files.path, benchmark, encoder, processes)
    check_weights(files, began, {ENCODER: encoder.origin})
    if isinstance(config, RunConfig) and not files.begun:
        require_disk_space(files.path, encoder.size)
    with open_callback(files.path.name) as callback:
        if isinstance(config, RunConfig):
            work = partial(train.run_to_end, files, config, benchmark, encoder, callback, processes)
            return complete(files, work, patience, processes)
        return complete(files, lambda: score.run_to_end(files, config, benchmark, encoder, callback), patience)


def _go_on_distilling(
    files: RunFolder, began: RunMetadata[Any], config: DistillConfig, open_callback: CallbackFactory, patience: float
) -> RunResult:
    distill.check_processes(config)
    benchmarks = benchmarks_of(config)
    # The full check loads every encoder; a run that has begun has passed it.
    roles = RoleEncoders(config, began.weights) if files.begun else roles_of(config)
    if files.begun and rank().count > 1:
        # Some built-in encoders are made by way of a folder, which transformers saves in the first process alone once
        # they are joined.
        roles.check()
    processes = join_processes()
    if not processes.first:
        return distill.follow(config, files.path, roles, processes)
    check_weights(files, began, roles.origins)
    if not files.begun:
        check_stages(config, roles, files.path)
    work = partial(distill.run_to_end, files, config, benchmarks, roles, open_callback, processes)
    return complete(files, work, patience, processes)


def _what_is_missing(folder: Path) -> str:
    """Return why nothing can be gone on with in a folder, and what is near."""
    if not folder.exists():
        beside = [str(path) for path in sorted(folder.parent.glob("*")) if holds_something(path)]
        return f"{folder} does not exist.{nearest(str(folder), beside) if beside else ''}"
    problem = f"{folder} is no run, distillation or study: it has neither {CONFIG} nor {STUDY_FILE}."
    above = next((path for path in folder.resolve().parents if holds_something(path)), None)
    below = [str(path) for path in sorted(folder.glob("*")) if holds_something(path)]
    if above is not None:
        return f"{problem} Did you mean {above}?"
    return f"{problem}{nearest(str(folder), below) if below else ''}"
