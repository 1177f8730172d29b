"""What `main_table.py` and `transfer_modes.py` share: a study of rows of the paper, ours beside the paper's."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from _outcome import outcome
from _paper import ENCODER, TABLE
from metasearch.cli._cells import watching
from metasearch.cli.crossval import configure
from metasearch.jobs import train
from metasearch.jobs.crossval.runner import crossval
from metasearch.reports.means import by_language
from metasearch.runs.markdown import markdown
from metasearch.study.study import Study

Arm = tuple[str, str]
"""Learner and transfer mode."""


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say at which scale a study is run."""
    for option in reversed(
        [
            click.option(
                "--encoder", default=ENCODER, show_default=True, help="Built-in name, local folder or hub name."
            ),
            click.option("--data", help="Folder of the task's files or a parent of it."),
            click.option("--folds", help="How many, or which, such as 0,2; by default all five."),
            click.option("--seeds", default="0", show_default=True, help="Such as 1,2,3."),
            click.option("--max-steps", type=click.IntRange(min=1), help="Outer steps of each run at most."),
            click.option(
                "--set", "assignments", multiple=True, metavar="[LEARNER:]KEY=VALUE",
                help="Of all recipes, or of one learner's; repeatable.",
            ),
            click.option("--jobs", "processes", type=click.IntRange(min=1), default=1, show_default=True),
            click.option("--results", type=click.Path(path_type=Path), help="File that rows are appended to."),
            click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of the study."),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


def run(
    task: str,
    arms: Sequence[Arm],
    encoder: str,
    data: str | None,
    folds: str | None,
    seeds: str,
    max_steps: int | None,
    assignments: Sequence[str],
    processes: int,
    output: Path,
) -> Study:
    """Run the study, or what is left of it, as `metasearch crossval` does, and return its scores."""
    unused: dict[str, Any] = dict.fromkeys(("teacher", "assistant", "student")) | dict.fromkeys(
        ("corpus", "scored", "entailment"), ()
    )
    config = configure(
        task=task,
        learner=",".join(f"{learner}:{mode}" for learner, mode in arms),
        recipe=None,
        mode=None,
        folds=folds,
        seeds=seeds,
        assignments=assignments,
        encoder=encoder,
        distill=None,
        include=(),
        data=data,
        max_steps=max_steps,
        **unused,
    )
    with watching() as watcher:
        return crossval(config, output, processes, watcher)


def keep(study: Study, encoder: str, path: Path) -> None:
    """Append a row of each arm to the results of a benchmark."""
    train.append_rows(path, outcome(study, encoder))


def beside_the_paper(study: Study, task: str, encoder: str, arms: Sequence[Arm]) -> str:
    """Return ours and the paper's, a line each, times 100, and what keeps them from being compared."""
    languages, figures = TABLE.get(task, (study.languages, {}))
    measure, pool, _ = study.select()
    ours = means(study)
    lines = []
    for learner, mode in [("zero-shot", None), *arms]:
        found = ours.get((learner, mode), {})
        values = [found.get(language) for language in languages]
        paper = figures.get((learner, mode))
        lines.append([learner, mode or "", "ours", *_row([None if v is None else 100 * v for v in values])])
        if paper:
            lines.append(["", "", "paper", *_row(list(paper))])
    notes = [f"Folds {', '.join(map(str, study.folds))} of 5, seeds {', '.join(map(str, study.seeds))}; {measure}."]
    if figures and Path(encoder).name != Path(ENCODER).name:
        notes.append(
            f"The encoder is {encoder}, another one than the paper's {ENCODER}: "
            "the order of the learners can be compared, the height cannot."
        )
    if task == "lareqa-sentences":
        notes.append("The paper's candidates are sentences with their paragraphs, ours without.")
    if task in ("lareqa", "lareqa-sentences"):
        notes.append("The paper says mAP@20; the code of its authors takes mAP over the whole ranking.")
    table = markdown(["learner", "mode", f"{measure}, {pool}", *languages, "mean"], lines, left=3)
    return "\n\n".join([table, *notes])


def means(study: Study) -> dict[tuple[str, str | None], dict[str, float]]:
    """Return learner and mode → language → mean over seeds, then folds, of the task's first measure on test."""
    selection = study.select()
    return {
        (arm.learner, arm.mode): {
            language: value for (language, _), value in by_language(study, arm, selection).items()
        }
        for arm in study.arms
    }


def _row(values: Sequence[float | None]) -> list[str]:
    known = [value for value in values if value is not None]
    mean = sum(known) / len(known) if known and len(known) == len(values) else None
    return ["" if value is None else f"{value:.1f}" for value in (*values, mean)]
