"""Draws a translation of each question of a set, in a language that its episode is trained on anyway."""

from collections.abc import Sequence
from typing import cast

import numpy as np

from metasearch.data.records import Question, RetrievalData
from metasearch.episodes.episode import LabelledSet, TranslatedTriplet, Triplet
from metasearch.errors import ConfigError, DataError
from metasearch.spec.arrangement import Arrangement


class QuestionTranslations:
    """Adds to each triplet the question of the same id in another language.

    The language is drawn evenly, for each triplet, among those that the arrangement of the episode names and that the
    question is asked in. So no language that a mode does not train on is ever seen.

    Args:
        data: data of the split to draw from.
        arrangements: whose questions are to have translations.
        where: what messages begin with.
        whole: the same with further questions, which translations are drawn from; by default none.

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
                        "take a mode of several languages, or leave it out"
                    )
                for question in data.askable(variant.query, variant.candidates):
                    if not self._of(question, arrangement):
                        raise DataError(
                            f"{where}: {arrangement} asks question '{question.id}' in {variant.query}, and it has no "
                            f"translation into {' or '.join(others)}; add one to the data, or leave it out"
                        )

    def add(self, examples: LabelledSet, arrangement: Arrangement, rng: np.random.Generator) -> LabelledSet:
        """Return a set of triplets with a translation of the question of each."""
        translated = []
        for triplet in cast("tuple[Triplet, ...]", examples.examples):
            found = self._of(triplet.question, arrangement)
            translated.append(TranslatedTriplet(triplet, found[int(rng.integers(len(found)))]))
        return LabelledSet(examples.variant, tuple(translated))

    def _of(self, question: Question, arrangement: Arrangement) -> list[Question]:
        """Return the translations of a question, in the order of their languages' codes."""
        keys = [(code, question.id) for code in sorted(arrangement.languages - {question.language})]
        return [self._questions[key] for key in keys if key in self._questions]
