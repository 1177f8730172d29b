"""Adapts a frozen encoder to a few labelled questions of tasks that no training has seen, from several starts.

A task is the questions in one language of a site, or of the articles of a test fold of LAReQA. Labels are answers in
all languages. A start is an adapter that was trained on other sites (or articles) and on few languages, with its rates:
by fine-tuning, MAML, Meta-SGD or Reptile. Each is adapted by `INNER_STEPS` of gradient descent. The identity is, too,
and `closed form` is the adapter of `metasearch adapt` for the same labels. All rates are chosen on a site or articles
of the languages that are trained on, with a start that did not see them (dev). That of test has seen them, too.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import metasearch as ms
from benchmarks.common.documents import read
from benchmarks.common.rows import RESULTS, Row
from benchmarks.pages.adapt import precisions
from benchmarks.pages.pool import read_queries
from benchmarks.paper.adapter_cells import OUTER, STOPPED, recipe_of, search
from metasearch.algorithms.base import EpisodeLearner
from metasearch.algorithms.inner_loop import Model
from metasearch.algorithms.sets import Prepared, prepare
from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.recipe import Recipe
from metasearch.config.roles import MaxLength
from metasearch.config.seeding import stream
from metasearch.data.records import Candidate, Question, RetrievalData, grouped
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.maps import around_mean, estimate, mapped, second_moment
from metasearch.encoders.neutral import ProjectedEncoder
from metasearch.encoders.protocols import CachedEncoder, TextEncoder
from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.episodes.samplers import EpisodeSampler
from metasearch.episodes.triplets import TripletSampler
from metasearch.errors import Interrupted
from metasearch.pipelines.factory import make_gradients
from metasearch.pipelines.frozen import encode_once
from metasearch.runs.callbacks import SILENT
from metasearch.search.documents.chunking import Settings
from metasearch.search.tune.adapt.metric import metric_adapter
from metasearch.training.schedule import schedule
from metasearch.training.trainer import Trainer

ROWS = RESULTS / "adapter_shots.jsonl"
SITES = ("gnome", "debian-faq", "debian-reference", "developers-reference")
PAGES, CHARACTERS = 200, 400
"""Pages of each site, drawn by the hash of their names, and characters of each, without its title."""
SHOTS = (0, 1, 4, 8, 16, 32)
CHOSEN = {1: 4, 4: 4, 8: 16, 16: 16, 32: 16}
"""Shots on test → shots on dev that chose the rate."""
DRAWS, DEV_DRAWS, INNER_STEPS = 2, 2, 5
TEST = (0.0002, 0.001, 0.005, 0.02, 0.1, 0.5)
"""Rates of an adaptation; for Meta-SGD, multiples of its learned rates by their size before training."""
UNKNOWN = "closed form without translations of tested pages"
LONG = " long"
"""Ends the name of a start that was trained for `LONGER`, at the rates `AT`, the best of a few on dev of two folds."""
LONGER, AT = ("budget.meta_train=800", "budget.meta_batch=4"), (3e-4, 0.02)
STARTS = ("identity", "fine-tune", "maml", "meta-sgd", "reptile", f"reptile{LONG}")
CLOSED, OTHERS = "closed form", "closed form of training sites"
AFTER = {start: f"closed form after {start}" for start in ("fine-tune", "reptile", "reptile long")}
UNKNOWN_AFTER = {start: f"{UNKNOWN}, after {start}" for start in AFTER}
SETS = ("episodes.n_neg=2", "episodes.k=16", "episodes.q=16")
SEEN = {"pages": ("de", "en", "fr"), "lareqa-sentences": ("ar", "de", "el", "hi")}
Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Part:
    """Questions and candidates of a site or of articles, and the encoder whose vectors they have."""

    name: str
    data: RetrievalData
    encoder: TextEncoder

    @cached_property
    def documents(self) -> Array:
        """Vectors of candidates, `(C, D)`."""
        return self.encoder.encode([each.text for each in self.data.candidates], "candidate")

    @cached_property
    def languages(self) -> list[Array]:
        """The candidates of each language."""
        tags = np.array([each.language for each in self.data.candidates])
        return [np.flatnonzero(tags == tag) for tag in np.unique(tags)]

    def queries(self, questions: Sequence[Question]) -> Array:
        """Return vectors of questions, `(n, D)`."""
        return self.encoder.encode([each.text for each in questions], "question")

    def translations(self, without: Collection[str] = ()) -> Array:
        """Return differences of translated candidates from their mean, `(m, D)`, without answers to some questions."""
        rows = grouped(range(len(self.documents)), lambda i: self.data.candidates[i].answers)
        known = [own for answers, own in rows.items() if not {*answers} & {*without}]
        return np.concatenate([self.documents[:0], *(around_mean([self.documents[[i]] for i in own]) for own in known)])

    @cached_property
    def _all_translations(self) -> Array:
        return self.translations()

    def closed_form(
        self, questions: Sequence[Question], before: Array | None = None, without: Collection[str] = ()
    ) -> Array:
        """Return the adapter of `metasearch adapt` for labelled questions, behind another adapter if there is one.

        It knows which candidates are translations of each other, but for the answers to the questions `without`.
        """
        translations = self.translations(without) if without else self._all_translations
        queries = self.queries(questions) if questions else self.documents[:0]
        queries = mapped(queries, before) if before is not None and questions else queries
        place = {each.id: i for i, each in enumerate(self.data.candidates)}
        rows = [[place[c.id] for own in self.data.answers[q.id].values() for c in own] for q in questions]
        answers = [self.documents[own] - query for own, query in zip(rows, queries, strict=True)]
        offset = self.documents.mean(0) - queries.mean(0) if questions else 0 * self.documents[0]
        joined = np.concatenate([self.documents[:0], *answers])
        # Translations with β = 1 in the same inverse, where an index has its map of translations before an adapter.
        inverse = np.linalg.inv(metric_adapter(offset, joined, len(questions)).astype(np.float64))
        found: Array = np.linalg.inv(inverse + second_moment(translations)).astype(np.float32)
        return found if before is None else found @ before


@dataclass(frozen=True, eq=False)
class Task:
    """Questions of a part in one language, in a random order: of the first `most` some are labelled."""

    part: Part
    language: str
    order: Sequence[Question]
    most: int
    _supports: dict[int, Prepared] = field(default_factory=dict)

    def support(self, count: int, recipe: Recipe, base: ms.Encoder) -> Prepared:
        """Return the triplets of the first questions, with answers in all languages and random negatives."""
        if count not in self._supports:
            sampler, triplets = TripletSampler(self.part.data, recipe.episodes, recipe.loss), []
            for i, question in enumerate(self.order[:count]):
                variant = Variant(question.language, tuple(sorted(self.part.data.answers[question.id])))
                triplets += sampler.triplets([question], variant, stream(0, self.part.name, self.language, i))
            encoder = AdaptedEncoder(base, MatrixAdapter(base.dimension()), vectors=self.part.encoder)
            self._supports[count] = prepare(encoder, LabelledSet(variant, tuple(triplets)))
        return self._supports[count]

    @property
    def scored(self) -> set[str]:
        """Ids of the questions that are scored."""
        return {question.id for question in self.order[self.most :]}

    @cached_property
    def _scored(self) -> tuple[Array, Array]:
        asked = self.order[self.most :]
        right = [[question.id in each.answers for each in self.part.data.candidates] for question in asked]
        return self.part.queries(asked), np.array(right)

    def score(self, matrix: Array) -> Array:
        """Return mAP@20 of the other questions with an adapter, without and with balanced scores, `(2,)`."""
        queries, right = self._scored
        scores = mapped(queries, matrix) @ self.part.documents.T
        return np.asarray(precisions(scores, self.part.languages, right).mean(1))


def tasks(part: Part, draws: int, languages: Sequence[str], counts: Iterable[int]) -> list[Task]:
    """Return the tasks of a part in some languages, some draws of each, for numbers of shots."""
    found = []
    for language, draw in product(languages, range(draws)):
        asked = part.data.questions_by_language[language]
        order = stream(draw, "task", part.name, language).permutation(len(asked))
        found.append(Task(part, language, [asked[i] for i in order], max(counts)))
    return found


@dataclass(frozen=True, eq=False)
class Fold:
    """Parts that are trained on, chosen by, and tested on."""

    name: str
    base: ms.Encoder
    train: Sequence[Part]
    dev: Sequence[Part]
    test: Sequence[Part]
    seen: Sequence[str]

    @cached_property
    def dev_tasks(self) -> list[Task]:
        """The tasks that choose rates."""
        return [task for part in self.dev for task in tasks(part, DEV_DRAWS, self.seen, CHOSEN.values())]

    @cached_property
    def test_tasks(self) -> list[Task]:
        """The tasks of test, in all languages."""
        return [
            task for part in self.test for task in tasks(part, DRAWS, sorted(part.data.questions_by_language), SHOTS)
        ]

    def learn(
        self, start: str, outer: float | None, inner: float | None, seed: int, dev: bool
    ) -> tuple[EpisodeLearner, Recipe]:
        """Return a learner whose encoder has a new adapter, trained on parts in turn, with `dev` on these, too."""
        parts = [*self.train, *(self.dev if dev else ())]
        name = "maml" if start == "identity" else start.removesuffix(LONG)
        recipe = recipe_of(name, outer or OUTER[0], inner, 0, *SETS, *(LONGER if start.endswith(LONG) else ()))
        width = self.base.dimension()
        encoder = AdaptedEncoder(self.base, MatrixAdapter(width), vectors=self.train[0].encoder)
        learner = ms.make_learner(recipe, encoder)
        assert isinstance(learner, EpisodeLearner)
        if start != "identity":
            source = ("meta-train", recipe.budget.meta_train, Turns(parts, self.seen, recipe, seed))
            steps = schedule(recipe.budget, [source], None)
            rules = (recipe.outer, recipe.budget)
            # Dev chooses rates, not steps: the last weights are kept.
            trainer = Trainer(
                learner, make_gradients(encoder), steps, *rules, dev=lambda: 0.0, callback=SILENT, seed=seed
            )
            if trainer.fit().reason == "interrupted":
                raise Interrupted(STOPPED)
        return learner, recipe


class Turns:
    """Episodes of one part after another: from a language to itself or to the next one, with answers in all."""

    def __init__(self, parts: Sequence[Part], languages: Sequence[str], recipe: Recipe, seed: int) -> None:
        asked = [Variant(language, tuple(languages)) for language in languages]
        chains = [Arrangement((one, other)) for one, other in zip(asked, asked[1:] + asked[:1], strict=True)]
        chains += [Arrangement((one, one)) for one in asked]
        draws = [TripletSampler(part.data, recipe.episodes, recipe.loss) for part in parts]
        self._samplers = [EpisodeSampler(each, chains, recipe.episodes, "meta-train", seed) for each in draws]

    def batch(self, step: int, size: int) -> list[Episode]:
        """Return a step's episodes."""
        count = len(self._samplers)
        numbers = range(step * size, (step + 1) * size)
        return [self._samplers[number % count].episode(number // count) for number in numbers]


def moved(learner: EpisodeLearner, recipe: Recipe, task: Task, count: int, rate: float) -> Array:
    """Return the adapter after gradient steps on the labels of a task, `(D, D)`."""
    first = getattr(learner.options, "inner_lr", rate)
    learned = [value.detach() * (rate / first) for value in learner.learned.values()]
    encoder = learner.encoder
    assert isinstance(encoder, AdaptedEncoder)
    model = Model(encoder.embedder, learned or rate, first_order=True)
    (delta,) = learner.adapted(model, task.support(count, recipe, encoder.base), INNER_STEPS).weights
    return np.asarray((torch.eye(len(delta)) + delta.detach()).numpy())


def matrix_of(learner: EpisodeLearner) -> Array:
    """Return the adapter of a start, `(D, D)`."""
    assert isinstance(learner.encoder, AdaptedEncoder)
    return np.asarray(learner.encoder.adapter.matrix().detach().numpy())


def dev_scores(fold: Fold, start: str, outer: float | None, inner: float | None) -> Row:
    """Return a start's balanced scores on dev: rate of the adaptation → shots → score."""
    learner, recipe = fold.learn(start, outer, inner, 0, dev=False)

    def score(rate: float, count: int) -> float:
        own = [task.score(moved(learner, recipe, task, count, rate))[1] for task in fold.dev_tasks]
        return round(float(np.mean(own)), 5)

    return {f"{rate:g}": {str(k): score(rate, k) for k in sorted(set(CHOSEN.values()))} for rate in TEST}


def test_scores(
    fold: Fold, start: str, outer: float | None, inner: float | None, seed: int, rates: Mapping[int, float]
) -> Row:
    """Return the scores on test of a start, and of closed forms: arm → language → shots → without and with balance."""
    learner, recipe = fold.learn(start, outer, inner, seed, dev=True)
    begin = matrix_of(learner)

    def descend(task: Task, count: int) -> Array:
        return moved(learner, recipe, task, count, rates[count]) if count else begin

    arms: dict[str, Callable[[Task, int], Array]] = {start: descend}
    if start in AFTER:
        arms |= {
            AFTER[start]: lambda task, count: task.part.closed_form(task.order[:count], begin),
            UNKNOWN_AFTER[start]: lambda task, count: task.part.closed_form(task.order[:count], begin, task.scored),
        }
    if start == "identity":
        other = np.mean([part.closed_form(part.data.questions) for part in (*fold.train, *fold.dev)], axis=0)
        arms |= {
            CLOSED: lambda task, count: task.part.closed_form(task.order[:count]),
            UNKNOWN: lambda task, count: task.part.closed_form(task.order[:count], without=task.scored),
            OTHERS: lambda *_: other,
        }
    found: dict[str, Any] = {}
    for language, own in grouped(fold.test_tasks, lambda task: task.language).items():
        for arm, adapter in arms.items():
            by_shots = {str(k): np.mean([t.score(adapter(t, k)) for t in own], 0).round(5).tolist() for k in SHOTS}
            found.setdefault(arm, {})[language] = by_shots
    return found


# The folds: sites, and articles of LAReQA.


def folds(name: str, bench: "Any", pages: Path) -> Iterator[Fold]:
    """Yield the folds of a set."""
    seen = SEEN[name]
    if name == "lareqa-sentences":
        for number in range(5):
            encoder, split = bench.adapted(number).vectors, bench.fold(number).split
            train, dev = ([Part("articles", in_languages(each, seen), encoder)] for each in (split.train, split.dev))
            yield Fold(str(number), bench.encoder, train, dev, [Part("articles", split.test, encoder)], seen)
        return
    sites = {site: site_data(pages, site) for site in SITES}
    base = ms.load_encoder("e5", MaxLength(), device="cpu")
    vectors = encode_once(base, tuple(sites.values()), bench.folder / "vectors")
    parts = {site: Part(site, data, projected(vectors, [data])) for site, data in sites.items()}
    for number, site in enumerate(SITES):
        others = [other for other in (*SITES[number + 1 :], *SITES[:number])]
        own = [in_languages(sites[other], seen) for other in others]
        encoder = projected(vectors, own)
        trained = [Part(other, data, encoder) for other, data in zip(others, own, strict=True)]
        yield Fold(site, base, trained[1:], trained[:1], [parts[site]], seen)


def projected(vectors: TextEncoder, parts: Sequence[RetrievalData]) -> TextEncoder:
    """Return vectors through the projection of the documents of some sites, as an index has it."""
    own = grouped({(c.language, c.text) for data in parts for c in data.candidates}, lambda pair: pair[0])
    texts = {language: sorted(text for _, text in pairs) for language, pairs in sorted(own.items())}
    return CachedEncoder(
        ProjectedEncoder(vectors, estimate({k: vectors.encode(t, "candidate") for k, t in texts.items()}))
    )


def in_languages(data: RetrievalData, languages: Sequence[str]) -> RetrievalData:
    """Return the questions and candidates in some languages, of questions that have answers in all of them."""
    questions = {each for language in languages for each in data.askable(language, languages)}
    ids = {each.id for each in questions}
    kept = (each for each in data.candidates if each.language in languages and ids & {*each.answers})
    return replace(data, questions=tuple(q for q in data.questions if q in questions), candidates=tuple(kept))


def site_data(pages: Path, site: str) -> RetrievalData:
    """Return titles as questions, and the beginnings of pages, without their titles, as candidates."""
    queries = read_queries(pages / "queries" / f"{site}.jsonl", PAGES)
    files = {pages / site / each.language / f"{each.page}.html": each for each in queries}
    first: dict[str, str] = {}
    for passage in read(list(files), Settings(limit=2 * CHARACTERS, titles=False)):
        first.setdefault(passage.file, passage.text)
    questions, candidates = [], []
    for path, query in files.items():
        blocks = first.get(path.as_posix(), "").split("\n\n")
        text = "\n\n".join(blocks[query.text in blocks[0] :])[:CHARACTERS].strip()
        if text:
            uid = f"{site}/{query.page}"
            questions.append(Question(uid, query.language, query.text, uid))
            candidates.append(Candidate(f"{uid}/{query.language}", query.language, text, uid, (uid,)))
    return RetrievalData(tuple(questions), tuple(candidates))


# The cells.


def key_of(row: Row) -> tuple[object, ...]:
    """Return what a row is known by."""
    return (*tuple(row[name] for name in ("set", "fold", "start", "outer", "inner", "seed")), "dev" in row)


def chosen_rates(row: Row) -> dict[int, float]:
    """Return the best rate of an adaptation for each number of shots, from the dev scores of a start."""
    by_rate: Mapping[float, Row] = {rate: row["dev"][f"{rate:g}"] for rate in TEST}
    return {k: max(by_rate, key=lambda rate, c=str(count): by_rate[rate][c]) for k, count in CHOSEN.items()}  # type: ignore[misc]


def dev_score(row: Row) -> float:
    """Return the mean of a start's best dev scores by shots."""
    rates = chosen_rates(row)
    return float(np.mean([row["dev"][f"{rates[k]:g}"][str(k)] for k in set(CHOSEN.values())]))


def run(name: str, bench: Any, pages: Path, starts: Sequence[str], seeds: int, kept: Any) -> None:
    """Run what has no row yet: of each fold and start the choice of rates on dev, then test with some seeds."""
    for fold, start in product(folds(name, bench, pages), starts):
        _run_start({"set": name, "fold": fold.name, "start": start}, fold, seeds, kept)


def _run_start(facts: Row, fold: Fold, seeds: int, kept: Any) -> None:
    start, tried = facts["start"], []

    def score(outer: float | None, inner: float | None) -> float:
        cell = {**facts, "outer": outer, "inner": inner, "seed": 0}
        make = partial(dev_scores, fold, start, outer, inner)
        tried.append(kept.row(key_of({**cell, "dev": {}}), lambda: {**cell, "dev": make()}))
        return dev_score(tried[-1])

    if start == "identity" or start.endswith(LONG):
        score(*(AT if start.endswith(LONG) else (None, None)))
    else:
        search(score, start != "fine-tune")
    best = max(tried, key=dev_score)
    rates, point = chosen_rates(best), {name: best[name] for name in ("outer", "inner")}
    for seed in range(1 if start == "identity" else seeds):
        cell = {**facts, **point, "seed": seed}
        make = partial(test_scores, fold, start, point["outer"], point["inner"], seed, rates)
        shown = {"rates": {str(k): rate for k, rate in rates.items()}}
        kept.row(key_of(cell), lambda c=cell, m=make, r=shown: {**c, **r, "scores": m()})
