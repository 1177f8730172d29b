"""What `main_table.py` and `transfer_modes.py` share: a study of rows of the paper, ours beside the paper's."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from _paper import ENCODER, TABLE
from metasearch import jobs
from metasearch.catalog import choose_recipe
from metasearch.cli._cells import watching
from metasearch.cli._settings import kept_data, kept_encoder
from metasearch.data.library import Library
from metasearch.evaluation.report import markdown
from metasearch.results.study import Study
from metasearch.study.config import StudyConfig, Trained
from metasearch.study.resolve import folds_of
from metasearch.study.runner import crossval

RESULTS = Path(__file__).parent / "results"
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
                "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Of all recipes; repeatable."
            ),
            click.option("--jobs", "processes", type=click.IntRange(min=1), default=1, show_default=True),
            click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of the study."),
        ]
    ):
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
    """Run the study, or what is left of it, and return its scores."""
    trained = [
        Trained(arm=f"{learner}-{mode}", mode=mode, recipe=choose_recipe(mode, encoder, learner, None, assignments))
        for learner, mode in arms
    ]
    config = StudyConfig(
        task=task,
        encoder=kept_encoder(encoder),
        trained=tuple(trained),
        folds=folds_of(folds, Library().task(task)),
        seeds=tuple(map(int, seeds.split(","))),
        max_steps=max_steps,
        data=kept_data(data),
    )
    with watching() as watcher:
        return crossval(config, output, processes, watcher)


def beside_the_paper(study: Study, task: str, encoder: str, arms: Sequence[Arm]) -> str:
    """Return ours and the paper's, a line each, times 100, and what keeps them from being compared."""
    languages, figures = TABLE[task]
    measure, pool = study.require()
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
    if Path(encoder).name != Path(ENCODER).name:
        notes.append(
            f"The encoder is {encoder}, another one than the paper's {ENCODER}: "
            "the order of the learners can be compared, the height cannot."
        )
    if task == "lareqa":
        notes.append("The paper says mAP@20; the code of its authors takes mAP over the whole ranking.")
    table = markdown(["learner", "mode", f"{measure}, {pool}", *languages, "mean"], lines, left=3)
    return "\n\n".join([table, *notes])


def means(study: Study) -> dict[tuple[str, str | None], dict[str, float]]:
    """Return learner and mode → language → mean over folds and seeds of the task's first measure on test."""
    measure, pool = study.require()
    found = {}
    for arm in study.arms:
        values: dict[str, list[float]] = {}
        for scored in study.of(arm):
            for (language, _), value in scored.values(measure, pool).items():
                values.setdefault(language, []).append(value)
        found[arm.learner, arm.mode] = {language: sum(v) / len(v) for language, v in values.items()}
    return found


def keep(study: Study, name: str, encoder: str) -> None:
    """Append the mean of each language to the results of a benchmark."""
    measure, _ = study.require()
    shared = {"task": study.task, "encoder": encoder, "measure": measure, "folds": study.folds, "seeds": study.seeds}
    stamp = {"data": study.data, "versions": dict(study.versions)}
    rows = [
        {**shared, "learner": learner, "mode": mode, "language": language, "value": value, **stamp}
        for (learner, mode), values in means(study).items()
        for language, value in values.items()
    ]
    jobs.append_rows(RESULTS / f"{name}.jsonl", rows)


def _row(values: Sequence[float | None]) -> list[str]:
    known = [value for value in values if value is not None]
    mean = sum(known) / len(known) if known and len(known) == len(values) else None
    return ["" if value is None else f"{value:.1f}" for value in (*values, mean)]
