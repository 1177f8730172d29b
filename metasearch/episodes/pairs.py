"""Draw sets of scored pairs for similarity tasks (MAML-Align paper, section 4.2)."""

from collections.abc import Sequence
from typing import cast

import numpy as np

from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.recipe import Episodes
from metasearch.data.records import Question, RetrievalData, ScoredPair, SimilarityData
from metasearch.episodes.episode import LabelledSet, TranslatedTriplet, Triplet
from metasearch.errors import ConfigError, DataError


class PairSampler:
    """Draws scored pairs from one split, without replacement within a set; several languages take turns.

    `ConfigError` for similar queries, graded negatives or translations of questions, which have no meaning here.
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


# Draws a translation of each question of a set, in a language that its episode is trained on anyway.


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
            translated.append(TranslatedTriplet(triplet, found[int(rng.integers(len(found)))]))
        return LabelledSet(examples.variant, tuple(translated))

    def _of(self, question: Question, arrangement: Arrangement) -> list[Question]:
        """Return a question's translations, sorted by language code."""
        keys = [(code, question.id) for code in sorted(arrangement.languages - {question.language})]
        return [self._questions[key] for key in keys if key in self._questions]
