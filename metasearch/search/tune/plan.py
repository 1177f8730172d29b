"""Which steps and folds fit into a limit of time."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

from metasearch.data.benchmark import Benchmark
from metasearch.data.records import RetrievalData
from metasearch.evaluation.report.formats import duration
from metasearch.search.tune.labels import LEAST_FOLDS
from metasearch.search.tune.steps import FINE_TUNE, Step
from metasearch.search.tune.training import prepare

log = logging.getLogger(__name__)

_BACKWARD, _INNER = 3.0, 9.0
"""Texts that are encoded in the time of training on one: in fine-tuning, and in a meta-learner with its inner steps."""
_ALIGNMENT = 320 * 64 * 4
"""Texts of an alignment: steps, pairs, and the passes over the two sides of a pair."""


@dataclass(frozen=True)
class Plan:
    """The steps to score, the simplest first, on how many folds.

    `each` has the seconds that a step takes on one fold. `alignment` is the time of the alignment, in seconds.
    """

    steps: tuple[Step, ...]
    folds: int
    each: Mapping[Step, float]
    alignment: float

    @classmethod
    def of(cls, steps: Sequence[Step], folds: Sequence[Benchmark], per_text: float, encoder: str) -> Self:
        """Return the plan to score steps on folds; a text takes `per_text` seconds to encode with an encoder."""
        costs = {step: per_text * _cost(step, folds[0], encoder) for step in steps}
        return cls(tuple(steps), len(folds), costs, per_text * _ALIGNMENT)

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
        return f"{len(self.steps)} steps ({steps}) on {self.folds} folds: at most about {duration(self.seconds)}"


def _cost(step: Step, benchmark: Benchmark, encoder: str) -> float:
    """Return how many texts would take as long to encode as training a step and scoring it on one fold."""
    if not step.trains:
        return 0.0  # the vectors of all texts are known
    trained, recipe = prepare(step, benchmark, encoder)
    train, test = (cast(RetrievalData, part) for part in (trained.split.train, trained.split.test))
    sets, links = recipe.episodes, len(trained.arrangements["meta-train"][0].variants)
    # Each triplet has a question, an answer and a negative; a text is encoded once in a set.
    each = [size + min(2 * size, len(train.candidates)) for size in (sets.k, *[sets.q] * (links - 1))]
    steps = recipe.budget.meta_train * sum(each) * (_BACKWARD if step.learner == FINE_TUNE else _INNER)
    # The vectors that negatives are mined by are known, except of an aligned encoder.
    encoded = [test, train] if sets.negatives == "mined" and step.aligned else [test]
    return steps + sum(len(part.questions) + len(part.candidates) for part in encoded)
