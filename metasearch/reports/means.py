"""Means of the scores of an arm, as the tables show them.

Seeds are averaged first, within a fold; then folds. The standard deviation is that of the folds' means: how much they
differ with the data they are tested and trained on. Where a study has one fold, it is that of the seeds' means.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from metasearch.study.arms import Arm
from metasearch.study.compare import over_folds
from metasearch.study.statistics.summary import Summary
from metasearch.study.study import ScoreSelection, Study

Key = tuple[str, str]
"""Language of the questions and of the candidates."""


def by_fold(study: Study, arm: Arm, selection: ScoreSelection) -> dict[int, dict[Key, float]]:
    """Return fold → language and candidate language → value, averaged over the seeds that the arm has there."""
    folds = study.by_fold(arm, selection)
    return {fold: _averaged(each.values(*selection) for each in runs) for fold, runs in folds.items()}


def by_language(study: Study, arm: Arm, selection: ScoreSelection) -> dict[Key, float]:
    """Return language and candidate language → value, averaged over seeds, then over folds."""
    return _averaged(by_fold(study, arm, selection).values())


def over_languages(study: Study, arm: Arm, selection: ScoreSelection) -> Summary | None:
    """Return the mean over languages, seeds and folds, and its spread; None where the arm has no such scores."""
    groups = list(study.by_fold(arm, selection).values())
    if not groups:
        return None
    mean = over_folds(groups, selection)
    # The spread over the seeds of an only fold must not stand among spreads over folds.
    return replace(mean, sd=None) if len(groups) == 1 < len(study.folds) else mean


def mean_notes(study: Study, arms: Sequence[Arm], selection: ScoreSelection) -> list[str]:
    """Return what the means and spreads of a table are taken over, one sentence each; what an arm lacks is named."""
    have = {arm: sorted(study.by_fold(arm, selection)) for arm in arms}
    folds = sorted({fold for own in have.values() for fold in own})
    seeds = sorted({scored.seed for arm in arms for scored in study.of(arm)})
    if len(folds) > 1:
        first = " (the seeds of a fold averaged first)" if len(seeds) > 1 else ""
        notes = [f"Mean ± sample standard deviation over {len(folds)} folds{first}."]
    elif len(seeds) > 1 and len(study.folds) == 1:
        notes = [f"Mean ± sample standard deviation over {len(seeds)} seeds on fold {_listed(folds)}."]
    else:
        each = f"one seed ({_listed(seeds)})" if len(seeds) == 1 else f"the mean over {len(seeds)} seeds"
        notes = [f"One fold ({_listed(folds)}) and {each}: nothing is said of the spread."]
    lacking = [
        f"{arm.label} has {len(own)} of {len(folds)} folds (not {_listed(set(folds) - set(own))})"
        for arm, own in have.items()
        if own != folds
    ]
    if lacking:
        notes.append(f"{'; '.join(lacking)}. Other folds have other questions, so it is ranked with none.")
    return notes + _lacking_seeds(study, arms, len(seeds))


def complete(study: Study, arms: Sequence[Arm], selection: ScoreSelection) -> set[Arm]:
    """Return the arms that have every fold that any of them has: only their means are over the same questions."""
    have = {arm: set(study.by_fold(arm, selection)) for arm in arms}
    folds = {fold for own in have.values() for fold in own}
    return {arm for arm, own in have.items() if own == folds and folds}


def _lacking_seeds(study: Study, arms: Sequence[Arm], seeds: int) -> list[str]:
    """Name the arms that have fewer seeds on a fold; zero-shot has one, unless the encoder is made from a seed."""
    notes = []
    for arm in arms:
        folds = Counter(scored.fold for scored in study.of(arm))
        short = [f"{count} on fold {fold}" for fold, count in sorted(folds.items()) if count < seeds]
        if short and not arm.zero_shot:
            notes.append(f"{arm.label} has fewer than {seeds} seeds: {', '.join(short)}.")
    return notes


def _averaged(parts: Iterable[Mapping[Key, float]]) -> dict[Key, float]:
    values: dict[Key, list[float]] = defaultdict(list)
    for part in parts:
        for key, value in part.items():
            values[key].append(value)
    return {key: fmean(each) for key, each in values.items()}


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
