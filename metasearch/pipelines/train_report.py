"""The report of a training: scores before and after it, by language, and the facts of the run."""

from collections.abc import Sequence
from pathlib import Path

from metasearch.config.recipe import ZERO_SHOT
from metasearch.config.run import RunConfig
from metasearch.data.benchmark import Benchmark
from metasearch.io import atomic_write
from metasearch.pipelines.run import Row, RunResult
from metasearch.runs.describe import describe
from metasearch.runs.folder import RunFolder
from metasearch.runs.markdown import by_language, fact_table
from metasearch.runs.rows import MEAN
from metasearch.training.trainer import Outcome


def report(files: RunFolder, config: RunConfig, benchmark: Benchmark, outcome: Outcome, seconds: float) -> str:
    """Return the scores before and after training, by language, and the facts of the run, in Markdown."""
    recipe, rows = config.recipe, files.results()
    described = describe(config.model_dump(mode="json"), rows)
    monitor, scores = benchmark.task.monitor, monitored(rows, benchmark.task.monitor)
    verdicts = []
    for split in ("dev", "test"):
        before, after = 100 * scores[ZERO_SHOT, split], 100 * scores[recipe.delivers, split]
        verdicts.append(f"- {split}: {monitor} {before:.2f} → {after:.2f} ({after - before:+.2f})")
    translations = {"translated": str(benchmark.translations)} if benchmark.translations else {}
    facts = (
        described
        | translations
        | {
            "outer steps": f"{outcome.steps}, weights of step {outcome.best_step} kept ({outcome.ended})",
            "time": f"{seconds:.0f} s since the start or the last resume, evaluation included",
            "data": f"{benchmark.data.describe()}, fingerprint {benchmark.data.fingerprint}",
        }
    )
    parts = [f"# {recipe.learner} on {config.data.task}", "\n".join(verdicts)]
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
