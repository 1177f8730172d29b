"""`metasearch.adapt`: computes a query adapter of an index, and searches with it if it helps on held-out folds."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Self, cast

from metasearch.config.measure import BALANCED, EXPANDED, MULTILINGUAL, Pool
from metasearch.config.run import Device
from metasearch.data.benchmark import Benchmark
from metasearch.data.labels import load_labels
from metasearch.data.records import RetrievalData
from metasearch.errors import DataError, RunFolderError
from metasearch.evaluation.statistics.paired import PairedTest
from metasearch.runs.per_query_results import QueryResults
from metasearch.search.index.adapters import AdapterFacts, add_adapter, require_new
from metasearch.search.index.local import LocalStore
from metasearch.search.index.stores import index_folder
from metasearch.search.index.writer import writing
from metasearch.search.indexes import open_searcher
from metasearch.search.query.searcher import Searcher
from metasearch.search.tune.adapt.searched import SearchedIndex
from metasearch.search.tune.choice import Choice
from metasearch.search.tune.labels import LEAST_FOLDS, LEAST_LABELS, Labels
from metasearch.search.tune.max_t import bounded_test
from metasearch.search.tune.steps import REMEMBERED, Step, list_steps
from metasearch.search.tune.table import SIDES, Table

log = logging.getLogger(__name__)

SEARCHED = 20_000
"""Passages of pages without a label that a fold searches, about."""
_UNPROJECTED = " To search so, turn the projection off: metasearch index DOCUMENTS --no-neutral -o INDEX."


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


@dataclass(frozen=True)
class AdaptResult:
    """An adapter as the index has it, the choice by held-out scores, and its gains on pages without and with labels."""

    facts: AdapterFacts
    choice: Choice
    figures: tuple[Figure, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether the index is searched with it."""
        return self.facts.kept

    @property
    def report(self) -> str:
        """The verdict, and the gain of each language of queries."""
        lines = [self.facts.result]
        for each in self.choice.changes if self.kept else ():
            which = f"{each.questions} queries in {each.language}, {SIDES[each.side]}"
            lines.append(f"{which}: {100 * each.base:.1f}, {each.gain.shown()}")
        return "\n".join([*lines, *map(str, self.figures)])


def adapt(
    index: str | Path,
    labels: Any,
    *,
    name: str | None = None,
    columns: Mapping[str, str] | None = None,
    same_page: bool | None = None,
    bases: Sequence[str] = (),
    encoder: str | None = None,
    device: Device = "auto",
    trust_remote_code: bool = False,
    folds: int = 4,
) -> AdaptResult:
    """Compute a query adapter from labels, and search the index with it if it is significantly better.

    No document is encoded again. Two searches without labels, with and without projection, and two adapters, without
    and with answers, are scored on held-out folds: the choice is as in `metasearch.tune`. An adapter with answers also
    has to beat the same one with shuffled labels. The adapter stays in the index, whether it is used or not
    (`metasearch.search.indexes.use_adapter`).

    Where pages have several labels, an adapter may also have the labelled queries, which find their pages
    (`metasearch.search.index.labelled_queries`). Then each label is held out as queries will come: one of a page with
    several alone, so that the others are learned, and the only one of a page with its page.

    Args:
        index: folder of the index, or of a tuning with one.
        labels: a path, dicts, a pandas or `datasets` table: queries, and pages of the index by path, address, id or
            text, as for `metasearch.tune(..., documents=...)`.
        name: of the adapter; by default `adapter-1`, `adapter-2` and so on.
        columns: name of a value → its column, such as `{"query": "question"}`.
        same_page: whether translations of a page answer what it answers; by default where paths or groups show them.
        bases: addresses that stand for the documents, or for a folder of them as `ADDRESS=FOLDER`; found by default.
        encoder: new place of the encoder, if it has moved.
        device: device of the encoder.
        trust_remote_code: run Python code that comes with the encoder.
        folds: held-out folds; fewer for few labels.

    Raises:
        ConfigError: the index is in a database, a setting is wrong, or the name is taken.
        DataError: the labels cannot be read or joined to pages, or are too few to hold some out.
        EncoderError: the encoder cannot be loaded, or is another one.
        RunFolderError: the folder is no index, is damaged, or cannot be written.
    """
    searcher = open_searcher(index_folder(index), device, encoder, trust_remote_code)
    store = searcher.store
    assert isinstance(store, LocalStore)
    known = {each.name for each in AdapterFacts.all_in(store.state)}
    chosen = name or next(free for i in count(1) if (free := f"adapter-{i}") not in known)
    require_new(store.state, chosen, store.folder)
    trial = Trial.of(searcher, load_labels(labels, columns, named=True), folds, same_page, bases)
    table = trial.table()
    choice, line = Choice.of(table), table.choose()
    step = table.lines[line][0]
    form = step.learner or trial.adapters[-1]
    # `Choice` ranks by vectors, in one pool.
    own, pool = searcher.ranking, trial.pool
    ignored = ["--hybrid"] * bool(own.hybrid) + ["--balance"] * bool(own.balance and pool == EXPANDED)
    left = f" These scores ignore {' and '.join(ignored)}, which the index is searched with." if ignored else ""
    figures = score_apart(trial.index, trial.labels, Step(form, trial.projected), trial.pool)
    if figures:
        left += f" {trial.labels.describe_alone()}"
    result = f"{choice}{left}" + _UNPROJECTED * (line > 0 and not step.projected and not step.adapts)
    return AdaptResult(trial.add(chosen, form, result, kept=step.adapts), choice, figures)


@dataclass(frozen=True)
class Trial:
    """Computes and scores adapters of an index.

    Attributes:
        labels: on its pages.
        index: the search of the index on these labels.
        pool: the ranking of the index.
    """

    labels: Labels
    index: SearchedIndex
    pool: Pool

    @classmethod
    def of(
        cls, searcher: Searcher, labels: RetrievalData, folds: int, same_page: bool | None, bases: Sequence[str] = ()
    ) -> Self:
        """Join labels to the pages of an index, and encode their queries.

        `DataError` if fewer than half of the labels have a page, or they are too few to hold some out.
        """
        store, ranking = searcher.store, searcher.ranking
        assert isinstance(store, LocalStore)
        joined, notes = Labels.on_index(store, labels, folds, same_page, SEARCHED, bases=bases)
        for note in notes:
            log.info("%s", note)
        if joined.benchmark is None:
            groups = len({question.group for question in joined.data.questions})
            raise DataError(
                f"too few labels to hold some out: queries: {len(joined.data.questions)}, pages: {groups}; an adapter "
                f"needs {LEAST_LABELS} queries about {2 * LEAST_FOLDS} pages, where translations are one page"
            )
        pool: Pool = EXPANDED if ranking.expand else BALANCED if ranking.balance else MULTILINGUAL
        return cls(joined, SearchedIndex.of(searcher, joined.everything), pool)

    def table(self) -> Table:
        """Return the scores of held-out folds by step, and of the control if answers would be kept."""
        folds = [self.labels.hold_out(fold) for fold in range(self.labels.folds)]
        waiting = [step for step in list_steps(self.projected, adapters=self.adapters) if not step.trains]
        results: dict[tuple[Step, int], QueryResults] = {}
        while waiting:
            results |= score_folds(self.index, waiting, folds, self.pool)
            table = Table.of(results, folds[0].task.monitor)
            waiting = [step.control for step in table.uncontrolled() if (step.control, 0) not in results]
        return table

    @property
    def projected(self) -> bool:
        """Whether the index has a projection."""
        return self.index.plan.projection is not None

    @property
    def adapters(self) -> tuple[str, ...]:
        """The adapters to try."""
        return self.labels.adapters(self.index.plan)

    def add(self, name: str, form: str, result: str, kept: bool) -> AdapterFacts:
        """Store an adapter from all labels in the index, and search with it if it is kept.

        Raises:
            ConfigError: the name is taken.
            RunFolderError: the projection of the index was estimated again meanwhile, or it cannot be written.
        """
        store, train = self.index.store, cast(RetrievalData, self.labels.hold_out(None).split.train)
        matrix = self.index.adapter(form, train)  # by the passages that the folds learned from
        labelled = self.index.labelled(self.labels.everything)[0] if form == REMEMBERED else None
        facts = {
            "name": name, "date": datetime.now(UTC).isoformat(timespec="seconds"), "form": form,
            "labels": len(self.labels.data.questions), "kept": kept, "result": result,
        }  # fmt: skip
        with writing(store.folder, store.kind) as writer:
            if writer.plan.space != store.plan.space:
                raise RunFolderError(
                    f"{store.folder}: its projection was estimated again meanwhile; run metasearch adapt again"
                )
            return add_adapter(writer, matrix, facts, use=kept, labelled=labelled)


def score_apart(index: SearchedIndex, labels: Labels, step: Step, pool: Pool) -> tuple[Figure, ...]:
    """Return the figures of an adapter on new pages and on pages with labels; none where no page has several labels."""
    if not labels.alone:
        return ()
    steps = [replace(step, learner=""), step, *([step.control] if step.learns else [])]
    found = []
    for what, folds in labels.apart():
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
