"""Compares the arms of a study with a baseline: differences, their intervals, tests and effect sizes.

Three answers are given to "is it different?", and kept apart:

- The main one, `training`: the interval over what training again on other folds with other seeds, and testing on other
  articles and questions, would change (`statistics.folds`). `*` is where it excludes 0, and `†` where its p-value does
  after Holm's correction for the number of arms.
- *These models*, `interval`: the paired bootstrap over articles, each with its questions and their translations, within
  their folds, and both arms scored on the same resamples. It says what other questions would change for the models that
  were trained, and is narrower. Only where nothing was trained twice it marks, with another sign (`°`).
- The paired t-test over fold × language means, as papers report it. Its n counts languages as if they were independent,
  but they are translations of the same questions scored by the same models, so that it rejects a true null several
  times as often as it says. No mark and no verdict is made of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from metasearch.errors import ConfigError
from metasearch.study.arms import Arm
from metasearch.study.compared import Compared, Comparison, Difference
from metasearch.study.fold_differences import crossed, fold_differences
from metasearch.study.paired import Pairing, Runs, pair
from metasearch.study.resampled import Figure, difference, figures
from metasearch.study.statistics import bootstrap
from metasearch.study.statistics.folds import Components, components, heterogeneity, training_interval
from metasearch.study.statistics.paired import holm, paired_test
from metasearch.study.statistics.power import SeedsNeeded, seeds_needed
from metasearch.study.statistics.summary import Summary, summary
from metasearch.study.study import ScoreSelection, Study, abridged

DIFFERENCE = 0.003
"""Difference whose seeds are planned: 0.3 points."""


def compare(
    study: Study,
    baseline: Arm | None = None,
    measure: str | None = None,
    pool: str | None = None,
    level: float = bootstrap.LEVEL,
    resamples: int = bootstrap.RESAMPLES,
    seed: int = 0,
    planned: float = DIFFERENCE,
) -> Comparison:
    """Return every arm of a study beside the baseline, on the folds and seeds that both have (`paired.pair`).

    A figure is the mean over folds of the mean over languages; seeds are averaged first, because they are no new data.

    Args:
        study: study with the arms.
        baseline: arm to compare with; by default zero-shot, or the first arm.
        measure: name of the measure; by default the task's.
        pool: name of the pool; by default the task's.
        level: level of the intervals.
        resamples: number of resamples of the bootstrap.
        seed: seed of the resamples; the same seed gives the same bits.
        planned: difference of which is said how many seeds it needs, not times 100.

    Raises:
        ConfigError: there is nothing to compare with, or no arm shares a fold with the baseline; or level, resamples,
            measure, pool or planned difference is wrong.
        RunFolderError: a run has no results of its questions.
        DataError: they are damaged or do not belong to its scores.
    """
    bootstrap.check(level, resamples)
    if not 0 < planned < np.inf:
        raise ConfigError(f"difference {100 * planned:g}: a difference to plan for is above 0, such as 0.3 points")
    selection = study.select(measure, pool)
    baseline = baseline or study.baseline
    pairings, missing = _pairings(study, baseline, selection)
    languages = study.languages_of(selection)
    groups = (group for pairing in pairings for both in pairing.runs.values() for group in both)
    resampled = figures(groups, languages, selection, resamples, seed)
    arms = [_compared(pairing, baseline, resampled, languages, selection, level, planned) for pairing in pairings]
    # After all tests: an adjusted p-value depends on those of all arms.
    adjusted = holm([each.training.p if each.training else None for each in arms])
    arms = [replace(each, holm=p) for each, p in zip(arms, adjusted, strict=True)]
    asked = selection.measure, selection.pool, level, resamples, seed
    notes = (*study.missing, *missing, *_questions_for_articles(resampled))
    return Comparison(study.name, study.task, baseline, *asked, tuple(arms), notes)


def _questions_for_articles(resampled: Mapping[Runs, Figure]) -> list[str]:
    """Return a sentence for each reason why questions stand for articles, with the folds on which they do."""
    folds: dict[str, set[int]] = {}
    for (first, *_), each in resampled.items():
        if each.unknown:
            folds.setdefault(each.unknown, set()).add(first.fold)
    return [
        f"Fold {', '.join(map(str, sorted(own)))}: {why}, so that each question counts as an article of its own."
        for why, own in folds.items()
    ]


def _pairings(study: Study, baseline: Arm, selection: ScoreSelection) -> tuple[list[Pairing], list[str]]:
    others = [arm for arm in study.arms if arm != baseline]
    if not others:
        raise ConfigError(
            f"{study.name}: there is only {baseline.label}, and nothing to compare it with{abridged(study.missing)}"
        )
    pairings, failed = [], []
    for arm in others:
        try:
            pairings.append(pair(study, arm, baseline, selection))
        except ConfigError as error:
            # One arm without a common fold does not stop the others; the comparison names it as missing.
            failed.append(str(error))
    if not pairings:
        raise ConfigError(f"{study.name}: nothing can be compared. {' '.join(failed)}")
    return pairings, [*(note for pairing in pairings for note in pairing.notes), *failed]


def _compared(
    pairing: Pairing,
    baseline: Arm,
    resampled: Mapping[Runs, Figure],
    languages: Sequence[str],
    selection: ScoreSelection,
    level: float,
    planned: float,
) -> Compared:
    """Return an arm beside the baseline, its p-value not yet adjusted."""
    pairs = list(pairing.runs.values())
    own, other, differences = difference(pairs, resampled)
    intervals = [bootstrap.interval(column, level) for column in differences.T]
    means = [np.concatenate([resampled[each[side]].observed[:-1] for each in pairs]) for side in (0, 1)]
    there = ~np.isnan(means[0])  # a fold may lack a language
    by_fold = fold_differences(pairing, resampled, languages, selection)
    shared = crossed(pairing, baseline)
    training = [training_interval(folds, level, shared) if folds else None for folds in by_fold]
    found = None if shared else components(by_fold[-1])
    return Compared(
        arm=pairing.arm,
        folds=tuple(pairing.runs),
        seeds=tuple(sorted({each.seed for group, _ in pairs for each in group})),
        baseline=over_folds([group for _, group in pairs], selection),
        value=over_folds([group for group, _ in pairs], selection),
        training=training[-1],
        holm=None,
        interval=intervals[-1],
        by_fold={fold: each.mean for fold, each in zip(pairing.runs, by_fold[-1], strict=True)},
        heterogeneity=heterogeneity(by_fold[-1], shared),
        components=found,
        needed=_needed(pairing, baseline, len(pairs), found, level, planned),
        test=paired_test(means[0][there], means[1][there], level),
        languages={
            language: Difference(float(other[i]), float(own[i]), intervals[i], training[i])
            for i, language in enumerate(languages)
            if not np.isnan(own[i])
        },
        level=level,
    )


def _needed(
    pairing: Pairing, baseline: Arm, folds: int, found: Components | None, level: float, planned: float
) -> SeedsNeeded | None:
    trained = pairing.arm.mode is not None or baseline.mode is not None
    return seeds_needed(found, folds, planned, level) if found and trained else None


def over_folds(groups: Sequence[Runs], selection: ScoreSelection) -> Summary:
    """Return the mean over folds of the mean over languages, and its deviation.

    Of each fold a group of runs is given, one for each seed, which are averaged first. So the deviation is that of the
    folds; with one fold it is that of its seeds.
    """
    means = [[fmean(each.values(*selection).values()) for each in group] for group in groups]
    if len(means) == 1 and len(means[0]) > 1:
        return summary(means[0], "seeds")
    return summary([fmean(seeds) for seeds in means], "folds")
