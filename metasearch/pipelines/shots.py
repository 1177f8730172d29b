"""`metasearch evaluate --shots`: adapt an encoder to a few labelled questions of a task, and score it on the others.

A draw is a random order of the questions of a part, such as test, which no training has seen. Its first k questions,
with random negatives, are the support set of an adaptation by gradient descent, learn2learn's `clone` and `adapt`. The
first questions of the largest k, in all languages, are never asked, so that every k is scored on the same questions.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from metasearch.algorithms.base import EpisodeLearner
from metasearch.algorithms.inner_loop import Model, Rates
from metasearch.algorithms.sets import prepare
from metasearch.config.arrangement import Variant
from metasearch.config.library import load_recipe
from metasearch.config.recipe import Recipe
from metasearch.config.run import EvaluateConfig, RunConfig, ShotSettings
from metasearch.config.seeding import stream
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import Question, RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.protocols import CachedEncoder, TextEncoder, report_progress
from metasearch.episodes.episode import LabelledSet, Triplet
from metasearch.episodes.triplets import TripletSampler
from metasearch.errors import ConfigError, DataError, NonFiniteError, require_known
from metasearch.evaluation.collapse import EmbeddingHealth, diagnose, health
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.scores import Evaluation
from metasearch.evaluation.shots import Asked, curve
from metasearch.pipelines.factory import make_learner
from metasearch.pipelines.frozen import with_adapter
from metasearch.pipelines.scorer import Scorer
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.folder import CONFIG, RunFolder, read_config
from metasearch.runs.rows import Row
from metasearch.training.checkpoint import load_learned

log = logging.getLogger(__name__)

_POOL = "multilingual"
_WATCHED = 100
"""Questions whose vectors are checked after an adaptation, at most."""


def score_shots(config: EvaluateConfig, benchmark: Benchmark, callback: Callback = SILENT) -> list[Row]:
    """Return an encoder's scores on a part of a retrieval task, by the number of labelled questions.

    Raises:
        ConfigError: the task is another kind, or no recipe says how to adapt.
        DataError: the part has too few questions.
    """
    shots, data = config.shots, benchmark.part(config.split)
    if not isinstance(data, RetrievalData):
        raise ConfigError(f"--shots is for retrieval; task '{benchmark.task.name}' is a {benchmark.task.kind} task")
    name = config.encoder.name
    run, recipe = _recipe(config)
    drawn = [_draw(data, shots, number) for number in range(shots.draws)]
    encoder = load_encoder(
        config.encoder, benchmark.task.max_length, identify=True, device=config.compute.device, seed=shots.seed
    )
    adapted = with_adapter(encoder, recipe.adapter, (data,), callback=callback)
    adaptation = Adaptation(adapted, recipe, shots, run)
    what = f"{name} on {config.split} of {benchmark.task.name}, shots {{}}"
    found: dict[int, list[Evaluation]] = {}
    counts, watched = sorted({0, *shots.counts}), Health(adapted, data)
    with report_progress(adapted, partial(callback.on_encode, what.format(0))):
        plain = evaluate(CachedEncoder(adapted), data, benchmark.measures)
    for count in counts:
        for number, questions in enumerate(drawn):
            log.info("%s, draw %d", what.format(count), number)
            support = _support(data, questions[:count], recipe, shots.seed, number)
            with adaptation.to(support) as changed:
                watched.check(f"{what.format(count)}, draw {number}")
                found.setdefault(count, []).append(evaluate(changed, data, benchmark.measures) if count else plain)
    labelled = [{question.id for question in questions} for questions in drawn]
    facts = Scorer({"encoder": name, "seed": shots.seed})._row_facts(name, encoder, benchmark, config.split, data)
    facts |= {"pool": _POOL, "candidates": "all", "recipe": recipe.recipe, "draws": shots.draws}
    facts |= {"adapt_steps": adaptation.steps, "adapt_lr": adaptation.rate}
    return [
        {**facts, "measure": str(measure), **row}
        for measure in benchmark.measures
        for row in curve(_asked(str(measure), found, labelled))
    ]


class Health:
    """Checks the vectors of some questions after adaptations: a rate that is too high makes them equal, or not finite.

    A warning is logged at the first collapse.
    """

    def __init__(self, encoder: TextEncoder, data: RetrievalData) -> None:
        texts = list(dict.fromkeys(question.text for question in data.questions))
        self._encoder, self._texts = encoder, texts[:: -(-len(texts) // _WATCHED)]
        self._before = self._now()
        # Of an encoder that is collapsed before, nothing is said.
        self._quiet = diagnose(self._before, None, self._dimension) is not None

    def _now(self) -> EmbeddingHealth:
        vectors = self._encoder.encode(self._texts, "question")
        self._dimension = vectors.shape[1]
        return health(vectors)

    def check(self, what: str) -> None:
        """Log a collapse; `NonFiniteError` for a vector that is not finite."""
        try:
            now = self._now()
        except NonFiniteError as error:
            raise NonFiniteError(f"{what}: adapted questions: {error}; take a smaller --adapt-lr") from None
        if not self._quiet and diagnose(now, self._before, self._dimension):
            self._quiet = True
            log.warning(
                "%s: adapted questions collapse (%s; without adaptation %s); take a smaller --adapt-lr",
                what, now, self._before,
            )  # fmt: skip


class Adaptation:
    """Adapts an encoder to support sets by its recipe's loss.

    Raises:
        ConfigError: nothing says the rate.
    """

    def __init__(self, encoder: Encoder, recipe: Recipe, shots: ShotSettings, run: Path | None) -> None:
        learner = make_learner(recipe, encoder)
        if not isinstance(learner, EpisodeLearner):
            raise ConfigError(f"--recipe {recipe.recipe}: learner '{recipe.learner}' has no episodes to adapt to")
        self.encoder, self._learner = encoder, learner
        self.steps = int(shots.steps or getattr(learner.options, "inner_steps", 0) or 1)
        if run and shots.rate is None:
            load_learned(learner, run)
        rates: Rates = learner.inner_lr if shots.rate is None else shots.rate
        if not rates:
            raise ConfigError(f"--adapt-lr: recipe '{recipe.recipe}' has no inner rate; give one, such as 0.01")
        self.rate = rates if isinstance(rates, float) else None
        self._model = Model(encoder.embedder, rates, first_order=True)
        self._weights = [weight for weight in encoder.embedder.parameters() if weight.requires_grad]

    @contextmanager
    def to(self, support: LabelledSet | None) -> Iterator[TextEncoder]:
        """Give the encoder the weights after steps on a support set, within the context."""
        if support is None:
            yield self.encoder
            return
        self._learner.train(False)
        adapted = self._learner.adapted(self._model, prepare(self.encoder, support), self.steps)
        before = [weight.detach().clone() for weight in self._weights]
        try:
            self._put([weight.detach() for weight in adapted.weights])
            yield self.encoder
        finally:
            self._put(before)

    @torch.no_grad()
    def _put(self, values: Sequence[torch.Tensor]) -> None:
        for weight, value in zip(self._weights, values, strict=True):
            weight.copy_(value)


def _recipe(config: EvaluateConfig) -> tuple[Path | None, Recipe]:
    """Return the recipe that is named, or the run whose model the encoder is, with its recipe."""
    if config.shots.recipe:
        return None, load_recipe(config.shots.recipe, include=config.data.include)
    run = Path(config.encoder.name).parent
    if (run / CONFIG).is_file() and read_config(run).get("kind", "train") == "train":
        return run, RunFolder(run).stored(RunConfig).config.recipe
    raise ConfigError(
        f"--shots: encoder '{config.encoder.name}' is no model of a training, which would say how to adapt; name a "
        "recipe, such as --recipe maml-adapter"
    )


def _draw(data: RetrievalData, shots: ShotSettings, number: int) -> list[Question]:
    """Return the questions of a draw, each in one language, as many as the largest number of shots."""
    known = sorted(data.questions_by_language)
    for language in shots.shot_languages:
        require_known("--shot-language", language, known)
    most, rng = max(shots.counts), stream(shots.seed, "shots", number)
    by_id: dict[str, list[Question]] = {}
    for question in data.questions:
        if question.id in data.answers and (not shots.shot_languages or question.language in shots.shot_languages):
            by_id.setdefault(question.id, []).append(question)
    if len({question.id for question in data.questions}) <= most or len(by_id) < most:
        raise DataError(
            f"--shots {most}: there are {len(by_id)} questions with answers to draw from, and others must stay to score"
        )
    ids = [sorted(by_id)[i] for i in rng.permutation(len(by_id))[:most]]
    return [by_id[uid][int(rng.integers(len(by_id[uid])))] for uid in ids]


def _support(
    data: RetrievalData, questions: Sequence[Question], recipe: Recipe, seed: int, number: int
) -> LabelledSet | None:
    """Return the triplets of labelled questions, with random negatives; None without questions."""
    if not questions:
        return None
    ids = {question.id for question in questions}
    # What answers other questions is unknown: any other candidate may be drawn as a negative.
    own = ([uid for uid in candidate.answers if uid in ids] for candidate in data.candidates)
    candidates = tuple(replace(c, answers=tuple(uids) or ("",)) for c, uids in zip(data.candidates, own, strict=True))
    labelled = replace(data, questions=tuple(questions), candidates=candidates, grades={})
    settings = recipe.episodes.model_copy(update={"queries": "random", "negatives": "random"})
    sampler = TripletSampler(labelled, settings, recipe.loss)
    triplets: list[Triplet] = []
    for i, question in enumerate(questions):
        variant = Variant(question.language, tuple(sorted(labelled.answers[question.id])))
        # A stream of its own, so that more shots begin with the triplets of fewer.
        triplets += sampler.triplets([question], variant, stream(seed, "shots", number, i))
    return LabelledSet(variant, tuple(triplets))


def _asked(
    measure: str, found: Mapping[int, Sequence[Evaluation]], labelled: Sequence[set[str]]
) -> dict[str, list[Asked]]:
    """Return the scores of each language's questions in each draw, without those with labels."""
    first = found[0][0].questions
    asked: dict[str, list[Asked]] = {}
    for cell in (each for each in first.units if each[0] == _POOL):
        units = first.units[cell]
        for number, ids in enumerate(labelled):
            defined = ~np.isnan(first.columns[measure, *cell])  # by the data alone, so that all counts agree
            rows = [i for i, unit in enumerate(units) if unit not in ids and defined[i]]
            scores = {count: own[number].questions.columns[measure, *cell][rows] for count, own in found.items()}
            articles = [first.articles.get(units[i], units[i]) for i in rows]
            asked.setdefault(cell[1], []).append(Asked(articles, scores))
    return asked
