"""The results of a study in words: who wins, is it significant, and does fine-tuning do harm?"""

from collections.abc import Mapping, Sequence

from metasearch.reports.charts.svg import minus
from metasearch.reports.comparison_notes import percent
from metasearch.reports.means import complete, over_languages
from metasearch.study.arms import Arm
from metasearch.study.compared import Compared, Comparison
from metasearch.study.study import ScoreSelection, Study

FINE_TUNE = "fine-tune"


def verdict(study: Study, selection: ScoreSelection, comparison: Comparison | None) -> tuple[str, ...]:
    """Return sentences that say who wins, by how much, whether it is significant, and how fine-tuning does.

    The study has its arms in the order of the report; without a comparison nothing is said of differences.
    """
    ranked = complete(study, study.arms, selection)
    means = {arm: over_languages(study, arm, selection) for arm in study.arms if arm in ranked}
    known = {arm: mean.mean for arm, mean in means.items() if mean}
    sentences = [_winner(known, selection), *_limits(study)]
    if comparison is not None:
        others = [each for each in comparison.arms if each.arm in known]
        sentences += _largest(max(others, key=lambda each: known[each.arm]), comparison) if others else []
        plain = [each for each in comparison.arms if each.arm.learner == FINE_TUNE]
        sentences += [_fine_tuning(each, comparison.baseline) for each in plain if comparison.baseline.zero_shot]
    return tuple(sentences)


def difference(each: Compared, baseline: Arm) -> str:
    """Return a difference from the baseline in a sentence, with its intervals and what they say of it.

    Where nothing was trained twice the interval of these models stands alone, and is called that.
    """
    level = percent(each.level)
    text = f"{each.arm.label} less {baseline.label}: {_signed(each.difference)}"
    models = _ends(each.interval.low, each.interval.high)
    if each.training:
        away = _away(each.training.excludes(0.0))
        text += f", {level} interval over {_OVER[each.training.over]} {_ends(each.training.low, each.training.high)}"
        text += f", {away}"
        if each.holm is not None:
            text += f"; Holm-adjusted p {_p(each.holm)}"
        text += f"; for these models alone {models}" if models else ""
    elif models:
        text += f", {level} interval for these models alone {models}, {_away(each.interval.excludes(0.0))} for them; "
        text += "what training again would change is not known"
    return f"{text}; better in {each.wins} of {len(each.languages)} languages."


_OVER = {
    "folds": "training again (folds, seeds, questions)",
    "seeds and questions": "other seeds and questions on this fold",
    "folds and seeds": "other seeds and folds",
}


def _away(excludes: bool) -> str:
    return "without 0: significant" if excludes else "with 0 in it: not significant"


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{_signed(low)} to {_signed(high)}"


def _largest(each: Compared, comparison: Comparison) -> list[str]:
    """Say how the highest learner differs from the baseline, and, where it was one of several, what that does to it."""
    sentences = [difference(each, comparison.baseline)]
    if comparison.arms[1:]:
        many = len(comparison.arms)
        beside = f"It is the highest of {many} learners compared on the same test data"
        sentences.append(f"{beside}; its interval is not corrected for that{', its p is' * (each.holm is not None)}.")
    return sentences


def _winner(means: Mapping[Arm, float], selection: ScoreSelection) -> str:
    if not means:
        return f"No learner has scores ({selection}) on every fold: nobody is ranked."
    highest = _shown(max(means.values()))
    # By the digits that are shown: what reads as equal is called equal.
    best = [arm.label for arm, mean in means.items() if _shown(mean) == highest]
    falling = sorted(means.items(), key=lambda item: -item[1])
    others = [f"{arm.label} {_shown(mean)}" for arm, mean in falling if arm.label not in best]
    if len(means) == 1:
        return f"{best[0]} has a mean {selection.measure} of {highest} (× 100); there is nothing to rank it with."
    against = f", before {_and(others)}" if others else ""
    verb = "has" if len(best) == 1 else "have"
    return f"{_and(best)} {verb} the highest mean {selection.measure} on the test data: {highest}{against} (× 100)."


def _limits(study: Study) -> list[str]:
    """Say how far the verdict goes, where it does not go far."""
    sentences = []
    if len(study.folds) == 1:
        sentences.append("This is one fold: nothing is said of how it would be with another cut of the data.")
    if len(study.seeds) == 1 and any(not arm.zero_shot for arm in study.arms):
        one = "nothing is said of how it would be if training were repeated"
        several = "what another seed would change is not told from what another fold would"
        sentences.append(f"This is one seed: {one if len(study.folds) == 1 else several}.")
    return sentences


def _fine_tuning(each: Compared, baseline: Arm) -> str:
    """Say whether plain fine-tuning is weaker than zero-shot, as it is in the MAML-Align paper (table 1)."""
    label, by = each.arm.label, _shown(abs(each.difference))
    if not (each.training or each.interval).excludes(0.0):
        return f"Whether {label} is weaker than {baseline.label}, as in the MAML-Align paper, cannot be told from this."
    so = "" if each.training else ", as far as these models go"
    if each.difference < 0:
        return f"{label} is weaker than {baseline.label} by {by}{so}, as plain fine-tuning is in the MAML-Align paper."
    return f"{label} is better than {baseline.label} by {by}{so}; in the MAML-Align paper plain fine-tuning is weaker."


def _shown(value: float) -> str:
    return f"{100 * value:z.2f}"


def _signed(value: float) -> str:
    return minus(f"{100 * value:+z.2f}")


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"= {value:.2g}"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
