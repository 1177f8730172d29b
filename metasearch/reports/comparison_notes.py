"""What the figures and marks of a comparison are, and what they do not say, in sentences."""

from metasearch.study.compared import Compared, Comparison
from metasearch.study.statistics.power import MOST, SeedsNeeded

UNAVAILABLE = (
    "nothing was trained twice, so that no interval says what training again would change: ° goes by these models"
)


def comparison_notes(comparison: Comparison) -> tuple[str, ...]:
    """Return what the figures and marks are, what they do not say, and what is missing: a sentence or two each."""
    intervals = [i for each in comparison.arms for i in (each.interval, *(d.interval for d in each.languages.values()))]
    lost = max(interval.undefined for interval in intervals)
    return (
        f"{_over(comparison)} Better in: languages on which the learner is above {comparison.baseline.label}.",
        *_training(comparison),
        _models(comparison),
        *_folds(comparison),
        _papers(comparison),
        *needed_sentences(comparison),
        *([f"Up to {lost} resamples on which a figure is undefined were left out."] if lost else []),
        *comparison.missing,
    )


def mark_note(comparison: Comparison) -> str:
    """Return what the marks are, in short."""
    against = f"of the difference from {comparison.baseline.label}"
    trained = any(each.training for each in comparison.arms)
    parts = []
    if trained:
        alpha = f"{1 - comparison.level:.3g}"
        parts.append(
            f"* the {percent(comparison.level)} interval {against} over {_whats(comparison)} excludes 0; † its "
            f"Holm-adjusted p is below {alpha}"
        )
    if not all(each.training for each in comparison.arms):
        parts.append(
            f"° the {percent(comparison.level)} interval {against} excludes 0 for these models, not trained again"
        )
    return f"{'; '.join(parts)}."


def language_note(comparison: Comparison) -> str:
    """Return what the marks of languages are."""
    which = "*" if any(each.training for each in comparison.arms) else "°"
    return (
        f"{which}: the {percent(comparison.level)} interval{' of these models' * (which == '°')} excludes 0. Not "
        f"corrected for the number of lines: of {_one_in(comparison.level)} without any difference one is expected to "
        "be marked."
    )


def needed_sentences(comparison: Comparison) -> list[str]:
    """Return for each arm how many seeds a difference needs to be told apart, from what the study has seen."""
    return [_needed(each, each.needed, comparison) for each in comparison.arms if each.needed]


def percent(level: float) -> str:
    """Return a level as it is printed: `95%`."""
    return f"{100 * level:.4g}%"


def _training(comparison: Comparison) -> list[str]:
    """Say what the main interval is, or why there is none."""
    without = [each.arm.label for each in comparison.arms if each.training is None]
    notes = []
    if len(without) < len(comparison.arms):
        several = ""
        if comparison.arms[1:]:
            several = (
                f" Not corrected for the number of learners: of {_one_in(comparison.level)} without any difference one "
                f"is expected to be marked; † is: p (Holm) over {len(comparison.arms)} comparisons is below "
                f"{1 - comparison.level:.3g}."
            )
        notes.append(
            f"*: the {percent(comparison.level)} interval excludes 0; it says what {_whats(comparison)} would change "
            "(Student's t over the means of folds, seeds averaged first). That folds share training articles is not "
            f"in it.{several}"
        )
    if without:
        notes.append(f"{', '.join(without)}: {UNAVAILABLE}.")
    return notes


def _models(comparison: Comparison) -> str:
    return (
        f"These models: the {percent(comparison.level)} interval of the trained models as they are (paired bootstrap, "
        f"percentiles of {comparison.resamples:,} resamples, seed {comparison.seed}). Articles are resampled within "
        "their fold, each with its questions and their translations; what training again would change is not in it."
    )


def _folds(comparison: Comparison) -> list[str]:
    """Say how the folds differ, of the arms on which they do."""
    if not any(each.heterogeneity for each in comparison.arms):
        return []
    alone = all(each.components is None or each.components.seeds is None for each in comparison.arms)
    seeds = " or, since each has one seed, that seed does" if alone else ""
    ranges = "; ".join(
        f"{each.arm.label} {100 * each.heterogeneity.low:+z.2f} to {100 * each.heterogeneity.high:+z.2f}"
        for each in comparison.arms
        if each.heterogeneity
    )
    return [
        f"Folds p: Cochran's Q, whether folds differ by more than their questions{'' if alone else ' and seeds'} "
        f"explain, because of what the fold is{seeds}; I²: share of their spread beyond that. By fold: {ranges}."
    ]


def _papers(comparison: Comparison) -> str:
    pairs = sorted({each.test.n for each in comparison.arms})
    counts = " to ".join(map(str, dict.fromkeys((pairs[0], pairs[-1]))))
    return (
        f"Papers': a two-sided paired t-test over {counts} fold × language means, as papers report it; d_z: mean "
        "difference / its standard deviation over them. They are not independent, since languages are translations of "
        "the same questions scored by the same models: it rejects far too often, and no mark is made of it."
    )


def _needed(each: Compared, needed: SeedsNeeded, comparison: Comparison) -> str:
    folds = "the one fold" if len(each.folds) == 1 else f"these {len(each.folds)} folds"
    what = f"{each.arm.label}: a difference of {100 * needed.difference:.4g} on {folds}"
    seen = "" if needed.certain else "at least "
    chance = f"{percent(needed.power)} power at {1 - comparison.level:.3g}"
    if needed.fewest is not None:
        why = "" if needed.certain else ", if all that training changes is the seed's doing; one seed cannot tell"
        return f"{what} needs {seen}{needed.fewest} {'seed' if needed.fewest == 1 else 'seeds'} ({chance}){why}."
    even = "" if needed.certain else ", even if all that training changes is the seed's doing"
    told = "nothing smaller than 100" if needed.smallest is None else f"{100 * needed.smallest:.2g} or more"
    return (
        f"{what} cannot be told apart by more seeds ({chance}): folds and questions alone vary too much. {MOST} seeds "
        f"would show {told}{even}."
    )


def _whats(comparison: Comparison) -> str:
    """Return what the main intervals are over, in words."""
    words = {
        "folds": "training again on other folds with other seeds, and other questions,",
        "seeds and questions": "other seeds and other questions on this fold",
        "folds and seeds": "training again with other seeds, and other folds,",
    }
    return " or ".join(dict.fromkeys(words[each.training.over] for each in comparison.arms if each.training))


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


def _one_in(level: float) -> int:
    """Return of how many true null hypotheses one is rejected by intervals of a level, in the mean."""
    return round(1 / (1 - level))
