"""Charts of scores by language, transfer mode and setting of episodes.

Figures 3 to 6 of the MAML-Align paper: by language, by mode, by sampling of query sets and of negatives.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from metasearch.evaluation.report.formats import minus, slug
from metasearch.evaluation.report.main_table import UNIT, Key, mode_rank, named_columns, over_languages, without_mode
from metasearch.evaluation.report.section import Chart, Inputs, Row, Section
from metasearch.evaluation.statistics.jackknife import Interval
from metasearch.evaluation.statistics.paired import Summary
from metasearch.evaluation.study.read import select_settings
from metasearch.evaluation.study.study import Arm

ORDER = 30
SETTINGS = ("episodes.queries", "episodes.negatives", "episodes.k", "episodes.q", "episodes.n_neg", "labels")
"""Settings of recipes by which scores are drawn; `labels` without a value are all."""

Means = Mapping[str, Mapping[str, Summary | None]]
"""Name of a series → group → mean and spread."""

_SPREAD = "Whiskers: sample standard deviation over folds, or over the seeds of an only fold."


def section(inputs: Inputs) -> Section:
    """Return the charts that follow from the scores, and what each of the others lacks."""
    mode = by_mode(inputs)
    settings = {key: by_setting(inputs, key) for key in SETTINGS}
    missing = [] if mode else ["by transfer mode (no learner has two)"]
    if alike := [key for key, each in settings.items() if each is None]:
        missing.append(f"by {', '.join(alike)} (no two learners differ in one of these alone)")
    found = tuple(each for each in (by_language(inputs), mode, *settings.values()) if each)
    words = (f"Not drawn: {'; '.join(missing)}.",) if missing else ()
    return Section("figures", "Figures", words, charts=found)


def by_language(inputs: Inputs) -> Chart:
    """Return each learner's scores by language; a star marks languages that no training has seen (figure 3)."""
    study, selection = inputs.study, inputs.selection
    folds = {arm: study.by_fold(arm, selection) for arm in study.arms}
    scores = {
        arm: [[each.values(*selection) for each in runs] for runs in own.values()] for arm, own in folds.items() if own
    }
    columns = named_columns(study, (own for each in scores.values() for runs in each for own in runs))
    trained = [run.unseen for run in study.runs if run.unseen]
    unseen = frozenset.intersection(*trained) if trained else frozenset[str]()
    names = {column: f"{name}*" if column[0] in unseen else name for column, name in columns.items()}
    means = {
        arm.label: {name: _of_language(own, column, len(study.folds)) for column, name in names.items()}
        for arm, own in scores.items()
    }
    pairs = "language pair" if selection.pool == "pairs" else "language"
    notes = (f"*: {pairs} without training.", _SPREAD) if unseen & {column[0] for column in columns} else (_SPREAD,)
    return _chart(inputs, "by-language", f"by {pairs}", means, notes)


def _of_language(folds: Sequence[Sequence[Mapping[Key, float]]], column: Key, known: int) -> Summary | None:
    """Return the mean and spread of a language over folds, or over the seeds of the only fold there is."""
    values = [own for runs in folds if (own := [each[column] for each in runs if column in each])]
    if not values:
        return None
    if len(values) == known == 1:
        return Summary.of(values[0], "seeds")
    return Summary.of([sum(own) / len(own) for own in values], "folds")


def by_mode(inputs: Inputs) -> Chart | None:
    """Return each learner's mean score by transfer mode (figure 4); None if no learner has two modes."""
    found: dict[str, dict[str, Arm]] = {}
    for arm in inputs.study.arms:
        if arm.mode:
            found.setdefault(without_mode(arm), {})[arm.mode] = arm
    if not any(len(own) > 1 for own in found.values()):
        return None
    modes = sorted({mode for own in found.values() for mode in own}, key=mode_rank)
    return _chart(inputs, "by-mode", "by transfer mode", _means(inputs, modes, found), (_SPREAD,))


def by_setting(inputs: Inputs, key: str) -> Chart | None:
    """Return mean scores by a setting (figures 5 and 6); None if no two learners differ in it alone."""
    families: dict[Any, dict[str, Arm]] = {}
    for arm in inputs.study.arms:
        if arm.mode:
            settings = dict(select_settings(inputs.study.of(arm)[0].run.config))
            value = settings.pop(f"recipe.{key}", "all")
            same = arm.learner, arm.mode, arm.encoder, arm.source, tuple(sorted(settings.items()))
            families.setdefault(same, {})[value] = arm
    found = {_without(next(iter(own.values())), key): own for own in families.values() if len(own) > 1}
    if not found:
        return None
    values = sorted({value for own in found.values() for value in own}, key=_number)
    means = _means(inputs, values, found)
    return _chart(inputs, f"by-{slug(key)}", f"by {key}", means, (_SPREAD,))


def _means(inputs: Inputs, groups: Sequence[str], found: Mapping[str, Mapping[str, Arm]]) -> Means:
    """Return the mean of each series in each group, behind those before training, which are the same in all groups."""
    plain = {arm.label: dict.fromkeys(groups, arm) for arm in inputs.study.arms if arm.zero_shot}
    return {
        name: {group: over_languages(inputs.study, own[group], inputs.selection) for group in groups if group in own}
        for name, own in {**plain, **found}.items()
    }


def _chart(inputs: Inputs, key: str, by: str, means: Means, notes: Sequence[str]) -> Chart:
    """Return a row for each group and series, whose colour is the place of its interval."""
    groups = dict.fromkeys(group for own in means.values() for group in own)
    rows = [
        Row(f"{group}: {name}", mean.mean, (*(None,) * place, _spread(mean)), minus(_shown(mean)))
        for group in groups
        for place, (name, own) in enumerate(means.items())
        if (mean := own.get(group))
    ]
    title = f"{inputs.study.task}: {inputs.selection}, {by}, {UNIT}"
    return Chart(key, title, tuple(rows), notes=tuple(notes))


def _spread(mean: Summary) -> Interval:
    return Interval(None, None) if mean.sd is None else Interval(mean.mean - mean.sd, mean.mean + mean.sd)


def _shown(mean: Summary) -> str:
    return f"{100 * mean.mean:z.2f}" + ("" if mean.sd is None else f" ± {100 * mean.sd:.2f}")


def _without(arm: Arm, key: str) -> str:
    """Return an arm's label without the value of a setting."""
    return re.sub(rf", {re.escape(key)}=[^,]*", "", arm.label)


def _number(value: str) -> tuple[float, str]:
    """Return the sort key of a value: numbers by size, words after them."""
    return (float(value), "") if value.replace(".", "", 1).isdigit() else (float("inf"), value)
