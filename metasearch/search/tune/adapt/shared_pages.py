"""Folds of labels within their pages: a held-out question asks a page whose other labels are learned.

A page and its translations are one page. Where its labels are in several languages, a fold holds out a language of
them, else some of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from metasearch.data.benchmark import Benchmark
from metasearch.data.folds import Split
from metasearch.data.records import Question, RetrievalData, grouped
from metasearch.evaluation.statistics.paired import PairedTest, bounded_test
from metasearch.search.tune.labels import Labels
from metasearch.search.tune.table import Table


def hold_out_within(labels: Labels) -> dict[int, Benchmark]:
    """Return a benchmark for each fold of the questions that share a page, under numbers after the folds of pages."""
    found: dict[int, list[Question]] = {}
    for place, own in enumerate(_shared(labels.data)):
        parts = [*grouped(own, lambda question: question.language).values()]
        for i, part in enumerate(parts if len(parts) > 1 else [(each,) for each in own]):
            found.setdefault(labels.folds + (place + i) % labels.folds, []).extend(part)
    assert labels.benchmark is not None
    whole = labels.hold_out(None)
    train, made = cast(RetrievalData, whole.split.train), {}
    for fold, held in sorted(found.items()):
        learned = replace(train, questions=tuple(each for each in train.questions if each not in held))
        parts_of = Split(learned, learned, replace(labels.everything, questions=tuple(held)))
        made[fold] = replace(whole, split=parts_of, fold=fold)
    return made


def hold_out_others(labels: Labels) -> dict[int, Benchmark]:
    """Return a benchmark for each fold of pages, which asks the questions that share no page."""
    shared, found = {question for own in _shared(labels.data) for question in own}, {}
    for fold in range(labels.folds):
        held = labels.hold_out(fold)
        test = cast(RetrievalData, held.split.test)
        if alone := tuple(each for each in test.questions if each not in shared):
            found[fold] = replace(held, split=replace(held.split, test=replace(test, questions=alone)))
    return found


def _shared(data: RetrievalData) -> Iterator[tuple[Question, ...]]:
    """Yield the questions of each page that has several."""
    page: dict[str, str] = {}
    for each in data.candidates:
        for uid in each.answers:
            page.setdefault(uid, each.work or each.page)
    for own in grouped(data.questions, lambda question: page[question.id]).values():
        if len(own) > 1:
            yield own


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
