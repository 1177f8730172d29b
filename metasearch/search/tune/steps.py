"""The steps: ways to make an encoder from labels that the data allows; the simplest first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product, starmap

from metasearch.config import registry
from metasearch.errors import ConfigError, require_known

_BASE, FINE_TUNE = "base encoder", "fine-tune"
ADAPTER, ANSWERED = "adapter", "adapter with answers"
REMEMBERED = f"{ANSWERED} + labelled queries"
"""With labelled queries, which find their pages (`metasearch.search.index.labelled_queries`)."""
READS_ANSWERS = {ADAPTER: False, ANSWERED: True, REMEMBERED: True}
"""Query adapters in closed form (`metasearch.search.tune.adapt.searched`), and whether each reads answers."""
_PARTS = ("alignment", "projection")
"""Parts of a step's name before its learner, which may be called as one of these."""
_SHUFFLED = ", shuffled labels"


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
        return self.learner in READS_ANSWERS

    @property
    def trains(self) -> bool:
        """Whether it changes the weights of the encoder."""
        return bool(self.learner) and not self.adapts

    @property
    def learns(self) -> bool:
        """Whether it learns from answers."""
        return READS_ANSWERS.get(self.learner, bool(self.learner))

    @property
    def control(self) -> "Step":
        """The same step with shuffled labels."""
        return replace(self, shuffled=True)

    def __str__(self) -> str:
        first = [part for part, has in zip(_PARTS, (self.aligned, self.projected), strict=True) if has]
        learner = f"learner {self.learner}" if self.learner in _PARTS else self.learner
        return (" + ".join([*first, *filter(None, [learner])]) or _BASE) + _SHUFFLED * self.shuffled

    @staticmethod
    def named(name: str) -> "Step":
        """Return the step that results name so; `ConfigError` if none is, such as after a learner was uninstalled."""
        known = _steps_by_name()
        require_known("step", name, known)
        return known[name]


@cache
def _steps_by_name() -> dict[str, Step]:
    learners, either = ("", *READS_ANSWERS, *registry.names("learners")), (False, True)
    return {str(step): step for step in starmap(Step, product(learners, either, either, either))}


def list_steps(
    projected: bool, aligned: bool = False, learners: Sequence[str] = (), adapters: Sequence[str] = ()
) -> list[Step]:
    """Return the steps that the data allows, the simplest first; an aligned encoder is a projected one.

    Where there are `adapters`, documents are indexed: the first step is the default of an index, with its projection.

    Raises:
        ConfigError: there is no such learner, or it learns from no labels.
    """
    for learner in learners:
        registry.require("learners", learner)
        if not {2, 3} & set(registry.load("learners", learner).LEARNER.links):
            raise ConfigError(f"learner '{learner}' does not learn from labels; `metasearch distill` runs it")
    steps = [Step(), Step(projected=True)] if projected else [Step()]
    if adapters:
        steps = [*reversed(steps), *(Step(adapter, projected) for adapter in adapters)]
    steps.append(Step(FINE_TUNE, projected))
    steps += [Step(FINE_TUNE, True, True)] * aligned
    others = [learner for learner in dict.fromkeys(learners) if learner != FINE_TUNE]
    return steps + [Step(learner, projected or aligned, aligned) for learner in others]
