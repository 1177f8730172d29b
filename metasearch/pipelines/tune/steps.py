"""The steps of the ladder: ways to make an encoder from labels, the simplest first; their training and its time."""

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from metasearch.config import registry
from metasearch.config.languages import UNKNOWN
from metasearch.config.library import Library
from metasearch.config.measure import BALANCED, EXPANDED, MULTILINGUAL, Pool
from metasearch.config.postprocessing import LEAST, NeutralSettings
from metasearch.config.recipe import Recipe
from metasearch.config.run import TuneConfig
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import Data, RetrievalData
from metasearch.data.texts import tagged_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import NeutralMap, ProjectedEncoder, append
from metasearch.encoders.protocols import CachedEncoder, TextEncoder, report_progress
from metasearch.episodes.samplers import check_sizes
from metasearch.errors import ConfigError, DataError
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.report.formats import duration
from metasearch.evaluation.scores import Evaluation
from metasearch.pipelines import factory
from metasearch.pipelines.compatibility import learner_class
from metasearch.pipelines.neutral import train_map
from metasearch.pipelines.tune.folds import LEAST_FOLDS, pooled
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.signals import interrupted

log = logging.getLogger(__name__)

FINE_TUNE = "fine-tune"
_RECIPE = "best"
_MODES = ("mixt", "trans", "mono-bi-multi", "mono-mono")
"""Transfer modes of meta-learners, the preferred one first."""
_MOST_EPISODES = 160
"""Of a meta-learner, as in the recipes for machines without a GPU; the budgets of papers take days."""
_SMALL = "e5"
"""Encoder whose recipes fit some dozen questions; for encoders without recipes."""
_FEW = 32
"""Questions of a set of fine-tuning, where the labels do not fill two sets of the recipe."""
_FREQUENT = 0.05
"""Share of the documents from which a language counts."""


@dataclass(frozen=True)
class Step:
    """A way to make an encoder.

    Attributes:
        learner: learner that trains on the labels; empty for none.
        projected: whether language bias is projected out.
        aligned: whether the encoder was aligned on translations before.
    """

    learner: str = ""
    projected: bool = False
    aligned: bool = False

    def __str__(self) -> str:
        parts = [("alignment", self.aligned), ("projection", self.projected), (self.learner, self.learner)]
        return " + ".join(name for name, taken in parts if taken) or "base encoder"


def ladder(projected: bool, aligned: bool = False, learners: Sequence[str] = ()) -> list[Step]:
    """Return the steps that the data allows, the simplest first; an aligned encoder is a projected one.

    Raises:
        ConfigError: there is no such learner, or it learns from no labels.
    """
    for learner in learners:
        registry.require("learners", learner)
        if not {2, 3} & set(registry.load("learners", learner).LEARNER.links):
            raise ConfigError(f"learner '{learner}' does not learn from labels; `metasearch distill` runs it")
    steps = [Step(), Step(projected=True), Step(FINE_TUNE, True)] if projected else [Step(), Step(FINE_TUNE)]
    steps += [Step(FINE_TUNE, True, True)] * aligned
    others = [learner for learner in dict.fromkeys(learners) if learner != FINE_TUNE]
    return steps + [Step(learner, projected or aligned, aligned) for learner in others]


def pools(data: RetrievalData) -> tuple[Pool, ...]:
    """Return the rankings to try with each step, the simplest first."""
    counts = Counter(candidate.language for candidate in data.candidates)
    # Detection takes a few short texts for another language.
    if sum(count > _FREQUENT * counts.total() for count in counts.values()) < 2:
        return (MULTILINGUAL,)
    translated = any(len(languages) > 1 for languages in data.answers.values())
    return (MULTILINGUAL, BALANCED, EXPANDED) if translated else (MULTILINGUAL, BALANCED)


def projectable(parts: Sequence[Data]) -> tuple[str, ...]:
    """Return the languages with enough texts for a projection in each training split; none where only one has."""
    counts = [{language: len(own) for language, own in tagged_of(part, LEAST).items()} for part in parts]
    known = sorted(set[str]().union(*counts) - {UNKNOWN})
    found = tuple(language for language in known if all(count.get(language, 0) >= LEAST for count in counts))
    return found if len(found) > 1 else ()


@dataclass(frozen=True)
class Workshop:
    """Makes and scores the encoders of the steps.

    Attributes:
        config: encoder, device and seed.
        encoder: the base encoder, which never changes.
        vectors: its vectors.
        languages: languages in the estimate of the projection.
        aligned: folder of the encoder that was aligned on translations, or None.
    """

    config: TuneConfig
    encoder: Encoder
    vectors: CachedEncoder
    languages: tuple[str, ...] = ()
    aligned: Path | None = None

    def score(
        self, step: Step, benchmark: Benchmark, ranked: Sequence[Pool], callback: Callback = SILENT
    ) -> Evaluation:
        """Return the scores of a step on the test split in each pool."""
        encoder: TextEncoder = self.vectors
        if step.learner:
            encoder = self.make(step, benchmark, callback)
        elif step.projected:
            encoder = ProjectedEncoder(self.vectors, self._project(benchmark, callback))
        return evaluate(encoder, benchmark.split.test, benchmark.measures, ranked)

    def make(self, step: Step, benchmark: Benchmark, callback: Callback = SILENT) -> Encoder:
        """Return a new encoder, made from the training split of a benchmark.

        Raises:
            DataError: there are too few labels to train on.
            Interrupted: by Ctrl-C or SIGTERM.
        """
        config, start = self.config, self.config.encoder
        if step.aligned:
            start = start.model_copy(update={"name": str(self.aligned)})
        encoder = factory.load_encoder(start, benchmark.task.max_length, device=config.device)
        vectors: TextEncoder | None = None if step.aligned else self.vectors
        if step.projected and not step.aligned:
            projection = self._project(benchmark, callback)
            append(encoder, projection)
            vectors = ProjectedEncoder(self.vectors, projection)
        if step.learner:
            trained, recipe = prepare(step, benchmark, config.encoder.name)
            learner = factory.make_learner(recipe, encoder)
            outcome = factory.fit(learner, trained, recipe, seed=config.seed, callback=callback, vectors=vectors)
            if outcome.reason == "interrupted":
                raise interrupted(f"stopped after step {outcome.steps}")
        return encoder

    def _project(self, benchmark: Benchmark, callback: Callback) -> NeutralMap:
        settings = NeutralSettings(languages=self.languages)
        return train_map(self.encoder, benchmark, settings, callback, self.vectors)


def encode_all(encoder: Encoder, data: RetrievalData, callback: Callback = SILENT) -> tuple[CachedEncoder, float]:
    """Return a cache with the vectors of all texts, and the seconds that a text took.

    Texts are encoded in one order, whatever is scored later.
    """
    vectors = CachedEncoder(encoder)
    encoder.encode([data.questions[0].text], "question")  # the first call makes what later ones use
    start = time.perf_counter()
    with report_progress(encoder, partial(callback.on_encode, "questions")):
        vectors.encode([question.text for question in data.questions], "question")
    with report_progress(encoder, partial(callback.on_encode, "documents")):
        vectors.encode([candidate.text for candidate in data.candidates], "candidate")
    return vectors, (time.perf_counter() - start) / (len(data.questions) + len(data.candidates))


def prepare(step: Step, benchmark: Benchmark, encoder: str) -> tuple[Benchmark, Recipe]:
    """Return a step's training data and recipe, with sets that fit the labels; `DataError` for too few labels.

    Fine-tuning draws from all languages together. A meta-learner follows the task's arrangements, if it has any.
    """
    library = Library()
    name = _RECIPE if step.learner == FINE_TUNE else library.recipe_for(step.learner, encoder)
    # The recipe of a paper, without an encoder in its name, fits neither a few labels nor a short training.
    recipe = library.recipe(library.recipe_for(name, _SMALL) if name == step.learner else name)
    links = learner_class(recipe).links
    train = benchmark.split.train
    assert isinstance(train, RetrievalData)
    # Two sets of a few labels would be the same questions twice; translations of a question are one label.
    few = len({question.id for question in train.questions}) < recipe.episodes.k + recipe.episodes.q
    trained = pooled(benchmark, 1 if few and 1 in links else 2 if 2 in links else 3)
    if step.learner != FINE_TUNE:
        modes = (
            mode for mode in map(library.mode, _MODES) if mode.links in links and mode.arrangements(benchmark.task)
        )
        if mode := next(modes, None):
            trained = replace(benchmark, arrangements=mode.arrangements(benchmark.task))
    # The dev split is a part of train, so that both phases are one.
    episodes = min(recipe.budget.meta_train + recipe.budget.meta_valid, _MOST_EPISODES)
    once = {"meta_train": episodes, "meta_valid": 0, "epochs": 1, "eval_every": 0, "patience": 0}
    budget = recipe.budget.model_copy(update=once)
    largest = _FEW if few and step.learner == FINE_TUNE else max(recipe.episodes.k, recipe.episodes.q)
    return trained, _fit_sets(recipe.model_copy(update={"budget": budget}), trained, largest)


def _fit_sets(recipe: Recipe, benchmark: Benchmark, largest: int) -> Recipe:
    """Return a recipe whose sets are as large as the labels allow, no larger than it says, and `largest` at most."""
    train = benchmark.split.train
    assert isinstance(train, RetrievalData)
    most = min(largest, len(train.questions))
    sizes = {"k": min(recipe.episodes.k, most), "q": min(recipe.episodes.q, most)}
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


# The plan and its duration, from the speed at which the encoder encoded all texts.


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
        alignment: seconds of the alignment on translations.
    """

    steps: tuple[Step, ...]
    folds: int
    each: Mapping[Step, float]
    alignment: float

    @property
    def seconds(self) -> float:
        """Seconds to score all steps, and to train the most expensive one on all labels."""
        costs = [self.each[step] for step in self.steps]
        aligned = any(step.aligned for step in self.steps) * self.alignment
        return aligned + self.folds * sum(costs) + max(costs)

    def within(self, limit: float) -> "Plan":
        """Return a plan that takes `limit` seconds at most: with fewer folds, then without the most expensive steps."""
        plan = self
        while plan.seconds > limit and plan.folds > LEAST_FOLDS:
            plan = replace(plan, folds=plan.folds - 1)
        if plan.folds < self.folds:
            log.warning("time: %d of %d folds are planned", plan.folds, self.folds)
        while plan.seconds > limit and len(plan.steps) > 1:
            dropped = max(plan.steps[1:], key=lambda step: plan.each[step])
            plan = replace(plan, steps=tuple(step for step in plan.steps if step != dropped))
            log.warning("time: dropped the step '%s', about %s", dropped, duration(self.folds * self.each[dropped]))
        if plan.seconds > limit:
            log.warning("time: the shortest plan ends about %s after the limit", duration(plan.seconds - limit))
        return plan

    def __str__(self) -> str:
        steps = ", ".join(map(str, self.steps))
        return f"{len(self.steps)} steps ({steps}) on {self.folds} folds: about {duration(self.seconds)}"


def make_plan(name: str, steps: Sequence[Step], benchmarks: Sequence[Benchmark], per_text: float) -> Plan:
    """Return the plan to score steps on folds, at `per_text` seconds a text; `name` finds the encoder's recipes."""
    each = {step: per_text * _texts(step, benchmarks[0], name) for step in steps}
    return Plan(tuple(steps), len(benchmarks), each, per_text * _ALIGNMENT)


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
