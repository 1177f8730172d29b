"""Plan and duration, from a short measurement of the encoder."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from metasearch.config.recipe import Role
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import RetrievalData, texts_of
from metasearch.encoders.encoder import Encoder
from metasearch.evaluation.report.formats import duration
from metasearch.pipelines.tune.folds import LEAST_FOLDS
from metasearch.pipelines.tune.steps import FINE_TUNE, Step, prepare

log = logging.getLogger(__name__)

_SAMPLE = 48
"""Texts that are encoded to measure the speed."""
_BACKWARD = 3.0
"""A step of fine-tuning on a text takes as long as encoding so many."""
_INNER = 9.0
"""Likewise of a meta-learner, with its inner steps."""
_ALIGNMENT = 320 * 64 * 4
"""Texts of an alignment: steps, pairs, and the passes over the two sides of a pair."""


@dataclass(frozen=True)
class Plan:
    """The steps to score.

    Attributes:
        steps: the simplest step first.
        folds: number of folds.
        each: seconds of a step on one fold.
        once: seconds of the work that is not repeated for folds.
        per_text: seconds to encode a text.
    """

    steps: tuple[Step, ...]
    folds: int
    each: Mapping[Step, float]
    once: float
    per_text: float

    @property
    def seconds(self) -> float:
        """Seconds in total, if the most expensive step is kept and trained on all labels."""
        costs = [self.each[step] for step in self.steps]
        return self.once + self.folds * sum(costs) + max(costs)

    def within(self, limit: float) -> "Plan":
        """Return a plan that takes `limit` seconds at most: with fewer folds, then without the most expensive steps."""
        plan = self
        while plan.seconds > limit and plan.folds > LEAST_FOLDS:
            plan = replace(plan, folds=plan.folds - 1)
        if plan.folds < self.folds:
            log.warning("time: %d of %d folds are planned", plan.folds, self.folds)
        while plan.seconds > limit and len(plan.steps) > 1:
            dropped = max(plan.steps[1:], key=lambda step: plan.each[step])
            steps = tuple(step for step in plan.steps if step != dropped)
            last_aligned = dropped.aligned and not any(step.aligned for step in steps)
            plan = replace(plan, steps=steps, once=plan.once - last_aligned * _ALIGNMENT * plan.per_text)
            log.warning("time: dropped the step '%s', about %s", dropped, duration(self.folds * self.each[dropped]))
        if plan.seconds > limit:
            log.warning("time: the shortest plan takes about %s", duration(plan.seconds))
        return plan

    def __str__(self) -> str:
        steps = ", ".join(map(str, self.steps))
        return f"{len(self.steps)} steps ({steps}) on {self.folds} folds: about {duration(self.seconds)}"


def make_plan(
    encoder: Encoder, name: str, steps: Sequence[Step], benchmarks: Sequence[Benchmark], passages: int = 0
) -> Plan:
    """Return the plan to score steps on folds, timed on a sample of the texts; `name` finds the encoder's recipes."""
    data = benchmarks[0].data
    assert isinstance(data, RetrievalData)
    per_text = measure(encoder, data)
    each = {step: per_text * _texts(step, benchmarks[0], name) for step in steps}
    once = len(data.questions) + len(data.candidates) + passages
    once += _ALIGNMENT if any(step.aligned for step in steps) else 0
    return Plan(tuple(steps), len(benchmarks), each, per_text * once, per_text)


def measure(encoder: Encoder, data: RetrievalData) -> float:
    """Return the seconds that a text takes, from some that are spread over the data."""
    texts = list(dict.fromkeys((role, text) for role, text, _ in texts_of(data)))
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    roles: dict[Role, list[str]] = {}
    for role, text in sample:
        roles.setdefault(role, []).append(text)
    encoder.encode([sample[0][1]], sample[0][0])  # the first call makes what later ones use
    start = time.perf_counter()
    for role, own in roles.items():
        encoder.encode(own, role)
    return (time.perf_counter() - start) / len(sample)


def _texts(step: Step, benchmark: Benchmark, name: str) -> float:
    """Return how many texts would take as long to encode as a step on one fold."""
    if not step.learner:
        return 0.0  # the vectors of all texts are known
    trained, recipe = prepare(step, benchmark, name)
    train, test = trained.split.train, trained.split.test
    assert isinstance(train, RetrievalData)
    assert isinstance(test, RetrievalData)
    sets, budget = recipe.episodes, recipe.budget
    links = len(trained.arrangements["meta-train"][0].variants)
    # Each triplet has a question, an answer and a negative; a text is encoded once in a set.
    each = [size + min(2 * size, len(train.candidates)) for size in (sets.k, *[sets.q] * (links - 1))]
    steps = budget.meta_train * sum(each) * (_BACKWARD if step.learner == FINE_TUNE else _INNER)
    # The vectors that negatives are mined by are known, except of an aligned encoder.
    encoded = [test, train] if sets.negatives == "mined" and step.aligned else [test]
    return steps + sum(len(part.questions) + len(part.candidates) for part in encoded)
