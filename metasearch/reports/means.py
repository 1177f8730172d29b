"""Means of the scores of an arm, as the tables show them.

Seeds are averaged first, within a fold; then folds. The standard deviation is that of the folds' means: how much they
differ with the data they are tested and trained on. Where a study has one fold, it is that of the seeds' means.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from metasearch.study import paired
from metasearch.study.arms import Arm
from metasearch.study.compare import over_folds
from metasearch.study.statistics.summary import Summary
from metasearch.study.study import Study

Key = tuple[str, str]
"""Language of the questions and of the candidates."""


@dataclass(frozen=True)
class What:
    """Which scores are meant.

    Attributes:
        measure: such as `map@20`.
        pool: such as `multilingual`.
        split: `test` or `dev`.
    """

    measure: str
    pool: str
    split: str = "test"

    def __str__(self) -> str:
        """Return what a title says of it: `map@20, test, multilingual pool`."""
        pool = {"pairs": "", "both": ", both directions"}.get(self.pool, f", {self.pool} pool")
        pool = f", {self.pool}" if self.pool in ("xx-en", "en-xx") else pool
        return f"{self.measure}, {self.split}{pool}"


def by_fold(study: Study, arm: Arm, what: What) -> dict[int, dict[Key, float]]:
    """Return fold → language and candidate language → value, averaged over the seeds that the arm has there."""
    return {
        fold: _averaged(each.values(what.measure, what.pool, what.split) for each in runs)
        for fold, runs in paired.by_fold(study, arm, what.measure, what.pool, what.split).items()
    }


def by_language(study: Study, arm: Arm, what: What) -> dict[Key, float]:
    """Return language and candidate language → value, averaged over seeds, then over folds."""
    return _averaged(by_fold(study, arm, what).values())


def over_languages(study: Study, arm: Arm, what: What) -> Summary | None:
    """Return the mean over languages, seeds and folds, and its spread; None where the arm has no such scores."""
    groups = list(paired.by_fold(study, arm, what.measure, what.pool, what.split).values())
    if not groups:
        return None
    found = over_folds(groups, what.measure, what.pool, what.split)
    # The spread over the seeds of an only fold must not stand among spreads over folds.
    return replace(found, sd=None) if len(groups) == 1 < len(study.folds) else found


def taken_over(study: Study, arms: Sequence[Arm], what: What) -> list[str]:
    """Return what means and spreads of a table are taken over, one sentence each; what an arm lacks is named."""
    have = {arm: sorted(by_fold(study, arm, what)) for arm in arms}
    folds = sorted({fold for found in have.values() for fold in found})
    seeds = sorted({scored.seed for arm in arms for scored in study.of(arm)})
    if len(folds) > 1:
        first = " (the seeds of a fold averaged first)" if len(seeds) > 1 else ""
        said = [f"Mean ± sample standard deviation over {len(folds)} folds{first}."]
    elif len(seeds) > 1 and len(study.folds) == 1:
        said = [f"Mean ± sample standard deviation over {len(seeds)} seeds on fold {_listed(folds)}."]
    else:
        each = f"one seed ({_listed(seeds)})" if len(seeds) == 1 else f"the mean over {len(seeds)} seeds"
        said = [f"One fold ({_listed(folds)}) and {each}: nothing is said of the spread."]
    lacking = [
        f"{arm.label} has {len(found)} of {len(folds)} folds (not {_listed(set(folds) - set(found))})"
        for arm, found in have.items()
        if found != folds
    ]
    if lacking:
        said.append(f"{'; '.join(lacking)}. Other folds have other questions, so it is ranked with none.")
    return said + _lacking_seeds(study, arms, seeds)


def complete(study: Study, arms: Sequence[Arm], what: What) -> set[Arm]:
    """Return the arms that have every fold that any of them has: only their means are over the same questions."""
    have = {arm: set(by_fold(study, arm, what)) for arm in arms}
    folds = {fold for found in have.values() for fold in found}
    return {arm for arm, found in have.items() if found == folds and folds}


def _lacking_seeds(study: Study, arms: Sequence[Arm], seeds: Sequence[int]) -> list[str]:
    """Name the arms that have fewer seeds on a fold; an encoder as it is has one, unless it is made from a seed."""
    said = []
    for arm in arms:
        folds: dict[int, list[int]] = {}
        for scored in study.of(arm):
            folds.setdefault(scored.fold, []).append(scored.seed)
        short = [f"{len(own)} on fold {fold}" for fold, own in sorted(folds.items()) if len(own) < len(seeds)]
        if short and not arm.zero_shot:
            said.append(f"{arm.label} has fewer than {len(seeds)} seeds: {', '.join(short)}.")
    return said


def _averaged(found: Iterable[Mapping[Key, float]]) -> dict[Key, float]:
    values: dict[Key, list[float]] = {}
    for each in found:
        for key, value in each.items():
            values.setdefault(key, []).append(value)
    return {key: fmean(each) for key, each in values.items()}


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
