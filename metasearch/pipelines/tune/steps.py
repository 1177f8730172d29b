"""The steps: ways to make an encoder from labels, and to rank with it, that the data allows; the simplest first."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from metasearch.config import registry
from metasearch.config.languages import UNKNOWN
from metasearch.config.measure import BALANCED, EXPANDED, MULTILINGUAL, Pool
from metasearch.config.postprocessing import LEAST
from metasearch.data.records import Data, RetrievalData
from metasearch.data.texts import tagged_of
from metasearch.errors import ConfigError

FINE_TUNE = "fine-tune"
_BASE, _ALIGNED, _PROJECTED, _JOIN = "base encoder", "alignment", "projection", " + "
_LEARNER = "learner "
"""Stands before a learner that is called as one of these."""
_FREQUENT = 0.05
"""Share of the documents from which a language counts."""


@dataclass(frozen=True)
class Step:
    """A way to make an encoder.

    Attributes:
        learner: learner that trains on the labels; empty for none.
        projected: whether language bias is projected out.
        aligned: whether the encoder was aligned on translations before.
    """

    learner: str = ""
    projected: bool = False
    aligned: bool = False

    def __str__(self) -> str:
        taken = [name for name, taken in ((_ALIGNED, self.aligned), (_PROJECTED, self.projected)) if taken]
        name = _JOIN.join([*taken, *[self.learner] * bool(self.learner)]) or _BASE
        return name if self.parse(name) == self else _JOIN.join([*taken, f"{_LEARNER}{self.learner}"])

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return the step of a name, as `str` writes it into the results."""
        rest = "" if name == _BASE else name
        aligned, rest = _cut(rest, _ALIGNED)
        projected, rest = _cut(rest, _PROJECTED)
        return cls(rest.removeprefix(_LEARNER), projected, aligned)


def _cut(name: str, part: str) -> tuple[bool, str]:
    """Return whether a name begins with a part, and the rest of it."""
    first, _, rest = name.partition(_JOIN)
    return (True, rest) if first == part else (False, name)


def list_steps(projected: bool, aligned: bool = False, learners: Sequence[str] = ()) -> list[Step]:
    """Return the steps that the data allows, the simplest first; an aligned encoder is a projected one.

    Raises:
        ConfigError: there is no such learner, or it learns from no labels.
    """
    for learner in learners:
        registry.require("learners", learner)
        if not {2, 3} & set(registry.load("learners", learner).LEARNER.links):
            raise ConfigError(f"learner '{learner}' does not learn from labels; `metasearch distill` runs it")
    steps = [Step(), Step(projected=True), Step(FINE_TUNE, True)] if projected else [Step(), Step(FINE_TUNE)]
    steps += [Step(FINE_TUNE, True, True)] * aligned
    others = [learner for learner in dict.fromkeys(learners) if learner != FINE_TUNE]
    return steps + [Step(learner, projected or aligned, aligned) for learner in others]


def pools(data: RetrievalData) -> tuple[Pool, ...]:
    """Return the rankings to try with each step, the simplest first."""
    counts = Counter(candidate.language for candidate in data.candidates)
    # Detection takes a few short texts for another language.
    if sum(count > _FREQUENT * counts.total() for count in counts.values()) < 2:
        return (MULTILINGUAL,)
    translated = any(len(languages) > 1 for languages in data.answers.values())
    return (MULTILINGUAL, BALANCED, EXPANDED) if translated else (MULTILINGUAL, BALANCED)


def projectable(parts: Sequence[Data]) -> tuple[str, ...]:
    """Return the languages with enough texts for a projection in each training split; none where only one has."""
    counts = [{language: len(own) for language, own in tagged_of(part, LEAST).items()} for part in parts]
    known = sorted(set[str]().union(*counts) - {UNKNOWN})
    found = tuple(language for language in known if all(count.get(language, 0) >= LEAST for count in counts))
    return found if len(found) > 1 else ()
