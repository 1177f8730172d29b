"""Tables of a comparison: a line for each arm, and for each arm and language."""

from dataclasses import asdict, replace
from typing import Any

from metasearch.reports.comparison_notes import comparison_notes, language_note, percent
from metasearch.reports.table import Cell, Line, Table
from metasearch.study.compared import Compared, Comparison, Difference
from metasearch.study.statistics.bootstrap import Interval
from metasearch.study.statistics.folds import TrainingInterval

_TESTS = ("p", "p (Holm)", "folds p", "I²", "better in", "papers' t", "papers' p", "papers' d_z")


def comparison_table(comparison: Comparison) -> Table:
    """Return a line for each arm: means, difference, both intervals, p-values, folds, and the papers' t-test."""
    return Table(
        key="comparison",
        title=f"{_title(comparison)}: difference from {comparison.baseline.label}",
        heads=("learner",),
        columns=(*_columns(comparison), *_TESTS),
        lines=tuple(Line((each.arm.label,), _figures(each)) for each in comparison.arms),
        notes=comparison_notes(comparison),
        unit="× 100",
    )


def language_table(comparison: Comparison) -> Table:
    """Return a line for each arm and language: both means, difference and both intervals."""
    return Table(
        key="comparison-languages",
        title=f"{_title(comparison)}: difference from {comparison.baseline.label} by language",
        heads=("learner", "language"),
        columns=_columns(comparison),
        lines=tuple(
            Line(
                (each.arm.label, language),
                (Cell(own.value), Cell(own.baseline), _signed(own.difference, own.mark), *_both(own)),
                rule=place == 0 and each is not comparison.arms[0],
            )
            for each in comparison.arms
            for place, (language, own) in enumerate(each.languages.items())
        ),
        notes=(language_note(comparison),),
        unit="× 100",
    )


def whole_table(comparison: Comparison) -> Table:
    """Return both tables as one, for files that hold one table; the means over languages are the lines `mean`."""
    whole, languages = comparison_table(comparison), language_table(comparison)
    lines = [Line((*line.heads, "mean"), line.cells) for line in whole.lines]
    lines += [Line(line.heads, (*line.cells, *[Cell()] * len(_TESTS))) for line in languages.lines]
    return replace(whole, heads=languages.heads, lines=tuple(lines))


def as_tree(comparison: Comparison) -> dict[str, Any]:
    """Return everything as what JSON can hold, in full precision; None where something is undefined."""
    arms = [
        {
            **asdict(each.arm),
            **{key: value for key, value in asdict(each).items() if key not in ("arm", "level")},
            "difference": each.difference,
            "mark": each.mark,
            "wins": each.wins,
            "languages": {
                language: {**asdict(own), "difference": own.difference} for language, own in each.languages.items()
            },
        }
        for each in comparison.arms
    ]
    return {**asdict(comparison), "arms": arms, "notes": comparison_notes(comparison)}


def _title(comparison: Comparison) -> str:
    return f"{comparison.measure} on {comparison.task} ({comparison.pool}, test)"


def _columns(comparison: Comparison) -> tuple[str, ...]:
    ends = f"{percent(comparison.level)} from", "to", "these models from", "these models to"
    return comparison.measure, comparison.baseline.label, "difference", *ends


def _figures(each: Compared) -> tuple[Cell, ...]:
    folds = each.heterogeneity
    return (
        Cell(each.value.mean, each.value.sd),
        Cell(each.baseline.mean, each.baseline.sd),
        _signed(each.difference, each.mark),
        *_both(each),
        _number(each.training.p if each.training else None, ".4f"),
        _number(each.holm, ".4f"),
        _number(folds.p if folds else None, ".4f"),
        Cell(folds.i2, text=f"{100 * folds.i2:.0f} %") if folds else _number(None, ""),
        Cell(text=f"{each.wins} of {len(each.languages)}"),
        _number(each.test.t, "+z.2f"),
        _number(each.test.p, ".4f"),
        _number(each.test.effect, "+z.2f"),
    )


def _both(each: Compared | Difference) -> tuple[Cell, ...]:
    return *_ends(each.training), *_ends(each.interval)


def _ends(interval: Interval | TrainingInterval | None) -> tuple[Cell, Cell]:
    if interval is None:
        return Cell(text="–"), Cell(text="–")
    low, high = (Cell(text="undefined") if end is None else _signed(end) for end in (interval.low, interval.high))
    return low, high


def _signed(value: float, mark: str = "") -> Cell:
    return Cell(value, mark=mark, text=f"{100 * value:+z.2f}")


def _number(value: float | None, how: str) -> Cell:
    """Return a figure that is not times 100; it is shown rounded, and kept as it is."""
    if value is None:
        return Cell(text="–")
    # Four decimals would print a small probability as 0.
    small = how == ".4f" and value < 0.0001
    return Cell(value, text="<0.0001" if small else format(value, how))
