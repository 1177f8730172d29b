"""Tables of a comparison, and the notes that say what its figures are."""

from dataclasses import asdict, replace
from typing import Any

from metasearch.reports.table import Cell, Line, Table
from metasearch.study.compare import Compared, Comparison
from metasearch.study.statistics.bootstrap import Interval

_TESTS = ("t", "p", "p (Holm)", "d_z", "better in")


def comparison_table(comparison: Comparison) -> Table:
    """Return a line for each arm: both means, difference, interval, paired t-test, effect size and languages won."""
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
    """Return a line for each arm and language: both means, difference and interval."""
    return Table(
        key="comparison-languages",
        title=f"{_title(comparison)}: difference from {comparison.baseline.label} by language",
        heads=("learner", "language"),
        columns=_columns(comparison),
        lines=tuple(
            Line(
                (each.arm.label, language),
                (
                    Cell(own.value),
                    Cell(own.baseline),
                    _signed(own.difference, "*" * own.interval.excludes(0.0)),
                    *_ends(own.interval),
                ),
                rule=place == 0 and each is not comparison.arms[0],
            )
            for each in comparison.arms
            for place, (language, own) in enumerate(each.languages.items())
        ),
        notes=(
            f"*: the {percent(comparison.level)} interval excludes 0. Not corrected for the number of lines: of "
            f"{_one_in(comparison.level)} without any difference one is expected to be marked.",
        ),
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


def mark_note(comparison: Comparison) -> str:
    """Return what the marks are, in short."""
    return (
        f"* the {percent(comparison.level)} interval of the difference from {comparison.baseline.label} excludes 0 "
        "(paired bootstrap over questions); † Holm-adjusted p of the paired t-test over fold × language means is "
        f"below {1 - comparison.level:.3g}."
    )


def comparison_notes(comparison: Comparison) -> tuple[str, ...]:
    """Return what the figures and marks are, what they do not say, and what is missing: a sentence or two each."""
    alpha, many = f"{1 - comparison.level:.3g}", len(comparison.arms)
    pairs = sorted({each.test.n for each in comparison.arms})
    counts = " to ".join(map(str, dict.fromkeys((pairs[0], pairs[-1]))))
    several = f" Not corrected for the number of learners: of {_one_in(comparison.level)} without any difference one "
    several += "is expected to be marked."
    intervals = [i for each in comparison.arms for i in (each.interval, *(d.interval for d in each.languages.values()))]
    lost = max(interval.undefined for interval in intervals)
    return (
        f"{_over(comparison)} Better in: languages on which the learner is above {comparison.baseline.label}.",
        f"*: the {percent(comparison.level)} interval excludes 0 (paired bootstrap, percentiles of "
        f"{comparison.resamples:,} resamples, seed {comparison.seed}). Questions are resampled within their fold, each "
        f"together with its translations; those of one article count as independent.{several if many > 1 else ''}",
        f"†: p (Holm) is below {alpha}: a two-sided paired t-test over {counts} fold × language means, corrected for "
        f"{many} {'comparison' if many == 1 else 'comparisons'}. d_z: mean difference / its standard deviation over "
        "these means.",
        "Trust * before †: fold × language means are not independent, since languages are translations of the same "
        "questions and folds share training data, so p may be too small. * takes the trained models as they are: it "
        "does not say what training with other seeds would change.",
        *([f"Up to {lost} resamples on which a figure is undefined were left out."] if lost else []),
        *comparison.missing,
    )


def _over(comparison: Comparison) -> str:
    """Return what a figure is the mean over."""
    folds = {each.folds for each in comparison.arms}
    over = "the folds that both have"
    if len(folds) == 1:
        (own,) = folds
        over = f"{'fold' if len(own) == 1 else 'folds'} {', '.join(map(str, own))}"
    spreads = {each.value.over for each in comparison.arms if each.value.sd is not None}
    deviation = f"; ±: standard deviation over {' or '.join(sorted(spreads))} (n - 1)" if spreads else ""
    seeds = ", seeds averaged first" if any(len(each.seeds) > 1 for each in comparison.arms) else ""
    return f"Mean over languages, then over {over}{seeds}{deviation}."


def _title(comparison: Comparison) -> str:
    return f"{comparison.measure} on {comparison.task} ({comparison.pool}, test)"


def _columns(comparison: Comparison) -> tuple[str, ...]:
    return comparison.measure, comparison.baseline.label, "difference", f"{percent(comparison.level)} from", "to"


def _figures(each: Compared) -> tuple[Cell, ...]:
    return (
        Cell(each.value.mean, each.value.sd),
        Cell(each.baseline.mean, each.baseline.sd),
        _signed(each.difference, each.mark),
        *_ends(each.interval),
        _number(each.test.t, "+z.2f"),
        _number(each.test.p, ".4f"),
        _number(each.adjusted, ".4f"),
        _number(each.test.effect, "+z.2f"),
        Cell(text=f"{each.wins} of {len(each.languages)}"),
    )


def _ends(interval: Interval) -> tuple[Cell, Cell]:
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


def percent(level: float) -> str:
    """Return a level as it is printed: `95%`."""
    return f"{100 * level:.4g}%"


def _one_in(level: float) -> int:
    """Return of how many true null hypotheses one is rejected by intervals of a level, in the mean."""
    return round(1 / (1 - level))
