"""Training data and recipe of a step, and the steps and folds that fit into a limit of time.

Fine-tuning compares a question with the answers of the other questions of its set. A few labels in several languages
fill one set and not one for each language pair, so that all of them count as one language.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.library import load_mode, load_recipe
from metasearch.config.recipe import Recipe
from metasearch.config.seeding import stream
from metasearch.config.task import PHASES
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import Data, RetrievalData, grouped
from metasearch.episodes.samplers import check_sizes
from metasearch.errors import DataError
from metasearch.evaluation.report.formats import duration
from metasearch.pipelines.factory import learner_class
from metasearch.search.tune.labels import LEAST_FOLDS
from metasearch.search.tune.steps import FINE_TUNE, Step

log = logging.getLogger(__name__)

_MODES = ("mixt", "trans", "mono-bi-multi", "mono-mono")
"""Transfer modes of meta-learners, the preferred one first."""
_MOST_EPISODES = 160
"""Of a meta-learner, as in the recipes for machines without a GPU; the budgets of papers take days."""
_SMALL = "e5"
"""Encoder whose recipes fit some dozen questions; for encoders without recipes."""
_FEW = 32
"""Questions of a set of fine-tuning, where the labels do not fill two sets of the recipe."""
_SEVERAL = "mul"
"""Code of several languages (ISO 639-2)."""
_BACKWARD, _INNER = 3.0, 9.0
"""Texts that are encoded in the time of training on one: in fine-tuning, and in a meta-learner with its inner steps."""
_ALIGNMENT = 320 * 64 * 4
"""Texts of an alignment: steps, pairs, and the passes over the two sides of a pair."""


def prepare(step: Step, benchmark: Benchmark, encoder: str) -> tuple[Benchmark, Recipe]:
    """Return a step's training data and recipe, with sets that fit the labels; `DataError` for too few labels.

    Fine-tuning draws from all languages together. A meta-learner follows the task's arrangements, if it has any.
    `encoder` is a name, which may have recipes of its own. A control is drawn by the number of its fold.
    """
    if step.shuffled:
        train = shuffled(cast(RetrievalData, benchmark.split.train), benchmark.fold)
        benchmark = replace(benchmark, split=replace(benchmark.split, train=train))
    tuned = step.learner == FINE_TUNE
    recipe = load_recipe("best") if tuned else load_recipe(step.learner, encoder=encoder)
    if recipe.recipe == step.learner:
        # The recipe of a paper, without an encoder in its name, fits neither a few labels nor a short training.
        recipe = load_recipe(step.learner, encoder=_SMALL)
    episodes, budget, links = recipe.episodes, recipe.budget, learner_class(recipe).links
    questions = cast(RetrievalData, benchmark.split.train).questions
    # Two sets of a few labels would be the same questions twice; translations of a question are one label.
    few = len({question.id for question in questions}) < episodes.k + episodes.q
    trained = _in_one_language(benchmark, 1 if few and 1 in links else 2 if 2 in links else 3)
    if not tuned:
        found = (mode.arrangements(benchmark.task) for mode in map(load_mode, _MODES) if mode.links in links)
        trained = next((replace(benchmark, arrangements=each) for each in found if each), trained)
    # The dev split is a part of train, so that both phases are one.
    once = {"meta_train": min(budget.meta_train + budget.meta_valid, _MOST_EPISODES), "meta_valid": 0}
    budget = budget.model_copy(update={**once, "epochs": 1, "eval_every": 0, "patience": 0})
    most = min(len(questions), _FEW) if few and tuned else len(questions)
    return trained, _fit_sizes(trained, recipe.model_copy(update={"budget": budget}), most)


def _in_one_language(benchmark: Benchmark, links: int) -> Benchmark:
    """Return a benchmark of questions with all texts of train and dev in one language, `mul`.

    An episode has `links` sets of texts.
    """

    def merged(part: Data) -> Data:
        data = cast(RetrievalData, part)
        questions = tuple(replace(question, language=_SEVERAL) for question in data.questions)
        candidates = tuple(replace(candidate, language=_SEVERAL) for candidate in data.candidates)
        return replace(data, questions=questions, candidates=candidates)

    parts = replace(benchmark.split, train=merged(benchmark.split.train), dev=merged(benchmark.split.dev))
    chain = Arrangement((Variant(_SEVERAL, (_SEVERAL,)),) * links)
    return replace(benchmark, arrangements={phase: [chain] for phase in PHASES}, split=parts)


def _fit_sizes(benchmark: Benchmark, recipe: Recipe, most: int) -> Recipe:
    """Return a recipe with sets of at most `most` examples, halved until the data fills them; raises `DataError`."""
    sizes = {name: min(size, most) for name, size in (("k", recipe.episodes.k), ("q", recipe.episodes.q))}
    while True:
        fitting = recipe.model_copy(update={"episodes": recipe.episodes.model_copy(update=sizes)})
        try:
            check_sizes(benchmark, fitting)
        except DataError:
            if max(sizes.values()) == 1:
                raise
            sizes = {name: max(1, size // 2) for name, size in sizes.items()}
        else:
            return fitting


def shuffled(data: RetrievalData, seed: int) -> RetrievalData:
    """Return data in which each group of questions has the answers of another group.

    Groups are shifted along a random circle, so that none keeps its own; a page and its translations are one group.
    Questions of a larger group share the answers of a smaller one in turn.
    """
    ids = {
        group: tuple(dict.fromkeys(q.id for q in own))
        for group, own in grouped(data.questions, lambda q: q.group).items()
    }
    circle = [list(ids)[i] for i in stream(seed, "shuffled labels").permutation(len(ids))]
    takes: dict[str, list[str]] = {}
    for group, other in zip(circle, (*circle[1:], *circle[:1]), strict=True):
        for i, uid in enumerate(ids[group]):
            takes.setdefault(ids[other][i % len(ids[other])], []).append(uid)
    answers = ([new for uid in each.answers for new in takes.get(uid, ())] for each in data.candidates)
    candidates = (replace(each, answers=tuple(own)) for each, own in zip(data.candidates, answers, strict=True))
    grades = {(new, name): grade for (uid, name), grade in data.grades.items() for new in takes.get(uid, ())}
    return replace(data, candidates=tuple(candidates), grades=grades)


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
        return f"{len(self.steps)} steps ({steps}) on {self.folds} folds: about {duration(self.seconds)}"


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
