"""Samplers of episodes: what an outer step learns from, drawn from a benchmark."""

import bisect
import math
import sys
from collections.abc import Mapping, Sequence

from metasearch.config.arrangement import Arrangement
from metasearch.config.recipe import Episodes, Recipe
from metasearch.config.seeding import stream
from metasearch.config.task import PHASES, Phase
from metasearch.data.benchmark import Benchmark
from metasearch.data.folds import held_out, hold_out
from metasearch.data.labels import with_labels
from metasearch.data.records import Data, RetrievalData, SimilarityData
from metasearch.data.translation import TranslationData
from metasearch.episodes.episode import Embed, Episode, LabelledSet
from metasearch.episodes.negatives import NearestCandidates
from metasearch.episodes.pairs import PairSampler, QuestionTranslations
from metasearch.episodes.triplets import TripletSampler
from metasearch.errors import ConfigError, DataError

# Draws whole episodes.


class EpisodeSampler:
    """Draws episode i of a phase, from (seed, phase, i) and, for graded negatives, the encoder's present weights.

    Arrangements take turns, so that each has the same number of episodes (MAML-Align paper, Table 4). The first set
    has k examples, each further one q; each set has a random stream of its own. Translations are drawn last, so that
    the rest of a set is the same without them.

    Args:
        sets: draws the sets.
        arrangements: of the phase.
        settings: how to draw.
        phase: such as `meta-train`.
        seed: of the run.
        translations: adds translations of the questions, where there are to be any.

    Raises:
        DataError: the data is too small for k, q or the number of negatives.
    """

    def __init__(
        self,
        sets: TripletSampler | PairSampler,
        arrangements: Sequence[Arrangement],
        settings: Episodes,
        phase: Phase,
        seed: int,
        translations: QuestionTranslations | None = None,
    ) -> None:
        self.sets = sets
        self.arrangements = tuple(arrangements)
        self.settings = settings
        self.phase = phase
        self.seed = seed
        self.translations = translations
        for arrangement in self.arrangements:
            for i, variant in enumerate(arrangement.variants):
                sets.check(variant, self._size(i), f"{phase}, episodes.{'q' if i else 'k'}={self._size(i)}")

    def episode(self, index: int) -> Episode:
        """Return episode `index`."""
        arrangement = self.arrangements[index % len(self.arrangements)]
        drawn: list[LabelledSet] = []
        first: LabelledSet | None = None
        for i, variant in enumerate(arrangement.variants):
            rng = stream(self.seed, self.phase, index, i)
            # Like the first set, not the one before it: Z, too, resembles the support of X→Y.
            plain = self.sets.draw(variant, self._size(i), rng, like=first)
            first = first or plain
            drawn.append(self.translations.add(plain, arrangement, rng) if self.translations else plain)
        return Episode(arrangement, tuple(drawn))

    def batch(self, step: int, size: int) -> list[Episode]:
        """Return the meta-batch of an outer step: episodes `step * size` to `step * size + size - 1`."""
        return [self.episode(step * size + i) for i in range(size)]

    def _size(self, position: int) -> int:
        return self.settings.q if position else self.settings.k


# The episodes of a benchmark: which sampler draws for which phase.

_SIZES = ("k", "q", "n_neg")
"""Settings of episodes that ask for data."""


def samplers(
    benchmark: Benchmark, recipe: Recipe, seed: int, valid: Data | None = None, embed: Embed | None = None
) -> dict[Phase, EpisodeSampler]:
    """Return the episode sampler of each phase: meta-train draws from train, meta-valid from dev or its part `valid`.

    Similar queries, graded and mined negatives need vectors of the current encoder, `embed`. `DataError` where the data
    is too small for the recipe.
    """
    parts, arrangements = _parts(benchmark, recipe, seed, valid), benchmark.arrangements
    sets = {phase: _sets(part, recipe, embed, arrangements[phase]) for phase, part in parts.items()}
    translations = _translations(benchmark, recipe, parts)
    return {
        phase: EpisodeSampler(each, arrangements[phase], recipe.episodes, phase, seed, translations.get(phase))
        for phase, each in sets.items()
    }


def check_sizes(benchmark: Benchmark, recipe: Recipe, seed: int = 0) -> None:
    """Raise `DataError` when the data is too small for the recipe, or lacks what it draws; needs no encoder.

    The seed draws which questions have their labels, where the recipe takes some away.

    The message says which settings fit the data, and about how much data fits the recipe.
    """
    valid = hold_out(benchmark.split.dev, recipe.budget.dev_holdout)[0]
    if recipe.budget.meta_valid and (lacking := benchmark.only_translated):
        raise DataError(
            f"dev is not translated and has no rows in {', '.join(lacking)} for meta-valid; use --set "
            "budget.meta_valid=0"
        )
    # Other sizes would not translate a question, so that none are said to fit.
    _translations(benchmark, recipe, _parts(benchmark, recipe, seed, valid))
    try:
        samplers(benchmark, recipe, seed, valid)
    except DataError as error:
        raise DataError(f"{error}: {_what_fits(benchmark, recipe, seed, valid)}") from None


def _what_fits(benchmark: Benchmark, recipe: Recipe, seed: int, valid: Data) -> str:
    """Return the largest settings of episodes that fit the data, and about how much data fits those of the recipe."""
    parts = _parts(benchmark, recipe, seed, valid)
    by_phase = {phase: _largest(benchmark, recipe, seed, valid, phase) for phase in parts}
    # The three are independent of each other: two sizes of sets, and the negatives of each example.
    largest = {name: min(found[name] for found in by_phase.values()) for name in _SIZES}
    asked = {name: getattr(recipe.episodes, name) for name in _SIZES}
    options = " ".join(f"--set episodes.{name}={n}" for name, n in largest.items() if n < asked[name])
    fits = all(largest.values())
    if recipe.labels:
        more = f"{options} fits, and so do more labels than {recipe.labels}"
        return more if fits else f"no setting fits {recipe.labels} labels"
    # What is asked of the groups of a part grows as its largest sizes do; a group has at least one example.
    needed = {
        phase: max(
            math.ceil(len(parts[phase].groups) * asked[name] / n) if n else asked[name] + (name == "n_neg")
            for name, n in found.items()
        )
        for phase, found in by_phase.items()
        if found != asked
    }
    have = len(benchmark.data.groups)
    enough = _enough(benchmark, needed, {phase: len(part.groups) for phase, part in parts.items()}, recipe)
    if not fits:
        return f"no setting fits, but about {enough} articles or rows do; there are {have}"
    return f"{options} fits, and so do about {enough} articles or rows; there are {have}"


def _largest(benchmark: Benchmark, recipe: Recipe, seed: int, valid: Data, phase: Phase) -> dict[str, int]:
    """Return the largest k, q and number of negatives for which a phase finds data, the others 1; 0 where none does."""
    other = "meta_valid" if phase == "meta-train" else "meta_train"
    alone = recipe.model_copy(update={"budget": recipe.budget.model_copy(update={other: 0})})

    def fits(**settings: int) -> bool:
        episodes = recipe.episodes.model_copy(update=dict.fromkeys(_SIZES, 1) | settings)
        try:
            samplers(benchmark, alone.model_copy(update={"episodes": episodes}), seed, valid)
        except DataError:
            return False
        return True

    def largest(name: str) -> int:
        # What is too large at one size is at all above it.
        sizes = range(1, min(getattr(recipe.episodes, name), sys.maxsize - 1) + 1)
        return bisect.bisect_left(sizes, True, key=lambda size: not fits(**{name: size}))

    return {name: largest(name) for name in _SIZES}


def _enough(benchmark: Benchmark, needed: Mapping[Phase, int], there: Mapping[Phase, int], recipe: Recipe) -> int:
    """Return how many articles or rows give the parts of each fold as many as are needed.

    Args:
        benchmark: whose folds they are.
        needed: of the part of each phase that has too few.
        there: in the part of each phase.
        recipe: says how much of dev is held out of meta-valid.
    """
    have, folds = len(benchmark.data.groups), benchmark.task.folds
    if folds.method != "kfold":
        return max(math.ceil(have * count / max(1, there[phase])) for phase, count in needed.items())
    dev, train, share = needed.get("meta-valid", 0), needed.get("meta-train", 0), recipe.budget.dev_holdout
    # From what is just too few if nothing were rounded.
    count = max(dev, math.floor((dev - 1) / (1 - share)) - 1) if dev else 0
    while dev and count - held_out(count, share) < dev:
        count += 1
    enough = max(have + 1, folds.k * count, folds.k * train // (folds.k - 2))
    # Of folds that do not divide evenly, one has the smallest dev and another the smallest train.
    while enough // folds.k < count or enough - 2 * math.ceil(enough / folds.k) < train:
        enough += 1
    return enough


def _parts(benchmark: Benchmark, recipe: Recipe, seed: int, valid: Data | None) -> dict[Phase, Data]:
    """Return what each phase draws from; the data of one without episodes may be as small as it likes."""
    train = benchmark.split.train
    if recipe.labels is not None and not isinstance(train, TranslationData):
        variants = (variant for each in benchmark.arrangements["meta-train"] for variant in each.variants)
        train = with_labels(train, recipe.labels, seed, {variant.query for variant in variants})
    parts: dict[Phase, Data] = {"meta-train": train, "meta-valid": valid or benchmark.split.dev}
    counts = {"meta-train": recipe.budget.meta_train, "meta-valid": recipe.budget.meta_valid}
    return {phase: parts[phase] for phase in PHASES if counts[phase]}


def _translations(
    benchmark: Benchmark, recipe: Recipe, parts: Mapping[Phase, Data]
) -> dict[Phase, QuestionTranslations]:
    """Return what adds translations of questions in each phase; nothing where none are asked for."""
    if not recipe.episodes.translations:
        return {}
    found = {}
    for phase, part in parts.items():
        # A translation needs no label: those of a question that has one are there, whatever was taken away.
        whole = benchmark.split.train if phase == "meta-train" else part
        if isinstance(part, RetrievalData) and isinstance(whole, RetrievalData):  # what else there is refuses them
            where = f"task '{benchmark.task.task}', {phase}: episodes.translations"
            found[phase] = QuestionTranslations(part, benchmark.arrangements[phase], where, whole)
    return found


def _sets(
    data: Data, recipe: Recipe, embed: Embed | None, arrangements: Sequence[Arrangement]
) -> TripletSampler | PairSampler:
    if isinstance(data, RetrievalData):
        nearest = None
        if embed and recipe.episodes.negatives == "mined":
            languages = frozenset[str]().union(*(arrangement.languages for arrangement in arrangements))
            nearest = NearestCandidates(data, languages, embed)
        return TripletSampler(data, recipe.episodes, recipe.loss, embed, nearest)
    if isinstance(data, SimilarityData):
        return PairSampler(data, recipe.episodes)
    raise ConfigError("translation tasks are for evaluation only and have no episodes")


def needs_vectors(recipe: Recipe) -> bool:
    """Say whether drawing episodes of a recipe takes vectors of the encoder."""
    return (recipe.episodes.queries, recipe.episodes.negatives) != ("random", "random")
