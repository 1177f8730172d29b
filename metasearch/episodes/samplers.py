"""Samplers: they draw the episodes for each outer step from a benchmark."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.recipe import Episodes, Recipe
from metasearch.config.seeding import stream
from metasearch.config.task import PHASES, Phase
from metasearch.data.benchmark import Benchmark
from metasearch.data.folds import hold_out, with_labels
from metasearch.data.records import Data, Question, RetrievalData, ScoredPair, SimilarityData, TranslationData
from metasearch.episodes.episode import Embed, Episode, LabelledSet, Triplet
from metasearch.episodes.triplets import NearestCandidates, TripletSampler
from metasearch.errors import ConfigError, DataError


class PairSampler:
    """Draws scored pairs (MAML-Align paper, section 4.2) from one split, without replacement within a set.

    Several languages take turns. Similar queries, graded negatives and translations of questions are a `ConfigError`.
    """

    def __init__(self, data: SimilarityData, settings: Episodes) -> None:
        for key in ("queries", "negatives"):
            value = getattr(settings, key)
            if value != "random":
                raise ConfigError(f"episodes.{key}: '{value}' is only for retrieval tasks; use 'random'")
        if settings.translations:
            raise ConfigError("episodes.translations: scored pairs have no questions; only for retrieval tasks")
        self.data = data

    def check(self, variant: Variant, count: int, where: str) -> None:
        """Raise `DataError` if a set for this variant and size cannot be drawn."""
        for language, need in self._shares(variant, count).items():
            have = len(self._pairs(variant, language))
            if have < need:
                raise DataError(
                    f"{where}: {count} pairs of {variant} need {need} pairs {variant.query}-{language}; "
                    f"there are {have}. Lower it with --set, or use more data"
                )

    def draw(self, variant: Variant, count: int, rng: np.random.Generator, like: LabelledSet | None) -> LabelledSet:
        """Draw a set of `count` pairs; `like` is ignored."""
        drawn = {
            language: iter(rng.choice(len(self._pairs(variant, language)), size=need, replace=False))
            for language, need in self._shares(variant, count).items()
        }
        languages = [variant.candidates[i % len(variant.candidates)] for i in range(count)]
        return LabelledSet(variant, tuple(self._pairs(variant, code)[next(drawn[code])] for code in languages))

    def _pairs(self, variant: Variant, language: str) -> tuple[ScoredPair, ...]:
        return self.data.by_languages.get(frozenset({variant.query, language}), ())

    @staticmethod
    def _shares(variant: Variant, count: int) -> dict[str, int]:
        each, rest = divmod(count, len(variant.candidates))
        # With fewer pairs than languages the last ones give none, and need none.
        return {code: share for i, code in enumerate(variant.candidates) if (share := each + (i < rest))}


class QuestionTranslations:
    """Add a translated question, with the same id, to each triplet.

    The language is drawn evenly, for each triplet, among the languages of the episode's arrangement with that question.
    So no language that a mode does not train on is ever seen. `whole` has further questions to draw translations from.

    Raises:
        ConfigError: an arrangement has one language only.
        DataError: a question that can be drawn has no translation.
    """

    def __init__(
        self, data: RetrievalData, arrangements: Sequence[Arrangement], where: str, whole: RetrievalData | None = None
    ) -> None:
        self._questions = {(question.language, question.id): question for question in (whole or data).questions}
        for arrangement in arrangements:
            for variant in arrangement.variants:
                others = sorted(arrangement.languages - {variant.query})
                if not others:
                    raise ConfigError(
                        f"{where}: {arrangement} has no language but {variant.query} to translate questions into; "
                        "choose a mode with several languages, or omit it"
                    )
                for question in data.askable(variant.query, variant.candidates):
                    if not self._of(question, arrangement):
                        raise DataError(
                            f"{where}: {arrangement} asks question '{question.id}' in {variant.query}, and it has no "
                            f"translation into {' or '.join(others)}; add one to the data, or omit it"
                        )

    def add(self, examples: LabelledSet, arrangement: Arrangement, rng: np.random.Generator) -> LabelledSet:
        """Return a set of triplets, each with a translated question."""
        translated = []
        for triplet in cast("tuple[Triplet, ...]", examples.examples):
            found = self._of(triplet.question, arrangement)
            translated.append(replace(triplet, translation=found[int(rng.integers(len(found)))]))
        return LabelledSet(examples.variant, tuple(translated))

    def _of(self, question: Question, arrangement: Arrangement) -> list[Question]:
        """Return a question's translations, sorted by language code."""
        keys = [(code, question.id) for code in sorted(arrangement.languages - {question.language})]
        return [self._questions[key] for key in keys if key in self._questions]


class EpisodeSampler:
    """Draws episode i of a phase, from (seed, phase, i) and, for graded negatives, the encoder's present weights.

    Arrangements take turns, so that each has the same number of episodes (MAML-Align paper, Table 4). The first set
    has k examples, each further one q; each set has a random stream of its own. Translations are drawn last, so that
    the rest of a set is the same without them.

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
        """Return an outer step's meta-batch: episodes `step * size` to `step * size + size - 1`."""
        return [self.episode(step * size + i) for i in range(size)]

    def _size(self, position: int) -> int:
        return self.settings.q if position else self.settings.k


# The episodes of a benchmark: which sampler draws for which phase.


def samplers(
    benchmark: Benchmark, recipe: Recipe, seed: int, valid: Data | None = None, embed: Embed | None = None
) -> dict[Phase, EpisodeSampler]:
    """Return the episode sampler of each phase: meta-train draws from train, meta-valid from dev or its part `valid`.

    Similar queries, graded and mined negatives need `embed`. `DataError` where the data is too small for the recipe.
    """
    parts, arrangements = _parts(benchmark, recipe, seed, valid), benchmark.arrangements
    sets = {phase: _sets(part, recipe, embed, arrangements[phase]) for phase, part in parts.items()}
    translations = _translations(benchmark, recipe, parts)
    return {
        phase: EpisodeSampler(each, arrangements[phase], recipe.episodes, phase, seed, translations.get(phase))
        for phase, each in sets.items()
    }


def check_sizes(benchmark: Benchmark, recipe: Recipe, seed: int = 0) -> None:
    """Raise `DataError` when the data is too small for the recipe, or lacks what it draws; needs no encoder."""
    valid = hold_out(benchmark.split.dev, recipe.budget.dev_holdout)[0]
    if recipe.budget.meta_valid and (lacking := benchmark.only_translated):
        raise DataError(
            f"dev is not translated and has no rows in {', '.join(lacking)} for meta-valid; use --set "
            "budget.meta_valid=0"
        )
    samplers(benchmark, recipe, seed, valid)


def _parts(benchmark: Benchmark, recipe: Recipe, seed: int, valid: Data | None) -> dict[Phase, Data]:
    """Return the data for each phase; a phase without episodes may have any amount."""
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
    """Return the samplers for translated questions per phase; empty if not requested."""
    if not recipe.episodes.translations:
        return {}
    found = {}
    for phase, part in parts.items():
        # A translation needs no label: those of a question that has one are there, whatever was taken away.
        whole = benchmark.split.train if phase == "meta-train" else part
        if isinstance(part, RetrievalData) and isinstance(whole, RetrievalData):  # what else there is refuses them
            where = f"task '{benchmark.task.name}', {phase}: episodes.translations"
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
    assert isinstance(data, SimilarityData), "translation tasks are for evaluation only"
    return PairSampler(data, recipe.episodes)
