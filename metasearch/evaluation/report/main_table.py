"""The main table: learners by languages, as tables 1, 7 and 8 in the MAML-Align paper; and shared table code."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from metasearch.config.measure import is_rank
from metasearch.evaluation.report.table import Cell, Line, Place, Table
from metasearch.evaluation.statistics.paired import Summary
from metasearch.evaluation.study.compare import over_folds
from metasearch.evaluation.study.paired import join_numbers
from metasearch.evaluation.study.study import Arm, ScoreSelection, Study
from metasearch.runs.rows import MEAN

# Means of the scores of an arm: seeds are averaged within a fold, then folds. The standard deviation is over folds, or
# over the seeds of an only fold.

Key = tuple[str, str]
"""Question language and candidate language."""


def by_language(study: Study, arm: Arm, selection: ScoreSelection) -> dict[Key, float]:
    """Return language and candidate language → value, averaged over seeds, then over folds."""
    folds = study.by_fold(arm, selection).values()
    return _averaged(_averaged(each.values(*selection) for each in runs) for runs in folds)


def over_languages(study: Study, arm: Arm, selection: ScoreSelection) -> Summary | None:
    """Return the mean over languages, seeds and folds, and its spread; None where the arm has no such scores."""
    groups = list(study.by_fold(arm, selection).values())
    if not groups:
        return None
    mean = over_folds(groups, selection)
    # The spread over the seeds of an only fold must not stand among spreads over folds.
    return replace(mean, sd=None) if len(groups) == 1 < len(study.folds) else mean


def mean_notes(study: Study, arms: Sequence[Arm], selection: ScoreSelection) -> list[str]:
    """Return sentences on the means and spreads in a table, with gaps per arm."""
    have = {arm: sorted(study.by_fold(arm, selection)) for arm in arms}
    folds = sorted({fold for own in have.values() for fold in own})
    seeds = sorted({scored.seed for arm in arms for scored in study.of(arm)})
    over = f"Mean over seeds ({join_numbers(seeds)}), then over folds ({join_numbers(folds)})"
    notes = [f"{over}; ±: sample standard deviation over folds, or over the seeds of an only fold."]
    for arm, own in have.items():
        if own != folds:
            lacking = join_numbers(set(folds) - set(own))
            notes.append(f"{arm.label} has {len(own)} of {len(folds)} folds (not {lacking}), so it is not ranked.")
        counts = Counter(scored.fold for scored in study.of(arm))
        short = [f"{count} on fold {fold}" for fold, count in sorted(counts.items()) if count < len(seeds)]
        if short and not arm.zero_shot:  # zero-shot has one, unless the encoder is made from a seed
            notes.append(f"{arm.label} has fewer than {len(seeds)} seeds: {', '.join(short)}.")
    return notes


def complete(study: Study, arms: Sequence[Arm], selection: ScoreSelection) -> set[Arm]:
    """Return the arms with every available fold: only their means cover the same questions."""
    have = {arm: set(study.by_fold(arm, selection)) for arm in arms}
    folds = {fold for own in have.values() for fold in own}
    return {arm for arm, own in have.items() if own == folds and folds}


def _averaged(parts: Iterable[Mapping[Key, float]]) -> dict[Key, float]:
    values: dict[Key, list[float]] = defaultdict(list)
    for part in parts:
        for key, value in part.items():
            values[key].append(value)
    return {key: fmean(each) for key, each in values.items()}


MANY = 14
"""From this many languages on, a table has a line for each language, and learners side by side."""
NO_MODE = "–"
UNIT = "× 100"
BEST = "Best of each {} bold, second best in italics; values that are equal as printed share a place."


def main_table(
    study: Study, selection: ScoreSelection, key: str = "main", marks: Mapping[Arm, str] | None = None
) -> Table:
    """Return learners × languages with means, values × 100; `marks` follow the means."""
    arms = [arm for arm in ordered(study) if study.by_fold(arm, selection)]
    values = {arm: by_language(study, arm, selection) for arm in arms}
    columns = named_columns(study, values.values())
    rows = {}
    for arm in arms:
        mean = make_cell(over_languages(study, arm, selection), (marks or {}).get(arm, ""))
        rows[arm] = [*(Cell(values[arm].get(column)) for column in columns), mean]
    names = [*columns.values(), MEAN]
    rank = is_rank(selection.measure)
    ranked = set[Arm]() if rank else complete(study, arms, selection)
    notes = (*mean_notes(study, arms, selection), *((BEST.format("language"),) if len(arms) > 1 and not rank else ()))
    table = arm_table(key, f"{study.task}: {selection}", rows, names, ranked, notes)
    table = replace(table, scale=1.0, unit="ranks, lower is better") if rank else table
    return _turned(table) if len(columns) > MANY else table


def named_columns(study: Study, values: Iterable[Iterable[Key]]) -> dict[Key, str]:
    """Return the languages that any learner has scores of, each with its name, in the task's order."""
    place = {language: number for number, language in enumerate(study.languages)}
    pairs = dict.fromkeys(pair for own in values for pair in own)
    # A language that the main measure lacks comes last; the sort is stable, so that candidates keep their order.
    columns = sorted(pairs, key=lambda pair: place.get(pair[0], len(place)))
    asked = Counter(language for language, _ in columns)
    return {(a, b): f"{a} → {b}" if asked[a] > 1 else a for a, b in columns}


def ordered(study: Study) -> list[Arm]:
    """Return the arms as a paper lists them: zero-shot, then learner by learner, each by its modes."""
    learners = list(dict.fromkeys(arm.learner for arm in study.arms))
    return sorted(
        study.arms, key=lambda arm: (not arm.zero_shot, learners.index(arm.learner), mode_rank(arm.mode or ""))
    )


def mode_rank(mode: str) -> tuple[int, str]:
    """Return the sort key for modes: links, then name; modes without a chain, such as `mixt`, last."""
    # 9: more links than any chain has. No mode at all has none and comes first.
    return (mode.count("-") if "-" in mode or not mode else 9, mode)


def without_mode(arm: Arm) -> str:
    """Return an arm's label without its mode."""
    return arm.label.replace(f" ({arm.mode})", "", 1)


def make_cell(mean: Summary | None, mark: str = "") -> Cell:
    """Return a mean with its spread as a cell."""
    return Cell(mean.mean, mean.sd, mark=mark) if mean else Cell()


def placed(cells: Sequence[Cell], ranked: Sequence[bool]) -> list[Cell]:
    """Return a column's cells, values × 100 as printed, with their positions.

    What is equal shares a place, only those that are `ranked` have one, and nothing wins against itself alone.
    """
    printed = [
        round(100 * cell.value, 2) if may and cell.value is not None else None
        for cell, may in zip(cells, ranked, strict=True)
    ]
    # A set: of two that share the first place the next value is second, not third.
    highest = sorted({value for value in printed if value is not None}, reverse=True)
    places: dict[float | None, Place] = dict(zip(highest, ("best", "second"), strict=False)) if highest[1:] else {}
    return [replace(cell, place=places.get(value, "")) for cell, value in zip(cells, printed, strict=True)]


def list_heads(arms: Collection[Arm]) -> tuple[tuple[str, ...], dict[Arm, tuple[str, ...]]]:
    """Return the headings for arms, and each arm's own: label and mode, or the label if no arm has a mode."""
    if any(arm.mode for arm in arms):
        return ("Learner", "Mode"), {arm: (without_mode(arm), arm.mode or NO_MODE) for arm in arms}
    return ("Learner",), {arm: (arm.label,) for arm in arms}


def arm_table(
    key: str,
    title: str,
    rows: Mapping[Arm, Sequence[Cell]],
    columns: Sequence[str],
    ranked: Collection[Arm],
    notes: Sequence[str],
) -> Table:
    """Return a table with a line per arm; best and second per column are marked among `ranked` arms."""
    arms = list(rows)
    heads, own = list_heads(arms)
    down = [placed([rows[arm][i] for arm in arms], [arm in ranked for arm in arms]) for i in range(len(columns))]
    lines = [
        Line(own[arm], tuple(column[i] for column in down), i > 0 and _apart(arms[i - 1], arm, arms))
        for i, arm in enumerate(arms)
    ]
    return Table(key, title, heads, tuple(columns), tuple(lines), tuple(notes), unit=UNIT)


def _turned(table: Table) -> Table:
    """Return a table with its columns as lines."""
    columns = tuple(" ".join(part for part in line.heads if part != NO_MODE) for line in table.lines)
    lines = [
        Line((name,), tuple(line.cells[i] for line in table.lines), name == MEAN)
        for i, name in enumerate(table.columns)
    ]
    return replace(table, heads=("Language",), columns=columns, lines=tuple(lines))


def _apart(before: Arm, arm: Arm, arms: Sequence[Arm]) -> bool:
    """Whether a rule separates two lines: after zero-shot, and around a learner with several lines."""
    several = [sum(one.learner == other.learner for other in arms) > 1 for one in (before, arm)]
    return before.zero_shot != arm.zero_shot or (before.learner != arm.learner and any(several))
