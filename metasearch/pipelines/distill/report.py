"""Markdown reports for a stage and for a whole distillation."""

from collections.abc import Mapping, Sequence

from metasearch.config.distill_run import DistillConfig
from metasearch.encoders.encoder import Encoder
from metasearch.runs.markdown import by_language, fact_table, markdown, percent
from metasearch.runs.rows import MEAN, STAGE, Row
from metasearch.runs.versions import describe_versions, versions
from metasearch.training.trainer import Outcome

_MEBI = 2**20


def stage_report(config: DistillConfig, name: str, outcome: Outcome, described: str) -> str:
    """Return what a finished stage did, on the data so described."""
    stage = config.recipe.stages[name]
    facts = {
        "what": stage.description,
        "learner": f"{stage.learner}: the {stage.trains}" + (f" from the {stage.against}" if stage.against else ""),
        "data": described,
        "steps": f"{outcome.steps}, weights of step {outcome.best_step} kept ({outcome.ended})",
        f"dev {stage.monitor}": " → ".join(_dev(stage.monitor, v) for v in (outcome.baseline, outcome.best_score)),
        "versions": describe_versions(versions()),
    }
    return f"# Stage {name} of {config.recipe.recipe}\n\n{fact_table('stage', facts)}\n"


def whole_report(
    rows: Sequence[Row], config: DistillConfig, encoder: Encoder, facts: Mapping[str, str], seconds: float
) -> str:
    """Return all stages' dev scores, the tasks' scores after each, and run facts."""
    parts = [f"# {config.recipe.recipe}", _stages(rows, config)]
    for task in config.evaluate:
        own = [row for row in rows if row["task"] == task]
        parts.append(f"## {task}\n\n{_by_group(own) or by_language(own, 'test')}")
    count = encoder.parameter_count
    facts = dict(facts) | {
        "model": f"{count:,} parameters, {4 * count / _MEBI:.1f} MiB in float32, {2 * count / _MEBI:.1f} in float16",
        "time": f"{seconds:.0f} s since the start or the last resume, evaluation included",
    }
    return "\n\n".join([*parts, fact_table("run", facts)]) + "\n"


def _by_group(rows: Sequence[Row]) -> str:
    """Return stages by language group for a translation task, means over both directions; "" for other tasks."""
    both = [row for row in rows if row["pool"] == "both"]
    cells = {(row["learner"], row["measure"], row["language"]): row["value"] for row in both}
    of_groups = {
        row["language"]: f"{row['language']} ({row['found']} of {row['listed']})" for row in both if "found" in row
    }
    columns = [*of_groups, MEAN]
    heads = [of_groups.get(column, column) for column in columns]
    lines = [
        [learner, measure, *(percent(cells[learner, measure, column]) for column in columns)]
        for learner, measure in dict.fromkeys((row["learner"], row["measure"]) for row in both)
    ]
    return markdown(["stage", "measure", *heads], lines, left=2) if lines else ""


def _stages(rows: Sequence[Row], config: DistillConfig) -> str:
    """Return a table with each stage's dev scores."""
    by_label = {row["learner"]: row for row in rows if row["task"] == STAGE}
    lines = []
    for number, name, stage in config.stages:
        row = by_label[f"{number} {name}"]
        scores = [_dev(stage.monitor, row[key]) for key in ("before", "value")]
        step = f"{row['step']} of {row['steps']}"
        lines.append([f"{number} {name}", stage.trains, stage.against or "", stage.monitor, *scores, step])
    return markdown(["stage", "trains", "against", "dev score", "before", "best", "at step"], lines, left=4)


def _dev(monitor: str, value: float | None) -> str:
    """Return a formatted dev score: a loss unchanged, everything else times 100."""
    return f"{-value:.4f}" if monitor == "loss" and value is not None else percent(value)
