"""Learners compared with a baseline: the table, its notes, and the verdict in words."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from metasearch.evaluation.report.formats import minus
from metasearch.evaluation.report.main_table import complete, over_languages
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.statistics.jackknife import Interval
from metasearch.evaluation.study.compare import ArmComparison, Comparison, Difference
from metasearch.evaluation.study.study import Arm, ScoreSelection, Study

_FEW_ARTICLES = 20
"""Articles on which two arms must differ for an interval of fixed models that can be trusted near scores of 0 or 1."""
_SOURCES = {
    "folds": "other folds, seeds and questions",
    "questions": "other folds of questions",
    "seeds and questions": "other seeds and questions",
    "folds and seeds": "other folds and seeds",
}
"""What a main interval is over → what a retraining would change."""


def comparison_notes(comparison: Comparison) -> tuple[str, ...]:
    """Return notes on figures, marks and missing data, one or two sentences each."""
    arms = comparison.arms
    notes = [
        f"{_over(comparison)} Better in: languages in which the learner is above {comparison.reference}.",
        mark_note(comparison),
    ]
    if any(each.training for each in arms):
        notes.append(
            "The first interval is Student's t over fold means, averaged over seeds. It does not account for training "
            "articles that folds share. p (Holm) is corrected for the number of learners."
        )
    if without := [each.arm.label for each in arms if each.training is None]:
        notes.append(f"{', '.join(without)}: nothing was trained twice, so there is no interval over retraining.")
    notes.append(
        f"Fixed models: {percent(comparison.level)} interval of the trained models over other test questions "
        "(Student's t over the articles of each fold). Retraining is not in it."
    )
    if few := [f"{each.arm.label} {each.differing}" for each in arms if 0 < each.differing < _FEW_ARTICLES]:
        notes.append(
            f"Fixed models: articles with a difference: {', '.join(few)}. With fewer than {_FEW_ARTICLES}, do not "
            "trust the interval if most scores are near 0 or 1: it can miss the true difference five times too often."
        )
    return (*notes, *comparison.missing)


def mark_note(comparison: Comparison) -> str:
    """Return what the marks mean, in short."""
    interval = f"the {percent(comparison.level)} interval of the difference from {comparison.reference}"
    parts = []
    if any(each.training for each in comparison.arms):
        parts.append(f"* {interval} over {_sources(comparison)} excludes 0")
        parts.append(f"† its Holm-adjusted p is below {1 - comparison.level:.3g}")
    if not all(each.training for each in comparison.arms):
        parts.append(f"° {interval} excludes 0 for fixed models, without retraining")
    return f"{'; '.join(parts)}."


def language_note(comparison: Comparison) -> str:
    """Return the meaning of marks on languages."""
    mark, of = ("*", "") if any(each.training for each in comparison.arms) else ("°", " of fixed models")
    return f"{mark}: the {percent(comparison.level)} interval{of} excludes 0, not corrected for the number of lines."


def percent(level: float) -> str:
    """Return a formatted level: `95%`."""
    return f"{100 * level:.4g}%"


def _sources(comparison: Comparison) -> str:
    return " or ".join(dict.fromkeys(_SOURCES[each.training.over] for each in comparison.arms if each.training))


def _over(comparison: Comparison) -> str:
    folds = {each.folds for each in comparison.arms}
    own = min(folds)
    over = "the folds that both have" if len(folds) > 1 else f"fold{'s' * (len(own) > 1)} {', '.join(map(str, own))}"
    spreads = {each.value.over for each in comparison.arms if each.value.sd is not None}
    deviation = f"; ±: standard deviation over {' or '.join(sorted(spreads))} (n - 1)" if spreads else ""
    return f"Mean over languages, then over seeds, then over {over}{deviation}."


# Tables of a comparison: a line for each arm, and for each arm and language.


def comparison_table(comparison: Comparison) -> Table:
    """Return a line for each arm: means, difference, both intervals and p-values."""
    return Table(
        key="comparison",
        title=f"{_title(comparison)}: difference from {comparison.reference}",
        heads=("learner",),
        columns=(*_columns(comparison), "p", "p (Holm)", "better in"),
        lines=tuple(Line((each.arm.label,), _figures(each)) for each in comparison.arms),
        notes=comparison_notes(comparison),
        unit="× 100",
    )


def language_table(comparison: Comparison) -> Table:
    """Return a line for each arm and language: both means, difference and both intervals."""
    return Table(
        key="comparison-languages",
        title=f"{_title(comparison)}: difference from {comparison.reference} by language",
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
    ends = f"{percent(comparison.level)} from", "to", "fixed models from", "fixed models to"
    return comparison.measure, comparison.reference, "difference", *ends


def _figures(each: ArmComparison) -> tuple[Cell, ...]:
    return (
        Cell(each.value.mean, each.value.sd),
        Cell(each.baseline.mean, each.baseline.sd),
        _signed(each.difference, each.mark),
        *_both(each),
        _probability(each.training.p if each.training else None),
        _probability(each.holm),
        Cell(text=f"{each.wins} of {len(each.languages)}"),
    )


def _both(each: ArmComparison | Difference) -> tuple[Cell, ...]:
    return *_ends(each.training), *_ends(each.interval)


def _ends(interval: Interval | None) -> tuple[Cell, Cell]:
    if interval is None:
        return Cell(text="–"), Cell(text="–")
    low, high = (Cell(text="undefined") if end is None else _signed(end) for end in (interval.low, interval.high))
    return low, high


def _signed(value: float, mark: str = "") -> Cell:
    return Cell(value, mark=mark, text=f"{100 * value:+z.2f}")


def _probability(value: float | None) -> Cell:
    """Return a p-value, rounded for display but stored in full."""
    if value is None:
        return Cell(text="–")
    # Four decimals would print a small probability as 0.
    return Cell(value, text="<0.0001" if value < 0.0001 else f"{value:.4f}")


# The results of a study in words: the best learner, and whether the difference is significant.


def verdict(study: Study, selection: ScoreSelection, comparison: Comparison | None) -> tuple[str, ...]:
    """Return sentences on the ranking, and on the difference of the best learner from the baseline."""
    ranked = complete(study, study.arms, selection)
    means = {arm: over_languages(study, arm, selection) for arm in study.arms if arm in ranked}
    known = {arm: mean.mean for arm, mean in means.items() if mean}
    sentences = [_ranking(known, selection), *_limits(study)]
    others = [each for each in comparison.arms if each.arm in known] if comparison else []
    if comparison and others:
        sentences.append(difference(max(others, key=lambda each: known[each.arm])))
    return tuple(sentences)


def difference(each: ArmComparison) -> str:
    """Return a sentence on a difference from the baseline, with its main interval and significance."""
    text = f"{each.arm.label} − {each.against.label}: {_signed_text(each.difference)}"
    interval = each.main
    if interval.low is not None and interval.high is not None:
        over = f"over {_SOURCES[each.training.over]}" if each.training else "for fixed models"
        text += f", {percent(each.level)} interval {over} {_signed_text(interval.low)} to {_signed_text(interval.high)}"
        text += ", significant" if interval.excludes(0.0) else ", not significant"
    if each.holm is not None:
        text += f"; Holm-adjusted p {'< 0.0001' if each.holm < 0.0001 else f'= {each.holm:.2g}'}"
    if each.training is None:
        text += "; the effect of retraining is not known"
    return f"{text}; better in {each.wins} of {len(each.languages)} languages."


def _ranking(means: Mapping[Arm, float], selection: ScoreSelection) -> str:
    if not means:
        return f"No learner has scores ({selection}) on every fold, so there is no ranking."
    falling = sorted(means.items(), key=lambda item: -item[1])
    ranking = ", ".join(f"{arm.label} {100 * mean:z.2f}" for arm, mean in falling)
    return f"Mean {selection.measure} on the test data (× 100), highest first: {ranking}."


def _limits(study: Study) -> list[str]:
    sentences = []
    if len(study.folds) == 1:
        sentences.append("There is one fold: variation between folds is not known.")
    if len(study.seeds) == 1 and any(not arm.zero_shot for arm in study.arms):
        apart = " apart from folds" if len(study.folds) > 1 else ""
        sentences.append(f"There is one seed: variation between seeds{apart} is not known.")
    return sentences


def _signed_text(value: float) -> str:
    return minus(f"{100 * value:+z.2f}")
