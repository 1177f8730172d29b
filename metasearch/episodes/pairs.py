"""Draws sets of scored pairs for similarity tasks (MAML-Align paper, section 4.2)."""

import numpy as np

from metasearch.data.records import ScoredPair, SimilarityData
from metasearch.episodes.episode import LabelledSet
from metasearch.errors import ConfigError, DataError
from metasearch.spec.arrangement import Variant
from metasearch.spec.recipe import Episodes


class PairSampler:
    """Draws scored pairs from one split, without replacement within a set.

    A set in several languages takes them in turn, so that each has its share. `ConfigError` where the settings ask for
    similar queries, graded negatives or translations of questions, which have no meaning here.
    """

    def __init__(self, data: SimilarityData, settings: Episodes) -> None:
        for key in ("queries", "negatives"):
            value = getattr(settings, key)
            if value != "random":
                raise ConfigError(f"episodes.{key}: '{value}' works for retrieval tasks only; use 'random' here")
        if settings.translations:
            raise ConfigError(
                "episodes.translations: scored pairs have no questions; it works for retrieval tasks only"
            )
        self.data = data

    def check(self, variant: Variant, count: int, where: str) -> None:
        """Raise `DataError` when a set of this variant and size cannot be drawn."""
        for language, need in self._shares(variant, count).items():
            have = len(self._pairs(variant, language))
            if have < need:
                raise DataError(
                    f"{where}: {count} pairs of {variant} need {need} pairs {variant.query}-{language}; "
                    f"there are {have}. Lower it with --set, or use more data"
                )

    def draw(self, variant: Variant, count: int, rng: np.random.Generator, like: LabelledSet | None) -> LabelledSet:
        """Draw a set of `count` pairs; `like` is not looked at."""
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
