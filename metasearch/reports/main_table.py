"""The main table: learners by languages, as tables 1, 7 and 8 of the MAML-Align paper; and folds, seeds and pools."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from metasearch.reports.means import What, by_fold, by_language, complete, over_languages, taken_over
from metasearch.reports.table import Cell, Line, Place, Table
from metasearch.runs.rows import MEAN
from metasearch.study.arms import Arm
from metasearch.study.statistics.summary import Over, Summary, summary
from metasearch.study.study import Study

MANY = 14
"""From this many languages on, a table has a line for each language, and learners side by side."""
NO_MODE = "–"
UNIT = "× 100"
BEST = "Best of each {} bold, second best in italics; values that are equal as printed share a place."


def main_table(study: Study, what: What, key: str = "main", marks: Mapping[Arm, str] | None = None) -> Table:
    """Return learners × languages with their mean, values × 100.

    Args:
        study: what was measured.
        what: which of it.
        key: of the table.
        marks: behind the means, such as `*` of what differs from the baseline.
    """
    arms = [arm for arm in ordered(study) if by_fold(study, arm, what)]
    languages = _languages(study, arms, what)
    values = {arm: by_language(study, arm, what) for arm in arms}
    means = {arm: over_languages(study, arm, what) for arm in arms}
    rows = {
        arm: (*(Cell(values[arm].get(of)) for of in languages), cell_of(means[arm], (marks or {}).get(arm, "")))
        for arm in arms
    }
    names = (*(_named(of, languages) for of in languages), MEAN)
    notes = (*taken_over(study, arms, what), *((BEST.format("language"),) if len(arms) > 1 else ()))
    table = of_arms(key, f"{study.task}: {what}", arms, rows, names, complete(study, arms, what), notes)
    return turned(table) if len(languages) > MANY else table


def fold_table(study: Study, what: What, key: str = "folds") -> Table | None:
    """Return learners × folds, the mean over languages of each; None of a single fold."""
    values = {arm: {f: fmean(v.values()) for f, v in by_fold(study, arm, what).items()} for arm in ordered(study)}
    return _by(study, what, key, "folds", values, "Mean over languages; the seeds of a fold are averaged.")


def seed_table(study: Study, what: What, key: str = "seeds") -> Table | None:
    """Return learners × seeds, the mean over languages and folds of each; None of a single seed.

    A seed that an arm lacks on any fold has no value: other folds have other questions.
    """
    values: dict[Arm, dict[int, float]] = {}
    folds = sorted({fold for arm in study.arms for fold in by_fold(study, arm, what)})
    for arm in ordered(study):
        scored = {(s.seed, s.fold): s.values(what.measure, what.pool, what.split) for s in study.of(arm)}
        values[arm] = {
            seed: fmean(fmean(scored[seed, fold].values()) for fold in folds)
            for seed in study.seeds
            if all(scored.get((seed, fold)) for fold in folds)
        }
    return _by(study, what, key, "seeds", values, "Mean over languages and folds.")


def pool_table(study: Study, what: What, key: str = "pools") -> Table | None:
    """Return learners × pools, the mean over languages of each; None of a task with one pool."""
    arms = [arm for arm in ordered(study) if by_fold(study, arm, what)]
    pools = [replace(what, pool=pool) for pool in study.pools]
    rows = {arm: tuple(cell_of(over_languages(study, arm, pool)) for pool in pools) for arm in arms}
    notes = ("Mean over languages, or over pairs of languages.", *taken_over(study, arms, what))
    title = f"{study.task}: {what.measure} by pool, {what.split}"
    best = complete(study, arms, what)
    return of_arms(key, title, arms, rows, study.pools, best, notes) if len(pools) > 1 else None


def group_table(study: Study, what: What, key: str = "groups") -> Table | None:
    """Return learners × groups of languages, the mean over the languages of each; None of a task without groups."""
    sizes: dict[str, str] = {}
    rows: dict[Arm, dict[str, float]] = {}
    for arm in ordered(study):
        values: dict[str, dict[int, list[float]]] = {}
        for scored in study.of(arm):
            for name, row in scored.groups(what.measure, what.pool, what.split).items():
                sizes[name] = f"{row['found']} of {row['listed']}"
                values.setdefault(name, {}).setdefault(scored.fold, []).append(row["value"])
        if values:
            rows[arm] = {name: fmean(map(fmean, folds.values())) for name, folds in values.items()}
    if not rows:
        return None
    there = "; ".join(f"{name}: {size}" for name, size in sizes.items())
    notes = (
        f"Mean over the languages of a group that are there ({there}); seeds are averaged, then folds.",
        BEST.format("group"),
    )
    cells = {arm: [Cell(own.get(name)) for name in sizes] for arm, own in rows.items()}
    title = f"{study.task}: {what}, groups of languages"
    return of_arms(key, title, list(rows), cells, tuple(sizes), complete(study, list(rows), what), notes)


def ordered(study: Study) -> list[Arm]:
    """Return the arms as a paper lists them: zero-shot, then learner by learner, each by its modes."""
    learners = list(dict.fromkeys(arm.learner for arm in study.arms))

    return sorted(
        study.arms, key=lambda arm: (not arm.zero_shot, learners.index(arm.learner), mode_rank(arm.mode or ""))
    )


def mode_rank(mode: str) -> tuple[int, str]:
    """Return by what modes are ordered: links, then name; those that are no chain, such as `mixt`, last."""
    return (mode.count("-") if "-" in mode or not mode else 9, mode)


def without_mode(arm: Arm) -> str:
    """Return the label of an arm without its mode, which stands beside it."""
    return arm.label.replace(f" ({arm.mode})", "", 1)


def cell_of(mean: Summary | None, mark: str = "") -> Cell:
    """Return a mean with its spread as a cell."""
    return Cell(mean.mean, mean.sd, mark=mark) if mean else Cell()


def placed(cells: Sequence[Cell], ranked: Sequence[bool], decimals: int = 2) -> list[Cell]:
    """Return cells with their places; what is equal as it is printed shares one, and nothing wins against itself alone.

    Args:
        cells: of a column.
        ranked: whether each may have a place.
        decimals: that are printed, of values × 100.
    """
    printed = [
        round(100 * cell.value, decimals) if may and cell.value is not None else None
        for cell, may in zip(cells, ranked, strict=True)
    ]
    highest = sorted({value for value in printed if value is not None}, reverse=True)
    places: dict[float | None, Place] = dict(zip(highest, ("best", "second"), strict=False)) if highest[1:] else {}
    return [replace(cell, place=places.get(value, "")) for cell, value in zip(cells, printed, strict=True)]


def of_arms(
    key: str,
    title: str,
    arms: Sequence[Arm],
    rows: Mapping[Arm, Sequence[Cell]],
    columns: Sequence[str],
    ranked: Collection[Arm],
    notes: Sequence[str],
) -> Table:
    """Return a table with a line for each arm, best and second of each column marked.

    Args:
        key: of the table.
        title: of the table.
        arms: in their order.
        rows: cells of each arm, one for each column.
        columns: their names.
        ranked: the arms that may be the best; of fewer than two, none is.
        notes: of the table.
    """
    moded = any(arm.mode for arm in arms)
    down = [placed([rows[arm][i] for arm in arms], [arm in ranked for arm in arms]) for i in range(len(columns))]
    lines = []
    for i, (before, arm) in enumerate(zip((None, *arms), arms, strict=False)):
        cells = tuple(column[i] for column in down)
        heads = (without_mode(arm), arm.mode or NO_MODE) if moded else (arm.label,)
        lines.append(Line(heads, cells, before is not None and _apart(before, arm, arms)))
    heads = ("Learner", "Mode") if moded else ("Learner",)
    return Table(key, title, heads, tuple(columns), tuple(lines), tuple(notes), unit=UNIT)


def turned(table: Table) -> Table:
    """Return a table with its columns as lines."""
    columns = tuple(" ".join(part for part in line.heads if part != NO_MODE) for line in table.lines)
    lines = [
        Line((name,), tuple(line.cells[i] for line in table.lines), name == MEAN)
        for i, name in enumerate(table.columns)
    ]
    return replace(table, heads=("Language",), columns=columns, lines=tuple(lines))


def _apart(before: Arm, arm: Arm, arms: Sequence[Arm]) -> bool:
    """Whether a rule stands between two lines: behind zero-shot, and around a learner with several lines."""
    several = [sum(one.learner == other.learner for other in arms) > 1 for one in (before, arm)]
    return before.zero_shot != arm.zero_shot or (before.learner != arm.learner and any(several))


def _by(
    study: Study, what: What, key: str, over: Over, values: Mapping[Arm, Mapping[int, float]], note: str
) -> Table | None:
    """Return learners × folds or seeds with their mean; None of a single one."""
    name = over.removesuffix("s")
    columns = sorted({number for own in values.values() for number in own})
    arms = [arm for arm, own in values.items() if own]
    if len(columns) < 2:
        return None
    rows = {
        arm: (*(Cell(values[arm].get(n)) for n in columns), cell_of(summary([*values[arm].values()], over)))
        for arm in arms
    }
    full = {arm for arm in arms if len(values[arm]) == len(columns)}
    notes = (note, f"The last column is the mean ± sample standard deviation over {over}.")
    names = (*(f"{name} {number}" for number in columns), MEAN)
    return of_arms(key, f"{study.task}: {what} by {name}", arms, rows, names, full, notes)


def _languages(study: Study, arms: Sequence[Arm], what: What) -> list[tuple[str, str]]:
    """Return the languages, with those of the candidates, in the order of the task."""
    found = dict.fromkeys(key for arm in arms for key in by_language(study, arm, what))
    place = {language: number for number, language in enumerate(study.languages)}
    return sorted(found, key=lambda key: place.get(key[0], len(place)))


def _named(of: tuple[str, str], languages: Sequence[tuple[str, str]]) -> str:
    """Return the name of a column: the language; with that of the candidates where a language has several columns."""
    several = sum(language == of[0] for language, _ in languages) > 1
    return f"{of[0]} → {of[1]}" if several else of[0]
