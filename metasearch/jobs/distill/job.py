"""A distillation in its run folder: stage after stage, each scored, and whatever is finished never done again.

config.yaml      the resolved configuration; `--resume` reads it
1-assistant/     a stage: log.jsonl, data.txt, report.md, model/, and checkpoint/ while it is not finished
2-embedding/     ...
targets/         outputs of the frozen encoders
results.jsonl    scores on the tasks of `--evaluate`, before the first and after each stage
queries/         the score of each of their test questions, and what ranked where
facts.json       time, memory and hardware
report.md        written last
model/           what the last stage made; loads with SentenceTransformer after `import metasearch.encoders`
"""

import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from metasearch.data.benchmark import Benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError, DataError, EncoderError, Interrupted
from metasearch.jobs.distill.checks import benchmarks_of, resolved, roles_of
from metasearch.jobs.distill.report import DEV, stage_report, whole_report
from metasearch.jobs.distill.roles import Roles
from metasearch.jobs.distill.stage import Finished, run_stage
from metasearch.jobs.scoring import add_scores
from metasearch.jobs.train import RunResult
from metasearch.runs.folder import RunFolder, versions
from metasearch.runs.listener import Listener, Silent
from metasearch.runs.rows import MEAN
from metasearch.spec.distill_run import DistillConfig
from metasearch.training.machine import used

Hear = Callable[[str], AbstractContextManager[Listener]]
"""Opens a listener for the stage of a name."""


def unheard(stage: str) -> AbstractContextManager[Listener]:
    """Return a listener that says nothing."""
    return nullcontext(Silent())


def distill(config: DistillConfig, folder: Path, hear: Hear = unheard) -> RunResult:
    """Run the chosen stages of a recipe in a new run folder.

    Every name, option and task is checked before weights are loaded, and every encoder and the files of every stage
    before the folder is made, so that no stage fails for them when the ones before it are done.

    Args:
        config: what is run.
        folder: of the run; must not exist or be empty.
        hear: opens a listener for each stage.

    Raises:
        MetasearchError: of every kind that `metasearch.errors` lists; what was written before it stays.
    """
    config = resolved(config)
    benchmarks = benchmarks_of(config)
    roles = roles_of(config)
    files = RunFolder.create(folder, config, "", "distill")
    try:
        return _resumable(files, config, benchmarks, roles, hear)
    except (ConfigError, DataError, EncoderError):
        _discard_unbegun(files)
        raise


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
    return _resumable(files, config, benchmarks_of(config), Roles(config), hear)


def _discard_unbegun(files: RunFolder) -> None:
    """Delete a run that holds nothing but its configuration, so that the corrected command can have its folder."""
    kept = [*files.path.glob("*/log.jsonl"), *files.path.glob("targets/*/*"), *files.path.glob("results.jsonl")]
    if not kept:
        for path in files.path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        with suppress(OSError):  # a link, or a mounted folder, stays
            files.path.rmdir()


def _resumable(
    files: RunFolder, config: DistillConfig, benchmarks: list[Benchmark], roles: Roles, hear: Hear
) -> RunResult:
    """Run; wherever it is stopped, say how to go on."""
    try:
        with files.held():
            return _go(files, config, benchmarks, roles, hear)
    except KeyboardInterrupt:
        raise Interrupted(f"stopped. Go on with: metasearch distill --resume {files.path}") from None


def _go(files: RunFolder, config: DistillConfig, benchmarks: list[Benchmark], roles: Roles, hear: Hear) -> RunResult:
    began = time.monotonic()
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
            _note(files, config, name, f"{number} {name}", finished)
            below.save_model(encoder)
            below.finish(stage_report(config, name, finished))
        _score(files, config, benchmarks, encoder, f"{number} {name}", number)
    assert encoder is not None
    files.save_model(encoder)
    seconds = time.monotonic() - began
    report = whole_report(files, config, encoder, seconds)
    files.finish(report, used(seconds, encoder.device) | {"engine": config.engine})
    return RunResult(files.path, files.results(), report)


def _stop_if_interrupted(below: RunFolder, files: RunFolder, finished: Finished) -> None:
    if finished.outcome.reason == "interrupted":
        raise Interrupted(
            f"stopped after step {finished.outcome.steps} of {below.path.name}; the checkpoint is saved. "
            f"Go on with: metasearch distill --resume {files.path}"
        )


def _note(files: RunFolder, config: DistillConfig, name: str, label: str, finished: Finished) -> None:
    """Append the dev score of a stage to the results, unless it stands there."""
    stage, outcome = config.recipe.stages[name], finished.outcome
    row = {
        "task": DEV,
        "learner": label,
        "recipe": config.recipe.recipe,
        "split": "dev",
        "measure": stage.monitor,
        "pool": "pairs",
        "language": MEAN,
        "before": outcome.baseline,
        "value": outcome.best_score,
        "step": outcome.best_step,
        "steps": outcome.steps,
        "seed": config.seed,
        "versions": versions(),
    }
    if (DEV, label) not in {(row["task"], row["learner"]) for row in files.results()}:
        files.add_results([row])


def _score(
    files: RunFolder, config: DistillConfig, benchmarks: list[Benchmark], encoder: Encoder, label: str, number: int
) -> None:
    """Append the scores on the tasks' test data to the results, unless they stand there."""
    for benchmark in benchmarks:
        facts: dict[str, Any] = {
            "task": benchmark.task.task,
            "encoder": encoder.name,
            "learner": label,
            "mode": None,
            "recipe": config.recipe.recipe,
            "stage": number,
            "fold": benchmark.fold,
            "seed": config.seed,
        }
        view = Encoder(encoder.model, encoder.name, benchmark.task.max_length)
        add_scores(files, facts, benchmark, view, {"test": benchmark.split.test})
