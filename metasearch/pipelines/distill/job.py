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
from functools import partial
from pathlib import Path

from metasearch.config.distill_run import DistillConfig
from metasearch.data.benchmark import Benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError, DataError, EncoderError
from metasearch.pipelines.cards import write_card
from metasearch.pipelines.distill.checks import benchmarks_of, check_stages, resolved, roles_of
from metasearch.pipelines.distill.models import RoleEncoders
from metasearch.pipelines.distill.report import stage_report, whole_report
from metasearch.pipelines.distill.stage import run_stage
from metasearch.pipelines.run import CallbackFactory, RunResult, complete, resumable, silent, stopped
from metasearch.pipelines.score import add_scores, origin_of
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.folder import RunFolder
from metasearch.runs.rows import MEAN, STAGE
from metasearch.runs.torchrun_env import rank, require_divides
from metasearch.runs.versions import versions
from metasearch.training.distributed import SINGLE_PROCESS, ProcessGroup, join_processes
from metasearch.training.hardware import used


def begin(config: DistillConfig, folder: Path, open_callback: CallbackFactory = silent) -> RunResult:
    """Run the chosen stages of a recipe in a new run folder.

    Names, options and tasks are checked before weights are loaded. Encoders, the data and steps of every stage and the
    free disk space are checked before the folder is made, so that no later stage fails for them.

    Raises:
        MetasearchError: of every kind that `metasearch.errors` lists; what was written before it stays.
    """
    check_processes(config)
    config = resolved(config)
    benchmarks = benchmarks_of(config)
    roles = roles_of(config)
    check_stages(config, roles, folder)
    with resumable(folder):
        processes = join_processes()
        if not processes.first:
            return follow(config, folder, roles, processes)
        files = RunFolder.create(folder, config, "", roles.origins)
        try:
            return complete(
                files,
                lambda: run_to_end(files, config, benchmarks, roles, open_callback, processes),
                processes=processes,
            )
        except (ConfigError, DataError, EncoderError):
            if not files.begun:
                _discard(files)
            raise


def check_processes(config: DistillConfig) -> None:
    """Raise `ConfigError` where the processes that were started cannot share the shards of every stage."""
    for _, name, stage in config.stages:
        require_divides(rank().count, stage.budget.shards, f"stages.{name}.budget.shards")


def follow(config: DistillConfig, folder: Path, roles: RoleEncoders, processes: ProcessGroup) -> RunResult:
    """Train all stages along with the first process, which writes and scores; errors are those of `begin`."""
    for number, name, stage in config.stages:
        below = _below(folder, number, name)
        if processes.broadcast_object(lambda: False):  # the first process says whether the stage is finished
            roles.take(stage.trains, below.model)
        else:
            outcome, _ = run_stage(config, name, roles, below, SILENT, processes)
            if outcome.reason == "interrupted":
                processes.end()
                raise stopped(folder, f"stopped after step {outcome.steps} of {below.path.name}")
    processes.end()
    return RunResult(folder, [], "")


def run_to_end(
    files: RunFolder,
    config: DistillConfig,
    benchmarks: list[Benchmark],
    roles: RoleEncoders,
    open_callback: CallbackFactory,
    processes: ProcessGroup = SINGLE_PROCESS,
) -> None:
    """Run the stages that are not finished, score after each, and report.

    Raises:
        Interrupted: between two steps; the checkpoint is saved.
    """
    began = time.monotonic()
    first, *_ = config.stages[0]
    for number, name, stage in config.stages:
        below = _below(files.path, number, name)
        finished = processes.broadcast_object(partial(getattr, below, "finished"))
        with open_callback(name) as callback:
            if finished:
                roles.take(stage.trains, below.model)
            else:
                # Later stages begin with trained weights, and so does the run once the first stage is finished.
                if number == first:
                    untrained = roles.at(stage.trains, stage.max_length)
                    _score(files, config, benchmarks, untrained, f"{stage.trains}, before", 0, callback)
                _run_stage(files, config, name, f"{number} {name}", roles, below, callback, processes)
            # After a finished stage, too: a crash may have come between its report and these scores.
            encoder = roles.at(stage.trains, stage.max_length)
            _score(files, config, benchmarks, encoder, f"{number} {name}", number, callback)
    files.save_model(encoder)
    write_card(files, config, encoder)
    seconds = time.monotonic() - began
    facts = used(seconds, encoder.device)
    files.finish(whole_report(files, config, encoder, seconds), facts)


def _below(folder: Path, number: int, name: str) -> RunFolder:
    return RunFolder(folder / f"{number}-{name}")


def _run_stage(
    files: RunFolder,
    config: DistillConfig,
    name: str,
    label: str,
    roles: RoleEncoders,
    below: RunFolder,
    callback: Callback,
    processes: ProcessGroup,
) -> None:
    """Run a stage in its folder to its end, note its dev score, and write its model and report."""
    below.path.mkdir(parents=True, exist_ok=True)
    stage = config.recipe.stages[name]
    outcome, described = run_stage(config, name, roles, below, callback, processes)
    if outcome.reason == "interrupted":
        # All have stopped after this step; one that ended before this would be taken for lost.
        processes.end()
        reached = f"stopped after step {outcome.steps} of {below.path.name}; the checkpoint is saved"
        raise stopped(files.path, reached)
    # They stand there where a crash came before the stage's report.
    if (STAGE, label) not in {(row["task"], row["learner"]) for row in files.results()}:
        what = {"task": STAGE, "learner": label, "recipe": config.recipe.recipe, "split": "dev"}
        score = {"measure": stage.monitor, "pool": "pairs", "language": MEAN, "before": outcome.baseline}
        best = {"value": outcome.best_score, "step": outcome.best_step, "steps": outcome.steps}
        files.add_results([{**what, **score, **best, "seed": config.seed, "versions": versions()}])
    below.save_model(roles.at(stage.trains, stage.max_length))
    # The report last: by it the stage is finished, and its model is then taken instead of its checkpoint.
    below.finish(stage_report(config, name, outcome, described))


def _discard(files: RunFolder) -> None:
    """Delete a run that holds nothing but its configuration, so that the corrected command can have its folder."""
    for path in files.path.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with suppress(OSError):  # a link, or a mounted folder, stays
        files.path.rmdir()


def _score(
    files: RunFolder,
    config: DistillConfig,
    benchmarks: list[Benchmark],
    encoder: Encoder,
    label: str,
    number: int,
    callback: Callback,
) -> None:
    """Append the scores on the tasks' test data to the results, unless they stand there."""
    for benchmark in benchmarks:
        of_encoder = {"task": benchmark.task.task, "encoder": encoder.name, "learner": label, "mode": None}
        of_encoder |= origin_of(encoder)
        of_run = {"recipe": config.recipe.recipe, "stage": number, "fold": benchmark.fold, "seed": config.seed}
        # With the task's lengths, not with those of training.
        view = Encoder(encoder.model, encoder.name, benchmark.task.max_length)
        add_scores(files, of_encoder | of_run, benchmark, view, {"test": benchmark.split.test}, callback)
