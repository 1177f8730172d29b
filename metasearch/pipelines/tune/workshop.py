"""Makes and scores the encoders of the steps, and prepares the labels for a learner."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from metasearch.config.library import Library
from metasearch.config.measure import Pool
from metasearch.config.postprocessing import NeutralSettings
from metasearch.config.recipe import Recipe
from metasearch.config.run import TuneConfig
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.neutral import NeutralMap, ProjectedEncoder, append
from metasearch.encoders.protocols import CachedEncoder, TextEncoder, report_progress
from metasearch.episodes.samplers import check_sizes
from metasearch.errors import DataError
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.scores import Evaluation
from metasearch.pipelines import factory
from metasearch.pipelines.compatibility import learner_class
from metasearch.pipelines.neutral import train_map
from metasearch.pipelines.tune.folds import pooled
from metasearch.pipelines.tune.steps import FINE_TUNE, Step
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.signals import interrupted

_RECIPE = "best"
_MODES = ("mixt", "trans", "mono-bi-multi", "mono-mono")
"""Transfer modes of meta-learners, the preferred one first."""
_MOST_EPISODES = 160
"""Of a meta-learner, as in the recipes for machines without a GPU; the budgets of papers take days."""
_SMALL = "e5"
"""Encoder whose recipes fit some dozen questions; for encoders without recipes."""
_FEW = 32
"""Questions of a set of fine-tuning, where the labels do not fill two sets of the recipe."""


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
        encoder = load_encoder(start, benchmark.task.max_length, device=config.device)
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
