"""Does a start that was learned on other manuals beat the closed form of `metasearch adapt` on labelled pages?

    python -m benchmarks.pages.starts --pages ~/data/pages -o runs/starts

One manual after another is apart. MAML, Reptile and MAML-Align learn starts of a query adapter on episodes of the
others: X asks for some pages in a labelled language, Y and Z ask for the same pages in other languages
(`mono-bi-multi`). Labels of the manual apart then adapt a start by gradient descent. Rates and steps are chosen on one
of the other manuals, with starts that did not see it. Labels and tests are as in `benchmarks.pages.memory`. Indexes are
in `-o`, made unless they are there; rows are in `results/starts.jsonl`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import click
import numpy as np
import torch

import metasearch as ms
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, read_rows
from benchmarks.pages.memory import LABELLED
from benchmarks.pages.start_tables import table
from benchmarks.pages.titles import ENCODER, Array, Known, Manual
from benchmarks.paper.adapter_cells import STOPPED, recipe_of
from metasearch.algorithms.base import EpisodeLearner
from metasearch.algorithms.inner_loop import Model
from metasearch.algorithms.sets import Prepared, prepare
from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.recipe import Recipe
from metasearch.config.seeding import stream
from metasearch.data.records import RetrievalData
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.neutral import ProjectedEncoder
from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.episodes.samplers import EpisodeSampler
from metasearch.episodes.triplets import TripletSampler
from metasearch.errors import Interrupted
from metasearch.pipelines.factory import make_gradients
from metasearch.runs.callbacks import SILENT
from metasearch.search.index.maps import mapped
from metasearch.search.query.searcher import QUERY
from metasearch.search.tune.adapt.metric import learn_adapter
from metasearch.search.tune.steps import ANSWERED, REMEMBERED
from metasearch.training.schedule import schedule
from metasearch.training.trainer import Trainer

ROWS = RESULTS / "starts.jsonl"
SETS = (
    "debian-faq", "gnome60-no-titles", "debian-reference-no-titles", "developers-reference-no-titles", "maint-guide"
)  # fmt: skip

COUNTS, DRAWS, SEEDS = (32, 128), 3, 3
"""Labels, draws of them, and seeds of a start."""
IDENTITY, STARTS = "identity", ("maml", "reptile", "align")
RATES, STEPS = (0.1, 1.0), (5, 25)
"""Of the descent on labels."""
GRID = ((1e-3, 0.2), (3e-3, 1.0))
"""Outer and inner rates of the learners."""
EPISODES = ("episodes.k=16", "episodes.q=16", "episodes.n_neg=1", "episodes.queries=similar", "episodes.similar_top=1")
"""The question that is most like another one is its translation: Y and Z ask for the pages of X."""
NONE = "no labels"


class Turns:
    """Episodes of one manual after another; Y asks in another language for pages that X asks for, Z in a third one."""

    def __init__(self, manuals: Sequence[Manual], recipe: Recipe, seed: int) -> None:
        self._samplers = [[*self._of(each, recipe, seed)] for each in manuals]

    @staticmethod
    def _of(manual: Manual, recipe: Recipe, seed: int) -> Iterator[EpisodeSampler]:
        asked = manual.data.questions_by_language
        others = sorted({*asked} - {*LABELLED})
        pairs = zip(others, others[1:] + others[:1], strict=True)
        for own, (one, other) in product(LABELLED, pairs):
            tags = (own, one, other)
            pages = set.intersection(*({each.id for each in asked.get(tag, ())} for tag in tags))
            some = (each for each in manual.taught.questions if each.id in pages and each.language in tags)
            data = replace(manual.taught, questions=tuple(some))
            if len(data.askable(own, tags)) >= recipe.episodes.k:
                chain = Arrangement((Variant(own, (own,)), Variant(one, (own,)), Variant(other, tags)))
                sets = TripletSampler(data, recipe.episodes, recipe.loss, manual.encoder.encode)
                yield EpisodeSampler(sets, [chain], recipe.episodes, "meta-train", seed)

    def batch(self, step: int, size: int) -> list[Episode]:
        """Return a step's episodes."""
        found = []
        for number in range(step * size, (step + 1) * size):
            turn, place = divmod(number, len(self._samplers))
            own = self._samplers[place]
            found.append(own[turn % len(own)].episode(turn))
        return found


def learn(base: ms.Encoder, manuals: Sequence[Manual], start: str, rates: tuple[float, float], seed: int) -> "Learned":
    """Return a learner, trained on episodes of some manuals; the identity is not trained."""
    recipe = recipe_of("maml" if start == IDENTITY else start, *rates, 0, *EPISODES)
    vectors = {key: vector for manual in manuals for key, vector in manual.encoder.vectors.items()}
    encoder = AdaptedEncoder(base, MatrixAdapter(base.dimension()), vectors=Known(vectors) if manuals else None)
    learner = ms.make_learner(recipe, encoder)
    assert isinstance(learner, EpisodeLearner)
    if start != IDENTITY:
        steps = schedule(recipe.budget, [("meta-train", recipe.budget.meta_train, Turns(manuals, recipe, seed))], None)
        rules, gradients = (recipe.outer, recipe.budget), make_gradients(encoder)
        trainer = Trainer(learner, gradients, steps, *rules, dev=lambda: 0.0, callback=SILENT, seed=seed)
        if trainer.fit().reason == "interrupted":
            raise Interrupted(STOPPED)
    return Learned(learner, recipe)


@dataclass(frozen=True, eq=False)
class Learned:
    """A learner whose encoder has a start."""

    learner: EpisodeLearner
    recipe: Recipe

    @property
    def matrix(self) -> Array:
        """The start, `(D, D)`."""
        assert isinstance(self.learner.encoder, AdaptedEncoder)
        return np.asarray(self.learner.encoder.adapter.matrix().detach().numpy())

    def support(self, manual: Manual, labels: RetrievalData) -> Prepared:
        """Return the triplets of labels: each with its page in its own and in another language."""
        data = manual.examples(labels.questions)
        sampler, found = TripletSampler(data, self.recipe.episodes, self.recipe.loss), []
        for i, question in enumerate(data.questions):
            known = sorted(data.answers[question.id], key=lambda tag, own=question.language: tag != own)
            variant = Variant(question.language, tuple(dict.fromkeys((known[0], known[i % len(known)]))))
            found += sampler.triplets([question], variant, stream(0, manual.name, i))
        base = self.learner.encoder
        assert isinstance(base, AdaptedEncoder)
        encoder = AdaptedEncoder(base.base, MatrixAdapter(base.dimension()), vectors=manual.encoder)
        return prepare(encoder, LabelledSet(variant, tuple(found)))

    def descended(self, support: Prepared, rate: float, steps: Sequence[int] = STEPS) -> Iterator[Array]:
        """Yield the adapter after numbers of inner steps on labels, `(D, D)` each."""
        model, before = Model(self.learner.encoder.embedder, rate, first_order=True), 0
        for count in steps:
            model, before = self.learner.adapted(model, support, count - before), count
            (delta,) = model.weights
            yield np.asarray((torch.eye(len(delta)) + delta).detach().numpy())


def tried(learned: Learned, manual: Manual) -> dict[tuple[float, int], float]:
    """Return the mean precision on labelled pages of a manual that chooses: rate and steps of the descent → score."""
    found: dict[tuple[float, int], list[float]] = {}
    for count in COUNTS:
        labels = manual.labels(count, DRAWS)
        support, (same, _) = learned.support(manual, labels), manual.parts(labels)
        for rate in RATES:
            for steps, matrix in zip(STEPS, learned.descended(support, rate), strict=True):
                score = manual.precisions(manual.scores(matrix))[same].mean()
                found.setdefault((rate, steps), []).append(float(score))
    return {point: float(np.mean(scores)) for point, scores in found.items()}


# Arms.


@dataclass(frozen=True)
class Choice:
    """What one manual chose for a start: rates of its learner, rate and steps of the descent, and the score there."""

    start: str
    rates: tuple[float, float]
    point: tuple[float, int]
    score: float


def choose(base: ms.Encoder, others: Sequence[Manual], start: str) -> Choice:
    """Return the best settings on the first manual, with starts from the rest."""
    found = []
    for rates in GRID if start != IDENTITY else GRID[:1]:
        scores = tried(learn(base, others[1:], start, rates, 0), others[0])
        point = max(scores, key=lambda each: scores[each])
        found.append(Choice(start, rates, point, scores[point]))
    return max(found, key=lambda each: each.score)


def closed(manual: Manual, labels: RetrievalData, before: Array) -> Array:
    """Return the adapter with answers behind another one, `(D, D)`."""
    through = ProjectedEncoder(manual.encoder, partial(mapped, matrix=before), (QUERY,))
    return np.asarray(learn_adapter(through, manual.index.passages, ANSWERED, labels) @ before)


def arms(
    manual: Manual, labels: RetrievalData, starts: Mapping[str, Sequence[Learned]], choices: Mapping[str, Choice]
) -> Iterator[tuple[str, Array]]:
    """Yield the precision of all titles by each arm, `(Q,)`; of starts the mean over seeds."""
    plain, gains = np.eye(manual.encoder.encode([labels.questions[0].text], QUERY).shape[1]), manual.gains(labels)
    yield NONE, manual.precisions(manual.scores(plain))
    answered = manual.scores(closed(manual, labels, plain))
    yield ANSWERED, manual.precisions(answered)
    yield REMEMBERED, manual.precisions(answered + gains)
    best = max(STARTS, key=lambda start: choices[start].score)
    support = starts[IDENTITY][0].support(manual, labels)
    for start, own in starts.items():
        rate, steps = choices[start].point
        found = [manual.scores(next(each.descended(support, rate, [steps]))) for each in own]
        yield f"{start} + steps", np.mean([manual.precisions(each) for each in found], 0)
        remembered = [manual.precisions(each + gains) for each in found]
        if start == IDENTITY:
            yield f"{start} + steps + labelled queries", np.mean(remembered, 0)
        if start == best:
            behind = [manual.precisions(manual.scores(closed(manual, labels, each.matrix)) + gains) for each in own]
            yield "best start + steps + labelled queries", np.mean(remembered, 0)
            yield f"best start + {REMEMBERED}", np.mean(behind, 0)


def rows_of(base: ms.Encoder, manual: Manual, others: Sequence[Manual]) -> Iterator[Row]:
    """Yield a row of each arm and number of labels: page → titles and the sum of their precision, of each part."""
    choices = {start: choose(base, others, start) for start in (IDENTITY, *STARTS)}
    starts = {
        start: [learn(base, others, start, each.rates, seed) for seed in range(1 if start == IDENTITY else SEEDS)]
        for start, each in choices.items()
    }
    shown = {start: [*each.rates, *each.point, round(each.score, 4)] for start, each in choices.items()}
    for count in COUNTS:
        found: dict[str, list[dict[str, list[float]]]] = {}
        for seed in range(DRAWS):
            labels = manual.labels(count, seed)
            parts = manual.parts(labels)
            for arm, values in arms(manual, labels, starts, choices):
                for own, numbers in zip(found.setdefault(arm, [{}, {}]), parts, strict=True):
                    for i in numbers.tolist():
                        known = own.setdefault(manual.data.questions[i].id, [0, 0.0])
                        own[manual.data.questions[i].id] = [known[0] + 1, round(known[1] + float(values[i]), 4)]
        for arm, pages in found.items():
            yield {"set": manual.name, "labels": count, "arm": arm, "pages": pages, "chosen": shown}


@click.command(cls=Command)
@click.option("--pages", required=True, type=click.Path(path_type=Path), help="Folder of `benchmarks.pages.build`.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of indexes and vectors.")
def main(pages: Path, output: Path) -> None:
    """Learn and score starts, keep the rows, and print the table."""
    manuals = [Manual.read(pages, name, output) for name in SETS]
    base, done = ms.load_encoder(ENCODER, device="cpu"), {row["set"] for row in read_rows(ROWS)}
    for place, manual in enumerate(manuals):
        if manual.name not in done:
            rows = [*rows_of(base, manual, [*manuals[place + 1 :], *manuals[:place]])]
            append_rows(ROWS, [{**row, **provenance()} for row in rows])
    click.echo(table(read_rows(ROWS)))


if __name__ == "__main__":
    main()
