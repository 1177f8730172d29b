"""What the commands do: train into a run folder, go on with one, evaluate an encoder."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.data.folds import hold_out
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.of_benchmark import check_sizes
from metasearch.errors import ConfigError, DataError, Interrupted, RunFolderError
from metasearch.evaluation.evaluate import evaluate
from metasearch.jobs import compose
from metasearch.jobs.scoring import Row, add_scores, means
from metasearch.runs.folder import RunFolder, versions
from metasearch.runs.listener import Listener, Logged, Silent
from metasearch.runs.markdown import by_language, markdown
from metasearch.spec.measure import Pool
from metasearch.spec.recipe import ZERO_SHOT, RunConfig
from metasearch.training.checkpoint import CheckpointStore
from metasearch.training.machine import used
from metasearch.training.trainer import Outcome


@dataclass(frozen=True)
class RunResult:
    """What a finished run gives back.

    Attributes:
        folder: of the run.
        rows: all scores, as in `results.jsonl`.
        report: the Markdown of `report.md`.
    """

    folder: Path
    rows: list[Row]
    report: str


def train(config: RunConfig, folder: Path, listener: Listener | None = None) -> RunResult:
    """Train in a new run folder, and score the result against zero-shot on dev and test.

    Every name, option and size is checked before weights are loaded and before the folder is made.

    Raises:
        MetasearchError: of every kind that `metasearch.errors` lists; what was written before it stays.
    """
    config = config.model_copy(update={"recipe": compose.resolved(config.recipe)})
    benchmark = _benchmark(config)
    compose.check_fit(config.recipe, benchmark, config.precision)
    check_sizes(benchmark, config.recipe)
    encoder = _encoder(config, benchmark)
    files = RunFolder.create(folder, config, benchmark.data.fingerprint)
    return _resumable(files, config, benchmark, encoder, listener)


def resume(folder: Path, listener: Listener | None = None, trust_remote_code: bool = False) -> RunResult:
    """Go on with a run where its last checkpoint left it; a finished run is only read.

    Args:
        folder: of the run.
        listener: hears of steps and scores.
        trust_remote_code: run code that comes with the encoder; must be said again where the run began with it.

    Raises:
        ConfigError: the run's encoder comes with code that is not trusted.
        RunFolderError: the folder is no run, or its checkpoint is damaged.
        DataError: the data is not what the run began with.
    """
    files, config, fingerprint = RunFolder.open(folder, RunConfig)
    if files.finished:
        return RunResult(folder, files.results(), files.report.read_text(encoding="utf-8"))
    if config.trust_remote_code and not trust_remote_code:
        raise ConfigError(f"{folder}: the run began with --trust-remote-code; say it again to go on")
    benchmark = _benchmark(config)
    if benchmark.data.fingerprint != fingerprint:
        raise DataError(f"{folder}: the data has changed since the run began; it cannot go on with other data")
    return _resumable(files, config, benchmark, _encoder(config, benchmark), listener)


def evaluate_encoder(
    name: str, benchmark: Benchmark, split: str, pools: Sequence[Pool], device: str = "auto", trust: bool = False
) -> list[Row]:
    """Return the scores of an encoder, as it is, on a part of a benchmark.

    Args:
        name: of the encoder; a run's `model` folder is one.
        benchmark: gives data, lengths and measures.
        split: `train`, `dev`, `test` or `all`.
        pools: what to rank, for retrieval.
        device: where to run.
        trust: run code that comes with the checkpoint.
    """
    encoder = compose.load_encoder(name, benchmark.task.max_length, device, trust_remote_code=trust)
    found = evaluate(encoder, benchmark.part(split), benchmark.measures, pools)
    facts = {"task": benchmark.task.task, "encoder": name, "learner": name, "fold": benchmark.fold, "split": split}
    stamp = {"data": benchmark.data.fingerprint, "versions": versions()}
    return [{**facts, **row, **stamp} for row in found.rows()]


def side_by_side(folder: Path, results: Sequence[RunResult]) -> tuple[str, list[Row]]:
    """Write one report of several runs below a folder; return it and all scores, zero-shot once."""
    rows = [row for i, result in enumerate(results) for row in result.rows if i == 0 or row["learner"] != ZERO_SHOT]
    parts = ["# Learners side by side", by_language(rows, "test"), by_language(rows, "dev")]
    report = "\n\n".join(parts) + "\n"
    (folder / "report.md").write_text(report, encoding="utf-8")
    return report, rows


def append_rows(path: Path, rows: Sequence[Row]) -> None:
    """Append scores to a JSON-lines file, making its folder; `RunFolderError` when it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    except OSError as error:
        raise RunFolderError(f"{path} cannot be written: {error.strerror}") from None


def _benchmark(config: RunConfig) -> Benchmark:
    return load_benchmark(config.task, config.mode, config.fold, config.data, config.include, config.fold_seed)


def _encoder(config: RunConfig, benchmark: Benchmark) -> Encoder:
    return compose.load_encoder(
        config.encoder, benchmark.task.max_length, config.device, config.seed, config.trust_remote_code
    )


def _resumable(
    files: RunFolder, config: RunConfig, benchmark: Benchmark, encoder: Encoder, listener: Listener | None
) -> RunResult:
    """Run; wherever it is stopped, say how to go on."""
    try:
        with files.held():
            return _go(files, config, benchmark, encoder, listener)
    except KeyboardInterrupt:
        raise Interrupted(f"stopped. Go on with: metasearch train --resume {files.path}") from None


def _go(
    files: RunFolder, config: RunConfig, benchmark: Benchmark, encoder: Encoder, listener: Listener | None
) -> RunResult:
    """Score zero-shot, train, save, score again and report; what a run has already is not done again."""
    recipe = config.recipe
    began = time.monotonic()
    _score(files, config, benchmark, encoder, ZERO_SHOT, step=0)
    outcome = compose.fit(
        compose.make_learner(recipe, encoder),
        benchmark,
        recipe,
        seed=config.seed,
        max_steps=config.max_steps,
        precision=config.precision,
        gradients=config.engine,
        listener=Logged(files, listener or Silent()),
        store=CheckpointStore(files.path),
        resume=True,
        baseline=means(files, benchmark.task.monitor)[ZERO_SHOT, "dev"],
    )
    files.save_model(encoder)
    if outcome.reason == "interrupted":
        raise Interrupted(
            f"stopped after outer step {outcome.steps}; model and checkpoint are saved. "
            f"Go on with: metasearch train --resume {files.path}"
        )
    _score(files, config, benchmark, encoder, recipe.learner, outcome.best_step)
    seconds = time.monotonic() - began
    report = _report(files, config, benchmark, outcome, seconds)
    files.finish(report, used(seconds, encoder.device) | {"engine": config.engine, "steps": outcome.steps})
    return RunResult(files.path, files.results(), report)


def _score(files: RunFolder, config: RunConfig, benchmark: Benchmark, encoder: Encoder, label: str, step: int) -> None:
    """Append the scores on dev and test to the results, unless they stand there."""
    shared = ("task", "mode", "encoder", "fold", "fold_seed", "seed")
    facts = {key: getattr(config, key) for key in shared} | {"recipe": config.recipe.recipe, "learner": label}
    _, scored = hold_out(benchmark.split.dev, config.recipe.budget.dev_holdout)
    add_scores(files, facts | {"step": step}, benchmark, encoder, {"dev": scored, "test": benchmark.split.test})


def _shuffled(config: RunConfig) -> str:
    return "" if config.fold_seed is None else f" (articles or rows shuffled with seed {config.fold_seed})"


def _report(files: RunFolder, config: RunConfig, benchmark: Benchmark, outcome: Outcome, seconds: float) -> str:
    recipe, rows = config.recipe, files.results()
    monitor, scores = benchmark.task.monitor, means(files, benchmark.task.monitor)
    verdicts = []
    for split in ("dev", "test"):
        before, after = 100 * scores[ZERO_SHOT, split], 100 * scores[recipe.learner, split]
        verdicts.append(f"- {split}: {monitor} {before:.2f} → {after:.2f} ({after - before:+.2f})")
    ended = {"patience": "no better dev score for the recipe's patience", "finished": "all steps done"}[outcome.reason]
    facts = [
        ["encoder", config.encoder],
        ["learner", f"{recipe.learner} (recipe {recipe.recipe})"],
        ["mode", config.mode],
        ["fold, seed", f"{config.fold}{_shuffled(config)}, {config.seed}"],
        ["outer steps", f"{outcome.steps}, weights of step {outcome.best_step} kept ({ended})"],
        ["time", f"{seconds:.0f} s since the start or the last resume, evaluation included"],
        ["data", f"{benchmark.data.describe()}, fingerprint {benchmark.data.fingerprint}"],
        ["versions", ", ".join(f"{name} {value}" for name, value in versions().items())],
    ]
    return (
        "\n\n".join(
            [
                f"# {recipe.learner} on {config.task}",
                "\n".join(verdicts),
                by_language(rows, "test"),
                by_language(rows, "dev"),
                markdown(["run", ""], facts, left=2),
            ]
        )
        + "\n"
    )
