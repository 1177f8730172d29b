"""Training data and recipe of a step.

Fine-tuning compares a question with the answers of the other questions of its set. A few labels in several languages
fill one set and not one for each language pair, so that all of them count as one language.
"""

from dataclasses import replace
from typing import cast

from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.library import load_mode, load_recipe
from metasearch.config.recipe import Recipe
from metasearch.config.seeding import stream
from metasearch.config.task import PHASES
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import RetrievalData, grouped
from metasearch.episodes.samplers import check_sizes
from metasearch.errors import DataError
from metasearch.pipelines.factory import learner_class
from metasearch.search.tune.steps import FINE_TUNE, Step

_STEPS, _RATE = 6, 1.2e-4
"""Outer steps and learning rate of fine-tuning where labels fill two sets: half and twice those of the recipe.

They gain as much in less time. With fewer labels, the recipe's gain more (docs/results/speed.md).
"""
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
    # There is no dev split, so that both phases are one.
    steps, rate = min(budget.meta_train + budget.meta_valid, _MOST_EPISODES), recipe.outer.lr
    if tuned and not few:
        steps, rate = _STEPS, _RATE
    once = {"meta_train": steps, "meta_valid": 0, "epochs": 1, "eval_every": 0, "patience": 0}
    outer = recipe.outer.model_copy(update={"lr": rate})
    recipe = recipe.model_copy(update={"budget": budget.model_copy(update=once), "outer": outer})
    return trained, _fit_sizes(trained, recipe, min(len(questions), _FEW) if few and tuned else len(questions))


def _in_one_language(benchmark: Benchmark, links: int) -> Benchmark:
    """Return a benchmark of questions with all texts of train in one language, `mul`.

    An episode has `links` sets of texts.
    """
    data = cast(RetrievalData, benchmark.split.train)
    questions = tuple(replace(question, language=_SEVERAL) for question in data.questions)
    candidates = tuple(replace(candidate, language=_SEVERAL) for candidate in data.candidates)
    split = replace(benchmark.split, train=replace(data, questions=questions, candidates=candidates))
    chain = Arrangement((Variant(_SEVERAL, (_SEVERAL,)),) * links)
    return replace(benchmark, arrangements={phase: [chain] for phase in PHASES}, split=split)


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
