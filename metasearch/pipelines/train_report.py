"""Training report: scores before and after, by language, and run facts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from metasearch.config.recipe import ZERO_SHOT, Recipe
from metasearch.data.benchmark import Benchmark
from metasearch.io import atomic_write
from metasearch.pipelines.run import Row, RunResult
from metasearch.runs.markdown import by_language, fact_table
from metasearch.runs.rows import MEAN


def report(rows: Sequence[Row], recipe: Recipe, benchmark: Benchmark, facts: Mapping[str, str]) -> str:
    """Return the scores before and after training, by language, and the facts of the run, in Markdown."""
    monitor, scores = benchmark.task.monitor, monitored(rows, benchmark.task.monitor)
    verdicts = []
    for split in ("dev", "test"):
        before, after = 100 * scores[ZERO_SHOT, split], 100 * scores[recipe.delivers, split]
        verdicts.append(f"- {split}: {monitor} {before:.2f} → {after:.2f} ({after - before:+.2f})")
    parts = [f"# {recipe.learner} on {benchmark.task.task}", "\n".join(verdicts)]
    parts += [by_language(rows, "test"), by_language(rows, "dev"), fact_table("run", facts)]
    return "\n\n".join(parts) + "\n"


def side_by_side(folder: Path, results: Sequence[RunResult]) -> RunResult:
    """Write one report of several runs below a folder; return it with all scores, zero-shot once."""
    rows = [row for i, result in enumerate(results) for row in result.rows if i == 0 or row["learner"] != ZERO_SHOT]
    parts = ["# Learners side by side", by_language(rows, "test"), by_language(rows, "dev")]
    combined = "\n\n".join(parts) + "\n"
    atomic_write(folder / "report.md", combined)
    return RunResult(folder, rows, combined)


def monitored(rows: Sequence[Row], monitor: str) -> dict[tuple[str, str], float]:
    """Return the mean of a measure by learner and split, in the first pool that was scored."""
    means: dict[tuple[str, str], float] = {}
    for row in rows:
        if (row["measure"], row["language"]) == (monitor, MEAN):
            means.setdefault((row["learner"], row["split"]), row["value"])
    return means
