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
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from numpy.typing import NDArray

import metasearch as ms
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, read_rows
from benchmarks.pages.asked import read_asked
from benchmarks.pages.memory import LABELLED, TOP
from benchmarks.pages.questions import open_index
from benchmarks.pages.systems import cached
from benchmarks.paper.adapter_cells import recipe_of
from metasearch.algorithms.base import EpisodeLearner
from metasearch.algorithms.inner_loop import Model
from metasearch.algorithms.sets import Prepared, prepare
from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.recipe import Recipe
from metasearch.config.roles import Role
from metasearch.config.seeding import stream
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import MappedEncoder, MatrixAdapter
from metasearch.encoders.maps import mapped
from metasearch.encoders.page_scores import page_scores, spread_of
from metasearch.encoders.pool_scores import balance
from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.episodes.samplers import EpisodeSampler
from metasearch.episodes.triplets import TripletSampler
from metasearch.evaluation.statistics.paired import PairedTest, clustered_test, holm, paired_test
from metasearch.pipelines.factory import make_gradients
from metasearch.runs.callbacks import SILENT
from metasearch.runs.markdown import markdown
from metasearch.search.index.local import LocalStore
from metasearch.search.query.searcher import QUERY
from metasearch.search.tune.adapt.metric import Differences
from metasearch.search.tune.adapt.searched import SearchedIndex
from metasearch.search.tune.steps import ANSWERED, REMEMBERED
from metasearch.training.schedule import schedule
from metasearch.training.trainer import Trainer

ROWS = RESULTS / "starts.jsonl"
SETS = (
    "debian-faq", "gnome60-no-titles", "debian-reference-no-titles", "developers-reference-no-titles", "maint-guide"
)  # fmt: skip
ENCODER = "e5"
COUNTS, DRAWS, SEEDS, TESTED = (32, 128), 3, 3, 0.2
"""Labels, draws of them, seeds of a start, and the share of pages that have no label in any draw."""
IDENTITY, STARTS = "identity", ("maml", "reptile", "align")
RATES, STEPS = (0.1, 1.0), (5, 25)
"""Of the descent on labels. On the FAQ a rate of 10 gains 1 more on labelled pages, and loses nearly all other ones."""
GRID = ((1e-3, 0.2), (3e-3, 1.0))
"""Outer and inner rates of the learners."""
EPISODES = ("episodes.k=16", "episodes.q=16", "episodes.n_neg=1", "episodes.queries=similar", "episodes.similar_top=1")
"""The question that is most like another one is its translation: Y and Z ask for the pages of X."""
NONE = "no labels"
Array = NDArray[Any]


class Known:
    """Vectors of texts that are known."""

    device = torch.device("cpu")

    def __init__(self, vectors: Mapping[tuple[Role, str], Array]) -> None:
        self.vectors = vectors
        self._none = next(iter(vectors.values()))[None][:0]

    @classmethod
    def of(cls, index: SearchedIndex, data: RetrievalData) -> "Known":
        """Return the vectors of the questions and candidates of an index."""
        texts: tuple[tuple[Role, Any], ...] = ((QUERY, data.questions), ("candidate", data.candidates))
        keys = {role: list(dict.fromkeys(each.text for each in own)) for role, own in texts}
        pairs = (zip(own, index.encoder.encode(own, role), strict=True) for role, own in keys.items())
        return cls({(role, text): vector for role, own in zip(keys, pairs, strict=True) for text, vector in own})

    def encode(self, texts: Sequence[str], role: Role) -> Array:
        """Return unit vectors of texts, `(len(texts), D)`."""
        return np.stack([self.vectors[role, text] for text in texts]) if len(texts) else self._none


@dataclass(frozen=True, eq=False)
class Manual:
    """Titles and passages of a manual, with their vectors as its index searches them.

    Attributes:
        data: titles, whose ids are their pages, and passages in the order of their pages.
        encoder: gives their vectors.
        starts: first passage of each page, `(P,)`.
        languages: the pages of each language.
        right: whether a title asks for a page, `(Q, P)`.
    """

    name: str
    index: SearchedIndex
    data: RetrievalData
    encoder: Known
    starts: Array
    languages: Sequence[Array]
    right: Array

    @classmethod
    def read(cls, pages: Path, name: str, output: Path) -> "Manual":
        """Return a manual from its index, which is made unless it is there."""
        (asked,) = read_asked(pages, "", name)
        folder = output / f"titles-{name}-{ENCODER}"
        searcher = ms.open_searcher(folder) if folder.exists() else open_index(asked, ENCODER, output)
        store = searcher.store
        assert isinstance(store, LocalStore)
        titles = tuple(Question(*each.pages, each.language, each.text, *each.pages) for each in asked.questions)
        texts = list(dict.fromkeys(asked.texts))
        vectors = cached(lambda: searcher.encoder.encode(texts, QUERY), (ENCODER, QUERY, *texts), output / "vectors")
        passages = sorted(
            (
                Candidate(f"passage {i}", each.language, each.text, "", (Path(each.file).stem,), page=each.file)
                for i, each in enumerate(store.passages_by_place())
            ),
            key=lambda each: each.page,
        )
        plan = replace(store.plan, adapter=None)
        index = SearchedIndex(store, tuple(passages), dict(zip(texts, vectors, strict=True)), plan)
        starts = np.unique([each.page for each in passages], return_index=True)[1]
        first = [passages[i] for i in starts]
        tags, names = np.array([each.language for each in first]), np.array([Path(each.page).stem for each in first])
        languages = [np.flatnonzero(tags == tag) for tag in np.unique(tags)]
        right = np.array([title.id for title in titles])[:, None] == names[None, :]
        data = RetrievalData(titles, index.passages)
        return cls(name, index, data, Known.of(index, data), starts, languages, right)

    def labels(self, count: int, seed: int) -> RetrievalData:
        """Return labelled titles of some pages in three languages, and all passages."""
        pages = stream(seed, "labels", self.name).permutation(sorted({each.id for each in self.data.questions}))
        some = pages[: int(len(pages) * (1 - TESTED))].tolist()
        spoken = [
            each for page in some for each in self.data.questions if each.id == page and each.language in LABELLED
        ]
        return replace(self.data, questions=tuple(spoken[:count]))

    def parts(self, labels: RetrievalData) -> tuple[Array, Array]:
        """Return the numbers of titles of labelled pages in other languages, and of titles of other pages."""
        known = np.array([each.id in {own.id for own in labels.questions} for each in self.data.questions])
        spoken = np.array([each.language in LABELLED for each in self.data.questions])
        return np.flatnonzero(known & ~spoken), np.flatnonzero(~known)

    def examples(self, questions: Sequence[Question], by: Sequence[str]) -> RetrievalData:
        """Return questions with a passage of each page that they ask for: the nearest to titles in languages `by`."""
        texts: dict[str, list[str]] = {}
        for each in questions:
            texts.setdefault(each.id, []).extend([each.text] if each.language in by else [])
        means = {page: self.encoder.encode(own, QUERY).mean(0) for page, own in texts.items() if own}
        found = []
        for begin, end in zip(self.starts, [*self.starts[1:], len(self.index.passages)], strict=True):
            own = self.index.passages[begin:end]
            if (page := own[0].answers[0]) in means:
                vectors = self.encoder.encode([each.text for each in own], "candidate")
                found.append(
                    replace(own[int((vectors @ means[page]).argmax())], language=Path(own[0].page).parent.name)
                )
        return RetrievalData(tuple(each for each in questions if each.id in means), tuple(found))

    def scores(self, matrix: Array) -> Array:
        """Return balanced scores of pages for all titles through an adapter, `(Q, P)`."""
        queries = self.encoder.encode([each.text for each in self.data.questions], QUERY)
        documents = self.encoder.encode([each.text for each in self.data.candidates], "candidate")
        found = page_scores(mapped(queries, matrix) @ documents.T, self.starts, self.index.plan.sharpness)
        balance(found, self.languages)
        return found

    def gains(self, labels: RetrievalData) -> Array:
        """Return what pages gain for titles by labelled queries, `(Q, P)`."""
        found, number = np.zeros(self.right.shape), {}
        for i, start in enumerate(self.starts):
            number[self.index.passages[start].page] = i
        labelled, pages = self.index.labelled(labels)
        queries = self.encoder.encode([each.text for each in self.data.questions], QUERY)
        for row, (own, gain) in enumerate(labelled.recall(queries) if labelled else []):
            found[row, [number[pages[i]] for i in own]] = gain * spread_of(self.index.plan.sharpness or 0)
        return found

    def precisions(self, scores: Array) -> Array:
        """Return the average precision of all titles, `(Q,)`."""
        order = np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
        hits = np.take_along_axis(self.right, order, 1)
        precision = np.cumsum(hits, 1) / np.arange(1, TOP + 1)[: hits.shape[1]]
        return np.asarray((precision * hits).sum(1) / np.minimum(self.right.sum(1), TOP))


# Starts.


class Turns:
    """Episodes of one manual after another; Y asks in another language for pages that X asks for, Z in a third one."""

    def __init__(self, manuals: Sequence[Manual], recipe: Recipe, seed: int) -> None:
        self._samplers = [[*self._of(each, recipe, seed)] for each in manuals]

    @staticmethod
    def _of(manual: Manual, recipe: Recipe, seed: int) -> Iterator[EpisodeSampler]:
        asked = manual.data.questions_by_language
        others = sorted({*asked} - {*LABELLED})
        for own, one, other in (
            (own, *two) for own, two in product(LABELLED, zip(others, others[1:] + others[:1], strict=True))
        ):
            tags = (own, one, other)
            pages = set.intersection(*({each.id for each in asked.get(tag, ())} for tag in tags))
            some = [each for each in manual.data.questions if each.id in pages and each.language in tags]
            data = manual.examples(some, LABELLED)
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
        Trainer(learner, gradients, steps, *rules, dev=lambda: 0.0, callback=SILENT, seed=seed).fit()
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
        data = manual.examples(labels.questions, LABELLED)
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
    behind = Differences(MappedEncoder(manual.encoder, before), manual.index.passages)
    return np.asarray(behind.adapter(ANSWERED, labels) @ before)


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


# The table.


def differences(rows: Sequence[Row], arm: str, counts: Sequence[int], part: int) -> tuple[list[float], list[str]]:
    """Return the differences of titles from what ships, page by page, and the page of each, `(n,)`."""
    last = {(row["set"], row["labels"], row["arm"]): row["pages"][part] for row in rows}
    values, pages = list[float](), list[str]()
    for name, count in product(SETS, counts):
        base = last[name, count, REMEMBERED]
        for page, (size, total) in last[name, count, arm].items():
            values += [(total - base[page][1]) / size] * int(size)
            pages += [f"{name} {page}"] * int(size)
    return values, pages


def tested(rows: Sequence[Row], arm: str, counts: Sequence[int], part: int = 0) -> PairedTest:
    """Return the test of an arm against what ships, clustered by page."""
    values, pages = differences(rows, arm, counts, part)
    return clustered_test(values, [0.0] * len(values), pages)


def by_manual(rows: Sequence[Row], arm: str) -> PairedTest:
    """Return the test over manuals."""
    values, pages = map(np.array, differences(rows, arm, COUNTS, 0))
    sets = np.array([page.split()[0] for page in pages.tolist()])
    means = [float(values[sets == name].mean()) for name in SETS]
    return paired_test(means, [0.0] * len(means))


def table(rows: Sequence[Row]) -> str:
    """Return the differences of mAP@20 from what ships, on labelled pages and on others; p after Holm's correction."""
    names = [arm for arm in dict.fromkeys(row["arm"] for row in rows) if arm != REMEMBERED]
    adjusted = holm([tested(rows, arm, COUNTS).p for arm in names])

    def cell(test: PairedTest) -> str:
        return f"{100 * test.mean:+.1f} [{100 * (test.low or 0):+.1f}, {100 * (test.high or 0):+.1f}]"

    lines = [
        (
            arm, *(cell(tested(rows, arm, [count])) for count in COUNTS), cell(by_manual(rows, arm)),
            "< 0.001" if (p or 0) < 0.001 else f"{p:.3f}", cell(tested(rows, arm, COUNTS, 1)),
        )
        for arm, p in zip(names, adjusted, strict=True)
    ]  # fmt: skip
    heads = [f"labelled pages, {count} labels" for count in COUNTS]
    return markdown(("Δ vs what ships", *heads, "the same over five manuals", "Holm's p", "other pages"), lines)


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
