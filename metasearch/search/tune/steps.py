"""The steps: ways to make an encoder from labels that the data allows; the simplest first."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from metasearch.config import registry
from metasearch.errors import ConfigError

BASE, FINE_TUNE = "base encoder", "fine-tune"
ADAPTER, ANSWERED = "adapter", "adapter with answers"
"""Query adapters in closed form; the first reads no answers. See `metasearch.search.tune.adapt.metric`."""
_SHUFFLED = ", shuffled labels"
_NAME = re.compile(r"(alignment(?: \+ |$))?(projection(?: \+ |$))?(?:learner )?(.*)", re.S)


@dataclass(frozen=True)
class Step:
    """A way to make an encoder: align it on translations, project language bias out, train with a learner on labels.

    In place of a learner, `learner` may be an adapter of queries. `shuffled` is a control: it learns from the answers
    of other questions, from which nothing can be learned about labels, or is scored on them where it reads no answers.
    """

    learner: str = ""
    projected: bool = False
    aligned: bool = False
    shuffled: bool = False

    @property
    def adapts(self) -> bool:
        """Whether it has an adapter of queries, which belongs to an index."""
        return self.learner in (ADAPTER, ANSWERED)

    @property
    def trains(self) -> bool:
        """Whether it changes the weights of the encoder."""
        return bool(self.learner) and not self.adapts

    @property
    def learns(self) -> bool:
        """Whether it learns from answers."""
        return self.learner not in ("", ADAPTER)

    @property
    def control(self) -> "Step":
        """The same step with shuffled labels."""
        return replace(self, shuffled=True)

    def __str__(self) -> str:
        first = "alignment + " * self.aligned + "projection + " * self.projected
        name = f"{first}{self.learner}" if self.learner else first.removesuffix(" + ") or BASE
        # A learner may be called as one of these.
        if self.parse(name) != replace(self, shuffled=False):
            name = f"{first}learner {self.learner}"
        return name + _SHUFFLED * self.shuffled

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return the step of a name, as `str` writes it into the results."""
        own = name.removesuffix(_SHUFFLED)
        aligned, projected, learner = _NAME.fullmatch("" if own == BASE else own).groups()  # type: ignore[union-attr]
        return cls(learner, bool(projected), bool(aligned), own != name)


def list_steps(
    projected: bool, aligned: bool = False, learners: Sequence[str] = (), *, indexed: bool = False
) -> list[Step]:
    """Return the steps that the data allows, the simplest first; an aligned encoder is a projected one.

    Where documents are `indexed`, the first one is what an index has by default: a projection, if there can be one.
    Only then there are adapters.

    Raises:
        ConfigError: there is no such learner, or it learns from no labels.
    """
    for learner in learners:
        registry.require("learners", learner)
        if not {2, 3} & set(registry.load("learners", learner).LEARNER.links):
            raise ConfigError(f"learner '{learner}' does not learn from labels; `metasearch distill` runs it")
    steps = [Step(), Step(projected=True)] if projected else [Step()]
    if indexed:
        steps = [*reversed(steps), Step(ADAPTER, projected), Step(ANSWERED, projected)]
    steps.append(Step(FINE_TUNE, projected))
    steps += [Step(FINE_TUNE, True, True)] * aligned
    others = [learner for learner in dict.fromkeys(learners) if learner != FINE_TUNE]
    return steps + [Step(learner, projected or aligned, aligned) for learner in others]
