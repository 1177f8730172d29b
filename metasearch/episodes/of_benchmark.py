"""The episodes of a benchmark: which sampler draws for which phase."""

import math
from collections.abc import Mapping, Sequence

from metasearch.data.benchmark import Benchmark
from metasearch.data.folds import hold_out
from metasearch.data.labels import with_labels
from metasearch.data.records import Data, RetrievalData, SimilarityData
from metasearch.data.translation import TranslationData
from metasearch.episodes.episode import Embed
from metasearch.episodes.mining import NearestCandidates
from metasearch.episodes.pairs import PairSampler
from metasearch.episodes.sampler import EpisodeSampler
from metasearch.episodes.translations import QuestionTranslations
from metasearch.episodes.triplets import TripletSampler
from metasearch.errors import ConfigError, DataError
from metasearch.spec.arrangement import Arrangement
from metasearch.spec.recipe import Recipe
from metasearch.spec.task import PHASES, Phase


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
            f"dev is not translated, and has no rows in {', '.join(lacking)} for episodes of meta-valid: "
            "--set budget.meta_valid=0 draws none"
        )
    # Other sizes would not translate a question, so that none are said to fit.
    _translations(benchmark, recipe, _parts(benchmark, recipe, seed, valid))
    try:
        samplers(benchmark, recipe, seed, valid)
    except DataError as error:
        raise DataError(f"{error}: {_what_fits(benchmark, recipe, seed, valid)}") from None


def _what_fits(benchmark: Benchmark, recipe: Recipe, seed: int, valid: Data) -> str:
    """Return the largest settings of episodes that fit the data, and about how much data fits those of the recipe."""
    smallest = {"k": 1, "q": 1, "n_neg": 1}

    def fits(**settings: int) -> bool:
        episodes = recipe.episodes.model_copy(update=smallest | settings)
        try:
            samplers(benchmark, recipe.model_copy(update={"episodes": episodes}), seed, valid)
        except DataError:
            return False
        return True

    asked = {name: getattr(recipe.episodes, name) for name in smallest}
    # The three are independent of each other: two sizes of sets, and the negatives of each example.
    largest = {name: next((n for n in range(asked[name], 0, -1) if fits(**{name: n})), 0) for name in smallest}
    have = len(benchmark.data.groups)
    if not all(largest.values()):
        if recipe.labels:
            return f"no setting fits {recipe.labels} labels"
        # Of an article or row at least one example comes, and dev has a k-th of them.
        enough = max(asked["k"], asked["q"], asked["n_neg"] + 1) * benchmark.task.folds.k
        return f"no setting fits, but about {enough} articles or rows do; there are {have}"
    options = " ".join(f"--set episodes.{name}={n}" for name, n in largest.items() if n < asked[name])
    if recipe.labels and options:
        return f"{options} fits, and so do more labels than {recipe.labels}"
    enough = max(math.ceil(have * asked[name] / largest[name]) for name in smallest)
    return f"{options} fits, and so do about {enough} articles or rows; there are {have}"


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
    raise ConfigError("no episodes can be drawn of translations: they are for evaluation only")


def needs_vectors(recipe: Recipe) -> bool:
    """Say whether drawing episodes of a recipe takes vectors of the encoder."""
    return (recipe.episodes.queries, recipe.episodes.negatives) != ("random", "random")
