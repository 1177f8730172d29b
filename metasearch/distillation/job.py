"""A distillation in its run folder: stage after stage, each scored, and whatever is finished never done again.

config.yaml      the resolved configuration; `--resume` reads it
1-assistant/     a stage: log.jsonl, data.txt, report.md, model/, and checkpoint/ while it is not finished
2-embedding/     ...
targets/         outputs of the frozen encoders
results.jsonl    scores on the tasks of `--evaluate`, before the first and after each stage
report.md        written last
model/           what the last stage made; loads with SentenceTransformer after `import metasearch.encoders`
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from metasearch.catalog import Benchmark, load_benchmark
from metasearch.distillation.config import DistillConfig
from metasearch.distillation.report import stage_report, whole_report
from metasearch.distillation.roles import Roles
from metasearch.distillation.stage import Finished, learner_of, run_stage
from metasearch.distillation.targets import require_comparable
from metasearch.encoders.base import Encoder
from metasearch.engine.run_folder import RunFolder, versions
from metasearch.engine.trainer import Listener
from metasearch.errors import ConfigError, Interrupted
from metasearch.evaluation.evaluate import evaluate
from metasearch.jobs import RunResult
from metasearch.run import Silent

Hear = Callable[[str], AbstractContextManager[Listener]]
"""Opens a listener for the stage of a name."""


def unheard(stage: str) -> AbstractContextManager[Listener]:
    """Return a listener that says nothing."""
    return nullcontext(Silent())


def distill(config: DistillConfig, folder: Path, hear: Hear = unheard) -> RunResult:
    """Run the chosen stages of a recipe in a new run folder.

    Every name, option and task is checked before weights are loaded, and all encoders before the folder is made.

    Args:
        config: what is run.
        folder: of the run; must not exist or be empty.
        hear: opens a listener for each stage.

    Raises:
        MetasearchError: of every kind that `metasearch.errors` lists; what was written before it stays.
    """
    benchmarks = _checked(config)
    _check_encoders(config)
    files = RunFolder.create(folder, config, "", "distill")
    return _resumable(files, config, benchmarks, hear)


def resume(folder: Path, hear: Hear = unheard, trust_remote_code: bool = False) -> RunResult:
    """Go on with a distillation where it was left; a finished one is only read.

    Raises:
        ConfigError: an encoder comes with code that is not trusted.
        RunFolderError: the folder is no run, or a checkpoint is damaged.
        DataError: the data is not what a stage began with.
    """
    files, config, _ = RunFolder.open(folder, DistillConfig)
    if files.finished:
        return RunResult(folder, files.results(), files.report.read_text(encoding="utf-8"))
    if config.trust_remote_code and not trust_remote_code:
        raise ConfigError(f"{folder}: the run began with --trust-remote-code; say it again to go on")
    return _resumable(files, config, _checked(config), hear)


def _checked(config: DistillConfig) -> list[Benchmark]:
    """Check all names of a configuration; return the tasks to evaluate on, read."""
    recipe = config.recipe
    for name in recipe.chosen:
        learner_of(recipe.stages[name], f"recipe '{recipe.recipe}': stages.{name}")
        flag = {"parallel": "corpus"}.get(recipe.stages[name].data, recipe.stages[name].data)
        if not getattr(config, flag):
            raise ConfigError(
                f"recipe '{recipe.recipe}': stage '{name}' needs --{flag} FILES; --stages runs a part of the stages"
            )
    Roles(config)
    return [load_benchmark(task, None, 0, config.data, config.include) for task in config.evaluate]


def _check_encoders(config: DistillConfig) -> None:
    """Load all encoders and make the student, so that nothing is found wrong with them after hours of training."""
    roles = Roles(config, quiet=True)
    for name in config.recipe.chosen:
        stage = config.recipe.stages[name]
        _, _, wanted = learner_of(stage, f"stage '{name}'")
        trained = roles.at(stage.trains, stage.max_length)
        if wanted and stage.against:
            require_comparable(roles.at(stage.against, stage.max_length), trained, wanted)


def _resumable(files: RunFolder, config: DistillConfig, benchmarks: list[Benchmark], hear: Hear) -> RunResult:
    """Run; wherever it is stopped, say how to go on."""
    try:
        return _go(files, config, benchmarks, hear)
    except KeyboardInterrupt:
        raise Interrupted(f"stopped. Go on with: metasearch distill --resume {files.path}") from None


def _go(files: RunFolder, config: DistillConfig, benchmarks: list[Benchmark], hear: Hear) -> RunResult:
    began = time.monotonic()
    roles = Roles(config)
    recipe = config.recipe
    encoder = None
    for number, (name, stage) in enumerate(recipe.stages.items(), 1):
        if name not in recipe.chosen:
            continue
        below = RunFolder(files.path / f"{number}-{name}")
        if below.finished:
            roles.take(stage.trains, below.model)
            encoder = roles.at(stage.trains, stage.max_length)
        else:
            below.path.mkdir(parents=True, exist_ok=True)
            if name == recipe.chosen[0]:
                _score(
                    files, config, benchmarks, roles.at(stage.trains, stage.max_length), f"{stage.trains}, before", 0
                )
            with hear(name) as listener:
                finished = run_stage(config, name, roles, below, listener)
            encoder = finished.encoder
            _stop_if_interrupted(below, files, finished)
            below.save_model(encoder)
            below.finish(stage_report(config, name, finished))
            if finished.outcome.asked_to_stop:
                raise Interrupted(
                    f"stopped after {below.path.name}. Go on with: metasearch distill --resume {files.path}"
                )
        _score(files, config, benchmarks, encoder, f"{number} {name}", number)
    assert encoder is not None
    files.save_model(encoder)
    report = whole_report(files, config, encoder, time.monotonic() - began)
    files.finish(report)
    return RunResult(files.path, files.results(), report)


def _stop_if_interrupted(below: RunFolder, files: RunFolder, finished: Finished) -> None:
    if finished.outcome.reason == "interrupted":
        raise Interrupted(
            f"stopped after step {finished.outcome.steps} of {below.path.name}; the checkpoint is saved. "
            f"Go on with: metasearch distill --resume {files.path}"
        )


def _score(
    files: RunFolder, config: DistillConfig, benchmarks: list[Benchmark], encoder: Encoder, label: str, number: int
) -> None:
    """Append the scores on the tasks' test data to the results, unless they stand there."""
    known = {(row["task"], row["learner"]) for row in files.results()}
    for benchmark in benchmarks:
        task = benchmark.task.task
        if (task, label) in known:
            continue
        facts: dict[str, Any] = {
            "task": task,
            "encoder": encoder.name,
            "learner": label,
            "recipe": config.recipe.recipe,
            "stage": number,
            "fold": benchmark.fold,
            "seed": config.seed,
            "split": "test",
        }
        stamp = {"data": benchmark.data.fingerprint, "versions": versions()}
        view = Encoder(encoder.model, encoder.name, benchmark.task.max_length)
        found = evaluate(view, benchmark.split.test, benchmark.measures)
        files.add_results({**facts, **row, **stamp} for row in found.rows())
