"""The reports of a stage and of a whole distillation, in Markdown."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

from metasearch.data.stages import RoleName
from metasearch.distillation.config import DistillConfig
from metasearch.distillation.stage import Finished
from metasearch.encoders.base import Encoder
from metasearch.engine.run_folder import RunFolder, versions
from metasearch.evaluation.report import by_language, markdown
from metasearch.evaluation.scores import MEAN

_MEBI = 2**20
_ENDED = {"patience": "no better dev score for the stage's patience", "finished": "all steps done"}


def stage_report(config: DistillConfig, name: str, finished: Finished) -> str:
    """Return what a finished stage did."""
    stage, outcome = config.recipe.stages[name], finished.outcome
    facts = [
        ["what", stage.description],
        ["learner", f"{stage.learner}: the {stage.trains}" + (f" from the {stage.against}" if stage.against else "")],
        ["data", finished.described],
        ["steps", f"{outcome.steps}, weights of step {outcome.best_step} kept ({_ENDED.get(outcome.reason, '')})"],
        [f"dev {stage.monitor}", f"{_shown(outcome.baseline)} → {_shown(outcome.best_score)}"],
        ["versions", ", ".join(f"{library} {value}" for library, value in versions().items())],
    ]
    return f"# Stage {name} of {config.recipe.recipe}\n\n{markdown(['stage', ''], facts, left=2)}\n"


def whole_report(files: RunFolder, config: DistillConfig, encoder: Encoder, seconds: float) -> str:
    """Return the dev scores of all stages, the tasks' scores after each, and the facts of the run.

    Args:
        files: of the run, with the scores in its results.
        config: what was run.
        encoder: what came out.
        seconds: since the start or the last resume.
    """
    parts = [f"# {config.recipe.recipe}", _stages(files, config)]
    rows = files.results()
    for task in config.evaluate:
        own = [row for row in rows if row["task"] == task]
        parts.append(f"## {task}\n\n{_by_group(own) or by_language(own, 'test')}")
    count = encoder.parameter_count
    facts = [
        *([role, config.named(role) or "made of the assistant"] for role in _roles(config)),
        ["model", f"{count:,} parameters, {4 * count / _MEBI:.1f} MiB in float32, {2 * count / _MEBI:.1f} in float16"],
        ["seed", str(config.seed)],
        ["time", f"{seconds:.0f} s since the start or the last resume, evaluation included"],
        ["versions", ", ".join(f"{library} {value}" for library, value in versions().items())],
    ]
    return "\n\n".join([*parts, markdown(["run", ""], facts, left=2)]) + "\n"


def _roles(config: DistillConfig) -> list[RoleName]:
    """Return the roles that took part."""
    recipe = config.recipe
    found = {*recipe.roles(config.student is not None), *(recipe.stages[name].trains for name in recipe.chosen)}
    return [role for role in get_args(RoleName) if role in found]


def _by_group(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return stages by groups of languages of a translation task, the mean of both directions; "" for other tasks."""
    both = [row for row in rows if row["pool"] == "both"]
    cells = {(row["learner"], row["measure"], row["language"]): row["value"] for row in both}
    of_groups = {
        row["language"]: f"{row['language']} ({row['found']} of {row['listed']})" for row in both if "found" in row
    }
    columns = [*of_groups, MEAN]
    heads = [of_groups.get(column, column) for column in columns]
    lines = [
        [learner, measure, *(_shown(cells[learner, measure, column]) for column in columns)]
        for learner, measure in dict.fromkeys((row["learner"], row["measure"]) for row in both)
    ]
    return markdown(["stage", "measure", *heads], lines, left=2) if lines else ""


def _stages(files: RunFolder, config: DistillConfig) -> str:
    """Return a table of the dev scores of each stage, read from its log, so that a resumed run tells all."""
    lines = []
    for number, (name, stage) in enumerate(config.recipe.stages.items(), 1):
        if name not in config.recipe.chosen:
            continue
        events = _events(files, f"{number}-{name}")
        scores = [event for event in events if "dev" in event]
        best = max((event for event in scores if event["step"] > 0), key=lambda event: event["dev"])
        steps = max(event.get("step", 0) for event in events)
        lines.append(
            [f"{number} {name}", stage.trains, stage.against or "", stage.monitor, _shown(scores[0]["dev"]),
             _shown(best["dev"]), f"{best['step']} of {steps}"]
        )  # fmt: skip
    return markdown(["stage", "trains", "against", "dev score", "before", "best", "at step"], lines, left=4)


def _events(files: RunFolder, stage: str) -> list[Mapping[str, Any]]:
    path = files.path / stage / "log.jsonl"
    events = []
    for line in path.read_text(encoding="utf-8").splitlines():
        with suppress(json.JSONDecodeError):  # of a line that a full disk or a kill cut off
            events.append(json.loads(line))
    return events


def _shown(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"
