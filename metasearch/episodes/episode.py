"""Episodes, and the labelled sets and triplets that they are made of."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.roles import Role
from metasearch.data.records import Candidate, Example, Question

Embed = Callable[[Sequence[str], Role], NDArray[np.float32]]
"""Texts and their role → their unit vectors `(len(texts), D)` on an encoder's present weights."""


@dataclass(frozen=True, slots=True)
class Triplet:
    """A question, an answer and a wrong candidate.

    Attributes:
        answers: texts of all that answer the question in the candidates' languages, which no loss takes for wrong.
        translation: the question in another language, if drawn.
    """

    question: Question
    positive: Candidate
    negative: Candidate
    answers: tuple[str, ...] = ()
    translation: Question | None = None

    score: ClassVar[None] = None

    @property
    def roles(self) -> Mapping[str, Role]:
        """Each text's role."""
        return TRIPLET_ROLES if self.translation is None else {**TRIPLET_ROLES, "translation": "question"}

    @property
    def texts(self) -> tuple[str, ...]:
        """Question, positive and negative, and the question's translation."""
        three = self.question.text, self.positive.text, self.negative.text
        return three if self.translation is None else (*three, self.translation.text)

    @property
    def languages(self) -> tuple[str, ...]:
        """The texts' languages."""
        return tuple(each.language for each in self._parts)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids for question, positive and negative, and the translation's language; its id is the question's."""
        ids = self.question.id, self.positive.id, self.negative.id
        return ids if self.translation is None else (*ids, self.translation.language)

    def lines(self) -> tuple[str, ...]:
        """Return the question, with its translation and the sentences of positive and negative below it."""
        lines = [f"? {self.question.text}"]
        if self.translation is not None:
            lines.append(f"  = {self.translation.language}: {self.translation.text}")
        lines.append(f"  + {self.positive.language}: {self.positive.shown}")
        lines.append(f"  - {self.negative.language}: {self.negative.shown}")
        return tuple(lines)

    @property
    def _parts(self) -> tuple[Question | Candidate, ...]:
        parts = self.question, self.positive, self.negative
        return parts if self.translation is None else (*parts, self.translation)


TRIPLET_ROLES: Mapping[str, Role] = {"question": "question", "positive": "candidate", "negative": "candidate"}


@dataclass(frozen=True)
class LabelledSet:
    """Examples of one kind for one variant: triplets, scored pairs or translations."""

    variant: Variant
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Episode:
    """Sets drawn along one arrangement (the paper's meta-task).

    Two sets are (support, query); three are (X, Y, Z), where Y is the query of X→Y and the support of Y→Z
    (MAML-Align paper, section 3.3).
    """

    arrangement: Arrangement
    sets: tuple[LabelledSet, ...]


# Episodes as lines for a person to read: briefly for a message, or whole.

_EPISODES, _EXAMPLES, _CHARACTERS = 2, 3, 40
"""As much as a message holds: episodes, examples of each, and characters of one without an id."""


def brief(episodes: Sequence[Episode]) -> str:
    """Summarise the languages of episodes and their first examples, in half a line.

    Such as `de_de -> de_ar (bread-1-0, light-2-1, ...), el_el -> el_tr (...) and 2 more`.
    """
    shown = []
    for episode in episodes[:_EPISODES]:
        examples = [example for each in episode.sets for example in each.examples]
        names = ", ".join(_name(example) for example in examples[:_EXAMPLES])
        shown.append(f"{episode.arrangement} ({names}{', ...' if len(examples) > _EXAMPLES else ''})")
    more = len(episodes) - _EPISODES
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def whole(episode: Episode) -> Iterator[str]:
    """Yield the sets in an episode: each example with ids and texts."""
    # An episode of two sets has no Z, a batch of a distillation has X alone.
    for name, examples in zip(("X", "Y", "Z"), episode.sets, strict=False):
        yield f"{name}  {examples.variant}"
        for example in examples.examples:
            if example.ids:
                yield f"  {'/'.join(example.ids)}"
            yield from (f"  {line}" for line in example.lines())


def _name(example: Example) -> str:
    """Return an example's first ids, or the start of its first text."""
    return "/".join(example.ids[:2]) or f"'{example.texts[0][:_CHARACTERS]}'"
