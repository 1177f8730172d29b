"""`metasearch train`: an encoder is meta-trained in a run folder, and scored beside what it was."""

import time
from pathlib import Path

from metasearch.config.postprocessing import Neutralise
from metasearch.config.recipe import ZERO_SHOT, Recipe, with_merge
from metasearch.config.run import RunConfig
from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.data.folds import hold_out
from metasearch.data.records import Data
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import ProjectedEncoder, append, require_none
from metasearch.encoders.protocols import CachedEncoder
from metasearch.episodes.samplers import check_sizes
from metasearch.pipelines import factory
from metasearch.pipelines.cards import write_card
from metasearch.pipelines.compatibility import check_fit
from metasearch.pipelines.dev_evaluator import DevEvaluator
from metasearch.pipelines.merge_stage import MergeStage
from metasearch.pipelines.neutral import neutralise, say, train_map
from metasearch.pipelines.provenance import facts_of, translated
from metasearch.pipelines.run import ENCODER, Row, RunResult, complete, require_disk_space, resumable, stopped
from metasearch.pipelines.score import add_scores, facts_of_run, origin_of, score_zero_shot
from metasearch.pipelines.task_encoder import encoder_of
from metasearch.pipelines.train_report import monitored, report
from metasearch.runs.callbacks import SILENT, Callback, LoggingCallback
from metasearch.runs.folder import RunFolder
from metasearch.runs.torchrun_env import rank, require_divides
from metasearch.training.checkpoint import CheckpointStore
from metasearch.training.distributed import SINGLE_PROCESS, ProcessGroup, join_processes
from metasearch.training.hardware import used
from metasearch.training.step import save_failed_batch
from metasearch.training.trainer import Outcome, Trainer


def begin(config: RunConfig, folder: Path, callback: Callback = SILENT) -> RunResult:
    """Train in a new run folder, and score the result against zero-shot on dev and test.

    Every name, option and size is checked before weights are loaded and before the folder is made.

    Raises:
        MetasearchError: of every kind that `metasearch.errors` lists; what was written before it stays.
    """
    require_divides(rank().count, config.recipe.budget.shards, "budget.shards")
    config = config.model_copy(update={"recipe": factory.resolved(config.recipe)})
    benchmark = load_benchmark(config.data, config.mode).trained_on(config.recipe.translate)
    check_fit(config.recipe, benchmark, config.compute.precision, config.compute.checkpointing)
    check_sizes(benchmark, config.recipe, config.seed)
    encoder = encoder_of(config, benchmark)
    if config.recipe.neutralise:
        require_none(encoder)
    require_disk_space(folder, encoder.size)
    with resumable(folder):
        processes = join_processes()
        if not processes.first:
            return follow(config, folder, benchmark, encoder, processes)
        files = RunFolder.create(folder, config, benchmark.data.fingerprint, {ENCODER: encoder.origin})
        return complete(
            files, lambda: run_to_end(files, config, benchmark, encoder, callback, processes), processes=processes
        )


def follow(
    config: RunConfig, folder: Path, benchmark: Benchmark, encoder: Encoder, processes: ProcessGroup
) -> RunResult:
    """Train along with the first process, which writes and scores; errors are those of `begin`."""
    with_map_before(encoder, benchmark, config.recipe)
    outcome = trainer_of(config, benchmark, encoder, None, processes=processes).fit()
    processes.end()
    if outcome.reason == "interrupted":
        raise stopped(folder, f"stopped after outer step {outcome.steps}")
    return RunResult(folder, [], "")


def run_to_end(
    files: RunFolder,
    config: RunConfig,
    benchmark: Benchmark,
    encoder: Encoder,
    callback: Callback,
    processes: ProcessGroup = SINGLE_PROCESS,
) -> None:
    """Score zero-shot, train, save, score again and report; what a run has already is not done again.

    Raises:
        Interrupted: between two outer steps; model and checkpoint are saved.
    """
    recipe = config.recipe
    began = time.monotonic()
    facts = facts_of_run(config) | {"mode": config.mode, "recipe": recipe.recipe} | origin_of(encoder)
    facts |= translated(files, benchmark)
    _, dev = hold_out(benchmark.split.dev, recipe.budget.dev_holdout)
    parts = {"dev": dev, "test": benchmark.split.test}
    # Before training, which changes the encoder in place.
    score_zero_shot(files, facts, benchmark, encoder, parts, callback)
    stage = recipe.neutralise
    with_map_before(encoder, benchmark, recipe, callback)
    dev_score = DevEvaluator(encoder, benchmark, recipe, config.compute.precision)
    merging = MergeStage(encoder, recipe, dev_score)
    # Without a map zero-shot's dev score is that of step 0: the trainer need not compute it again.
    baseline = None if stage else monitored(files.results(), benchmark.task.monitor)[ZERO_SHOT, "dev"]
    store, logged = CheckpointStore(files.path), LoggingCallback(files, callback)
    trainer = trainer_of(config, benchmark, encoder, store, logged, baseline, dev_score, processes)
    with save_failed_batch(files.path):
        outcome = trainer.fit(resume=True)
    _save(files, encoder, outcome, stage, processes)
    facts |= {"learner": recipe.learner, "step": outcome.best_step}
    # The last dev score was of these weights where they are the best; vectors in bfloat16 are for dev scores alone.
    again = outcome.best_step == outcome.steps and config.compute.precision == "fp32"
    trained = (dev_score.vectors if again else None) or CachedEncoder(encoder)
    _score_trained(files, facts, benchmark, encoder, trained, recipe, parts, callback, merging)
    write_card(files, config, encoder)
    cost = used(time.monotonic() - began, encoder.device) | {"steps": outcome.steps}
    cost |= merging.facts | facts_of(benchmark)
    files.finish(report(files, config, benchmark, outcome, cost["seconds"]), cost)


def with_map_before(encoder: Encoder, benchmark: Benchmark, recipe: Recipe, callback: Callback = SILENT) -> None:
    """Put the map at the end of an encoder with which a recipe trains; nothing happens where it has none."""
    if recipe.neutralise and recipe.neutralise.when == "before":
        neutralise(encoder, benchmark, recipe.neutralise, callback)


def trainer_of(
    config: RunConfig,
    benchmark: Benchmark,
    encoder: Encoder,
    store: CheckpointStore | None,
    callback: Callback = SILENT,
    baseline: float | None = None,
    dev: DevEvaluator | None = None,
    processes: ProcessGroup = SINGLE_PROCESS,
) -> Trainer:
    """Return what trains an encoder, with its map if it needs one before, as a run was asked to."""
    return factory.trainer_of(
        factory.make_learner(config.recipe, encoder),
        benchmark,
        config.recipe,
        seed=config.seed,
        max_steps=config.max_steps,
        precision=config.compute.precision,
        checkpointing=config.compute.checkpointing,
        callback=callback,
        store=store,
        baseline=baseline,
        dev=dev,
        processes=processes,
    )


def _save(
    files: RunFolder, encoder: Encoder, outcome: Outcome, stage: Neutralise | None, processes: ProcessGroup
) -> None:
    """Save the model, also of a run that was stopped, to be used as it is; `Interrupted` says that it was."""
    files.save_model(encoder)
    if outcome.reason == "interrupted":
        # All have stopped after this step; one that ended before this would be taken for lost.
        processes.end()
        what = "model (before its map is fitted)" if stage and stage.when == "after" else "model"
        raise stopped(files.path, f"stopped after outer step {outcome.steps}; {what} and checkpoint are saved")


def _score_trained(
    files: RunFolder,
    facts: Row,
    benchmark: Benchmark,
    encoder: Encoder,
    trained: CachedEncoder,
    recipe: Recipe,
    parts: dict[str, Data],
    callback: Callback,
    merging: MergeStage,
) -> None:
    """Score the trained encoder, and once more after each stage that the recipe has after training; save it then."""
    # From `trained`, its vectors: with and without the map each text of a part is encoded once.
    add_scores(files, facts, benchmark, encoder, parts, callback, trained.part)
    if recipe.merge:
        facts = facts | {"learner": with_merge(recipe.learner), "alpha": merging.choose()}
        trained = CachedEncoder(encoder)
        add_scores(files, facts, benchmark, encoder, parts, callback, trained.part)
        files.save_model(encoder)
    stage = recipe.neutralise
    if stage and stage.when == "after":
        neutral = train_map(encoder, benchmark, stage, callback, trained.part("train"))
        say(neutral, benchmark, stage)
        facts = facts | {"learner": recipe.delivers}
        add_scores(
            files,
            facts,
            benchmark,
            encoder,
            parts,
            callback,
            lambda part: ProjectedEncoder(trained.part(part), neutral),
        )
        append(encoder, neutral)
        files.save_model(encoder)
