"""The scores: the main table, other measures, groups of languages, pools, and the dev scores."""

from dataclasses import replace
from statistics import fmean

from metasearch.evaluation.report.comparison import mark_note
from metasearch.evaluation.report.formats import slug
from metasearch.evaluation.report.main_table import (
    BEST,
    arm_table,
    complete,
    main_table,
    make_cell,
    mean_notes,
    over_languages,
)
from metasearch.evaluation.report.section import SCORES, Inputs, Section
from metasearch.evaluation.report.table import Cell, Table
from metasearch.evaluation.study.study import Arm, ScoreSelection, Study

ORDER = 10


def section(inputs: Inputs) -> Section:
    """Return the main table, marked where an arm differs from the baseline, and the other tables of scores."""
    study, selection, comparison = inputs.study, inputs.selection, inputs.comparison
    marks = {each.arm: each.mark for each in comparison.arms} if comparison else {}
    main = main_table(study, selection, "main", marks)
    if comparison and any(marks.values()):
        main = replace(main, notes=(*main.notes, mark_note(comparison)))
    others = [
        main_table(study, selection._replace(measure=name), f"main-{slug(name)}")
        for name in study.measures
        if name != selection.measure
    ]
    more = [make(study, selection) for make in (group_table, pool_table)]
    dev = main_table(study, selection._replace(split="dev"), "dev")
    tables = tuple(table for table in (main, *others, *more, dev) if table and table.lines)
    return Section(SCORES, "Scores", tables=tables)


def pool_table(study: Study, selection: ScoreSelection) -> Table | None:
    """Return learners × pools, means over languages; None for a task with one pool."""
    if len(study.pools) < 2:
        return None
    arms = [arm for arm in study.arms if study.by_fold(arm, selection)]
    pools = [selection._replace(pool=pool) for pool in study.pools]
    rows = {arm: [make_cell(over_languages(study, arm, pool)) for pool in pools] for arm in arms}
    notes = ("Mean over languages, or over pairs of languages.", *mean_notes(study, arms, selection))
    title = f"{study.task}: {selection.measure} by pool, {selection.split}"
    return arm_table("pools", title, rows, study.pools, complete(study, arms, selection), notes)


def group_table(study: Study, selection: ScoreSelection) -> Table | None:
    """Return learners × language groups, means over languages; None for a task without groups."""
    sizes: dict[str, str] = {}
    means: dict[Arm, dict[str, float]] = {}
    for arm in study.arms:
        values: dict[str, dict[int, list[float]]] = {}
        for scored in study.of(arm):
            for name, row in scored.groups(*selection).items():
                sizes[name] = f"{row['found']} of {row['listed']}"
                values.setdefault(name, {}).setdefault(scored.fold, []).append(row["value"])
        if values:
            means[arm] = {name: fmean(map(fmean, folds.values())) for name, folds in values.items()}
    if not means:
        return None
    there = "; ".join(f"{name}: {size}" for name, size in sizes.items())
    notes = (
        f"Mean over the languages of a group that are there ({there}); seeds are averaged, then folds.",
        BEST.format("group"),
    )
    rows = {arm: [Cell(own.get(name)) for name in sizes] for arm, own in means.items()}
    title = f"{study.task}: {selection}, groups of languages"
    return arm_table("groups", title, rows, tuple(sizes), complete(study, list(means), selection), notes)
