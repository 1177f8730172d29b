"""Gains of an adapter on new pages, and on pages with labels that are asked again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from metasearch.config.measure import Pool
from metasearch.data.benchmark import Benchmark
from metasearch.evaluation.statistics.paired import PairedTest, bounded_test
from metasearch.runs.per_query_results import QueryResults
from metasearch.search.tune.adapt.searched import SearchedIndex
from metasearch.search.tune.labels import Held, Labels
from metasearch.search.tune.steps import Step
from metasearch.search.tune.table import Table


@dataclass(frozen=True)
class Figure:
    """Scores of held-out questions without labels, the gain of an adapter, and its gain with shuffled answers."""

    name: str
    questions: int
    base: float
    gain: PairedTest
    control: PairedTest | None

    @classmethod
    def of(cls, name: str, table: Table) -> "Figure":
        """Return the figure of a table: the base, the adapter, and its control if it reads answers."""
        base, *others = table.scores
        gain, *control = [bounded_test(each, base, table.groups, low=-1, high=1) for each in others]
        return cls(name, len(base), float(base.mean()), gain, control[0] if control else None)

    def __str__(self) -> str:
        control = f", with shuffled labels {self.control.shown()}" if self.control else ""
        base = f"{self.name}: {100 * self.base:.1f} without the adapter"
        return f"{base}, {self.gain.shown()}{control}; {self.questions} held-out questions"

    @property
    def row(self) -> Mapping[str, object]:
        """The figure for `--json`."""
        tests = {"gain": self.gain, "control": self.control}
        ends = {name: each and [each.mean, each.low, each.high] for name, each in tests.items()}
        return {"name": self.name, "questions": self.questions, "base": self.base, **ends}


def score_apart(index: SearchedIndex, labels: Labels, step: Step, pool: Pool) -> tuple[Figure, ...]:
    """Return the figures of an adapter on new pages and on pages with labels; none where no page has several labels."""
    if not labels.alone:
        return ()
    steps = [replace(step, learner=""), step, *([step.control] if step.learns else [])]
    found = []
    for what in get_args(Held)[1:]:
        numbers = range(labels.folds) if what == "new pages" else sorted({*labels.alone.values()})
        folds = [labels.hold_out(fold, what) for fold in numbers]
        table = Table.of(score_folds(index, steps, folds, pool), folds[0].task.monitor)
        found.append(Figure.of(what, table))
    return tuple(found)


def score_folds(
    index: SearchedIndex, steps: Iterable[Step], folds: Sequence[Benchmark], pool: Pool
) -> dict[tuple[Step, int], QueryResults]:
    """Return the scores of the questions of each fold by steps that learn from the other folds."""
    found = {}
    for step in steps:
        for fold in folds:
            measures = tuple(each for each in fold.measures if str(each) == fold.task.monitor)
            scored = index.score(step, replace(fold, measures=measures), [pool])
            found[step, fold.fold] = scored[pool].questions
    return found
