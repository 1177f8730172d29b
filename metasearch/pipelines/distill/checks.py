"""Check a distillation before its first step, so that no stage fails after others are done."""

import logging
from pathlib import Path

from metasearch.config.distill_run import DistillConfig
from metasearch.config.distillation import Stage
from metasearch.config.library import Library
from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.data.parallel.corpus import require_corpus
from metasearch.errors import ConfigError
from metasearch.pipelines.distill.models import RoleEncoders
from metasearch.pipelines.distill.sources import training_data
from metasearch.pipelines.distill.stage import build_stage_learner
from metasearch.pipelines.distill.target_cache import comparable
from metasearch.pipelines.run import require_disk_space

log = logging.getLogger(__name__)


def resolved(config: DistillConfig) -> DistillConfig:
    """Return a configuration with all options of the chosen stages' learners; `ConfigError` if one is wrong."""
    recipe = config.recipe
    stages = dict(recipe.stages)
    for _, name, stage in config.stages:
        _, options, _ = build_stage_learner(stage, f"recipe '{recipe.recipe}': stages.{name}")
        stages[name] = stage.model_copy(update={"options": options.model_dump()})
    return config.model_copy(update={"recipe": recipe.model_copy(update={"stages": stages})})


def load_benchmarks(config: DistillConfig) -> list[Benchmark]:
    """Check roles and files by name, and return the tasks to evaluate on; loads no weights."""
    recipe = f"recipe '{config.recipe.recipe}'"
    for _, name, stage in config.stages:
        if not config.texts.of(stage):
            raise ConfigError(f"{recipe}: stage '{name}' needs {stage.flag} FILES; --stages runs a part of the stages")
    read = {stage.flag for _, _, stage in config.stages}
    for kind, files in config.texts:
        if files and f"--{kind}" not in read:
            raise ConfigError(f"--{kind}: no selected stage of {recipe} uses it")
    if config.encoders.student and "student" not in config.used:
        raise ConfigError(f"--student: no selected stage of {recipe} trains it")
    for role in ("teacher", "assistant"):
        if config.encoders.named(role) and role not in config.used:
            log.warning("--%s does nothing: no selected stage of %s uses it", role, recipe)
    RoleEncoders(config)
    # A task with data in its own folder ignores the folder of all tasks.
    library, include = Library(config.data.include), config.data.include
    places = {task: None if library.task(task).data else config.data.data for task in config.evaluate}
    return [load_benchmark(task, data=data, include=include) for task, data in places.items()]


def load_roles(config: DistillConfig) -> RoleEncoders:
    """Return the encoders, once they and the corpora's files suit every stage."""
    for _, _, stage in config.stages:
        if stage.data == "parallel":
            # Before any weights are loaded: a missing file shows at once.
            require_corpus([Path(path) for path in config.texts.corpus], stage.corpus)
    roles = RoleEncoders(config)
    roles.check()
    for _, name, stage in config.stages:
        _check_length(name, stage, roles)
        learner, options, wanted = build_stage_learner(stage, f"stage '{name}'")
        trained = roles.stand_in(stage.trains, stage.max_length)
        learner.check_encoder(options, trained)
        if wanted and stage.against:
            comparable(roles.stand_in(stage.against, stage.max_length), trained, wanted)
    return roles


def check_stages(config: DistillConfig, roles: RoleEncoders, folder: Path) -> None:
    """Read every stage's data, and check the free disk space; writes nothing."""
    largest = 0
    for _, name, stage in config.stages:
        encoder = roles.stand_in(stage.trains, stage.max_length)
        largest = max(largest, encoder.size)
        training_data(config, name, encoder)
    require_disk_space(folder, largest)


def _check_length(name: str, stage: Stage, roles: RoleEncoders) -> None:
    """Raise `ConfigError` if overlong texts cannot be detected, because the encoder truncates them first."""
    wanted = stage.corpus.max_tokens
    reads = roles.stand_in(stage.trains, max(wanted, 2) + 1).limit("text")  # a length is at least 3
    if reads <= wanted:
        raise ConfigError(
            f"stage '{name}': corpus.max_tokens={wanted}: the {stage.trains} reads {reads} tokens, so longer texts "
            "cannot be detected; choose a smaller number"
        )
