"""The steps: ways to make an encoder from labels that the data allows; the simplest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from metasearch.config import registry
from metasearch.errors import ConfigError

FINE_TUNE = "fine-tune"
_BASE, _ALIGNED, _PROJECTED, _JOIN = "base encoder", "alignment", "projection", " + "
_LEARNER = "learner "
"""Stands before a learner that is called as one of these."""


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
