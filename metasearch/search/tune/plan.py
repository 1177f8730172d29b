"""Which steps and folds fit into a limit of time."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from metasearch.evaluation.report.formats import duration
from metasearch.search.tune.labels import LEAST_FOLDS
from metasearch.search.tune.steps import Step

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """The steps to score, the simplest first, on how many folds.

    `each` has the seconds of a step on one fold, and `alignment` those of the alignment on translations.
    """

    steps: tuple[Step, ...]
    folds: int
    each: Mapping[Step, float]
    alignment: float

    @property
    def seconds(self) -> float:
        """Seconds to score all steps, and to train the most expensive one on all labels and for its control."""
        costs = [self.each[step] for step in self.steps]
        aligned = any(step.aligned for step in self.steps) * self.alignment
        return aligned + self.folds * (sum(costs) + max(costs)) + max(costs)

    def within(self, limit: float) -> "Plan":
        """Return a plan that takes `limit` seconds at most: with fewer folds, then without the most expensive steps."""
        plan = self
        while plan.seconds > limit and plan.folds > LEAST_FOLDS:
            plan = replace(plan, folds=plan.folds - 1)
        if plan.folds < self.folds:
            log.warning("time: %d of %d folds are planned", plan.folds, self.folds)
        while plan.seconds > limit and any(self.each[step] for step in plan.steps[1:]):
            dropped = max(plan.steps[1:], key=self.each.__getitem__)
            plan = replace(plan, steps=tuple(step for step in plan.steps if step != dropped))
            log.warning("time: dropped the step '%s', about %s", dropped, duration(self.folds * self.each[dropped]))
        if plan.seconds > limit:
            log.warning("time: the shortest plan ends about %s after the limit", duration(plan.seconds - limit))
        return plan

    def __str__(self) -> str:
        steps = ", ".join(map(str, self.steps))
        return f"{len(self.steps)} steps ({steps}) on {self.folds} folds: about {duration(self.seconds)}"
