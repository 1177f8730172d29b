"""The report of a training: scores before and after it, by language, and the facts of the run."""

from collections.abc import Sequence
from pathlib import Path

from metasearch.data.benchmark import Benchmark
from metasearch.files import write_whole
from metasearch.jobs.lifecycle import Row, RunResult
from metasearch.jobs.merge_stage import said_of
from metasearch.runs.folder import RunFolder
from metasearch.runs.markdown import by_language, markdown
from metasearch.runs.rows import MEAN
from metasearch.runs.versions import versions
from metasearch.spec.recipe import ZERO_SHOT
from metasearch.spec.run import RunConfig
from metasearch.training.trainer import Outcome


def report(files: RunFolder, config: RunConfig, benchmark: Benchmark, outcome: Outcome, seconds: float) -> str:
    """Return the scores before and after training, by language, and the facts of the run, in Markdown."""
    recipe, rows = config.recipe, files.results()
    monitor, scores = benchmark.task.monitor, monitored(rows, benchmark.task.monitor)
    stage = recipe.neutralise
    pairs = " pair" if benchmark.task.kind == "similarity" else ""
    verdicts = []
    for split in ("dev", "test"):
        before, after = 100 * scores[ZERO_SHOT, split], 100 * scores[recipe.delivers, split]
        verdicts.append(f"- {split}: {monitor} {before:.2f} → {after:.2f} ({after - before:+.2f})")
    ended = {"patience": "no better dev score for the recipe's patience", "finished": "all steps done"}[outcome.reason]
    shuffled = "" if config.fold_seed is None else f" (articles or rows shuffled with seed {config.fold_seed})"
    facts = [
        ["encoder", config.encoder],
        ["learner", f"{recipe.learner} (recipe {recipe.recipe})"],
        *([["neutralise", f"{stage.when} training"]] if stage else []),
        *([["merge", said_of(recipe.merge, rows)]] if recipe.merge else []),
        *([["translated", str(benchmark.translations)]] if benchmark.translations else []),
        *([["labels", f"{recipe.labels} of each language{pairs}"]] if recipe.labels else []),
        ["mode", config.mode],
        ["fold, seed", f"{config.fold}{shuffled}, {config.seed}"],
        ["outer steps", f"{outcome.steps}, weights of step {outcome.best_step} kept ({ended})"],
        ["time", f"{seconds:.0f} s since the start or the last resume, evaluation included"],
        ["data", f"{benchmark.data.describe()}, fingerprint {benchmark.data.fingerprint}"],
        ["versions", ", ".join(f"{name} {value}" for name, value in versions().items())],
    ]
    parts = [f"# {recipe.learner} on {config.task}", "\n".join(verdicts)]
    parts += [by_language(rows, "test"), by_language(rows, "dev"), markdown(["run", ""], facts, left=2)]
    return "\n\n".join(parts) + "\n"


def side_by_side(folder: Path, results: Sequence[RunResult]) -> RunResult:
    """Write one report of several runs below a folder; return it with all scores, zero-shot once."""
    rows = [row for i, result in enumerate(results) for row in result.rows if i == 0 or row["learner"] != ZERO_SHOT]
    parts = ["# Learners side by side", by_language(rows, "test"), by_language(rows, "dev")]
    combined = "\n\n".join(parts) + "\n"
    write_whole(folder / "report.md", combined)
    return RunResult(folder, rows, combined)


def monitored(rows: Sequence[Row], monitor: str) -> dict[tuple[str, str], float]:
    """Return the mean of a measure by learner and split, in the first pool that was scored."""
    means: dict[tuple[str, str], float] = {}
    for row in rows:
        if (row["measure"], row["language"]) == (monitor, MEAN):
            means.setdefault((row["learner"], row["split"]), row["value"])
    return means
