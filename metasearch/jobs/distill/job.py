"""A distillation in its run folder: stage after stage, each scored, and whatever is finished never done again.

config.yaml      the resolved configuration; `metasearch resume` reads it
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
from contextlib import suppress
from pathlib import Path
from typing import Any

from metasearch.data.benchmark import Benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError, DataError, EncoderError
from metasearch.jobs.distill.checks import benchmarks_of, resolved, roles_of
from metasearch.jobs.distill.report import stage_report, whole_report
from metasearch.jobs.distill.roles import Roles
from metasearch.jobs.distill.stage import Finished, run_stage
from metasearch.jobs.lifecycle import ListenerOf, RunResult, complete, interrupted, require_trust, silent
from metasearch.jobs.score import add_scores
from metasearch.runs.folder import RunFolder
from metasearch.runs.listener import Listener
from metasearch.runs.rows import MEAN, STAGE
from metasearch.runs.versions import versions
from metasearch.spec.distill_run import DistillConfig
from metasearch.training.machine import used


def begin(config: DistillConfig, folder: Path, listener_of: ListenerOf = silent) -> RunResult:
    """Run the chosen stages of a recipe in a new run folder.

    Every name, option and task is checked before weights are loaded, and every encoder and the files of every stage
    before the folder is made, so that no stage fails for them when the ones before it are done.

    Args:
        config: what is run.
        folder: the run folder; must not exist or be empty.
        listener_of: opens a listener for each stage.

    Raises:
        MetasearchError: of every kind that `metasearch.errors` lists; what was written before it stays.
    """
    config = resolved(config)
    benchmarks = benchmarks_of(config)
    roles = roles_of(config)
    files = RunFolder.create(folder, config, "")
    try:
        return complete(files, lambda: run_to_end(files, config, benchmarks, roles, listener_of))
    except (ConfigError, DataError, EncoderError):
        if not files.begun:
            _discard(files)
        raise


def resume(
    folder: Path, listener_of: ListenerOf = silent, trust_remote_code: bool = False, patience: float = 0
) -> RunResult:
    """Go on with a distillation where it was left; a finished one is only read. Errors are as of `train.resume`."""
    files, config, _ = RunFolder.open(folder, DistillConfig)
    if files.finished:
        return RunResult.of(files)
    require_trust(folder, config.trust_remote_code, trust_remote_code)
    benchmarks = benchmarks_of(config)
    roles = Roles(config) if files.begun else roles_of(config)
    return complete(files, lambda: run_to_end(files, config, benchmarks, roles, listener_of), patience)


def run_to_end(
    files: RunFolder, config: DistillConfig, benchmarks: list[Benchmark], roles: Roles, listener_of: ListenerOf
) -> None:
    """Run the stages that are not finished, score after each, and report.

    Raises:
        Interrupted: between two steps; the checkpoint is saved.
    """
    began = time.monotonic()
    recipe = config.recipe
    encoder = None
    for number, (name, stage) in enumerate(recipe.stages.items(), 1):
        if name not in recipe.chosen:
            continue
        below = RunFolder(files.path / f"{number}-{name}")
        with listener_of(name) as listener:
            if below.finished:
                roles.take(stage.trains, below.model)
            else:
                if name == recipe.chosen[0]:
                    untrained = roles.at(stage.trains, stage.max_length)
                    _score(files, config, benchmarks, untrained, f"{stage.trains}, before", 0, listener)
                _run_stage(files, config, name, f"{number} {name}", roles, below, listener)
            encoder = roles.at(stage.trains, stage.max_length)
            _score(files, config, benchmarks, encoder, f"{number} {name}", number, listener)
    assert encoder is not None
    files.save_model(encoder)
    seconds = time.monotonic() - began
    facts = used(seconds, encoder.device) | {"engine": config.engine}
    files.finish(whole_report(files, config, encoder, seconds), facts)


def _run_stage(
    files: RunFolder,
    config: DistillConfig,
    name: str,
    label: str,
    roles: Roles,
    below: RunFolder,
    listener: Listener,
) -> None:
    """Run a stage in its folder to its end, note its dev score, and write its model and report."""
    below.path.mkdir(parents=True, exist_ok=True)
    finished = run_stage(config, name, roles, below, listener)
    if finished.outcome.reason == "interrupted":
        steps = finished.outcome.steps
        raise interrupted(files.path, f"stopped after step {steps} of {below.path.name}; the checkpoint is saved")
    _note(files, config, name, label, finished)
    below.save_model(finished.encoder)
    below.finish(stage_report(config, name, finished))


def _discard(files: RunFolder) -> None:
    """Delete a run that holds nothing but its configuration, so that the corrected command can have its folder."""
    for path in files.path.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with suppress(OSError):  # a link, or a mounted folder, stays
        files.path.rmdir()


def _note(files: RunFolder, config: DistillConfig, name: str, label: str, finished: Finished) -> None:
    """Append the dev score of a stage to the results, unless it stands there."""
    stage, outcome = config.recipe.stages[name], finished.outcome
    row = {
        "task": STAGE,
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
    if (STAGE, label) not in {(row["task"], row["learner"]) for row in files.results()}:
        files.add_results([row])


def _score(
    files: RunFolder,
    config: DistillConfig,
    benchmarks: list[Benchmark],
    encoder: Encoder,
    label: str,
    number: int,
    listener: Listener,
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
        add_scores(files, facts, benchmark, view, {"test": benchmark.split.test}, listener)
