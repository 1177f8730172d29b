"""`metasearch.adapt`: computes a query adapter of an index, and searches with it if it helps on held-out folds."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.config.measure import BALANCED, EXPANDED, MULTILINGUAL, Pool
from metasearch.config.roles import Role
from metasearch.config.run import Device
from metasearch.data.labels import load_labels
from metasearch.data.records import Candidate, RetrievalData, grouped
from metasearch.encoders.adapter import adapted
from metasearch.errors import DataError, RunFolderError
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines.adapt.metric import around_mean, metric_adapter
from metasearch.pipelines.tune.choice import Choice
from metasearch.pipelines.tune.labels import LEAST_FOLDS, LEAST_LABELS, Labels
from metasearch.pipelines.tune.pages import Pages
from metasearch.pipelines.tune.steps import Step
from metasearch.pipelines.tune.table import SIDES, Table
from metasearch.pipelines.tune.training import shuffled
from metasearch.retrieval.index.adapters import AdapterFacts, adapters_in, add_adapter, require_new, vectors_hash
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.index.stores import index_folder
from metasearch.retrieval.index.writer import writing
from metasearch.retrieval.indexes import open_searcher
from metasearch.retrieval.search.neutral import project
from metasearch.retrieval.search.searcher import QUERY
from metasearch.runs.per_query_results import QueryResults

log = logging.getLogger(__name__)

_SEARCHED = 20_000
"""Passages of pages without a label that a fold searches, about."""


PLAIN, ANSWERED = Step("offset and translations"), Step("offset, translations and answers")
"""Adapters from the simplest one, which reads no answers; see `metasearch.pipelines.adapt.metric`."""


@dataclass(frozen=True)
class AdaptResult:
    """An adapter as the index has it, and the choice by held-out scores."""

    facts: AdapterFacts
    choice: Choice

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
        return "\n".join(lines)


def adapt(
    index: str | Path,
    labels: Any,
    *,
    name: str | None = None,
    columns: Mapping[str, str] | None = None,
    same_page: bool | None = None,
    encoder: str | None = None,
    device: Device = "auto",
    trust_remote_code: bool = False,
    folds: int = 4,
) -> AdaptResult:
    """Compute a query adapter from labels, and search the index with it if it is significantly better.

    No document is encoded again. Without an adapter, with one that reads no answers, and with one that does: the
    simplest that no other one beats significantly on held-out folds is kept, as in `metasearch.tune`. One with answers
    also has to beat the same one with shuffled labels. The adapter stays in the index, whether it is used or not
    (`metasearch.retrieval.indexes.use_adapter`).

    Args:
        index: folder of the index, or of a tuning with one.
        labels: a path, dicts, a pandas or `datasets` table: queries, and pages of the index by path, address, id or
            text, as for `metasearch.tune(..., documents=...)`.
        name: of the adapter; by default `adapter-1`, `adapter-2` and so on.
        columns: name of a value → its column, such as `{"query": "question"}`.
        same_page: whether translations of a page answer what it answers; by default where paths or groups show them.
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
    chosen = name if name is not None else _free_name(store.state)
    require_new(store.state, chosen, store.folder)
    joined = join_labels(store, load_labels(labels, columns, named=True), folds, same_page)
    vectors = project(searcher.encoder, store.arrays)
    ranking = searcher.ranking
    pool: Pool = EXPANDED if ranking.expand else BALANCED if ranking.balance else MULTILINGUAL
    texts = list(dict.fromkeys(question.text for question in joined.data.questions))
    encoded = dict(zip(texts, vectors.encode(texts, QUERY), strict=True))
    trial = Trial(store, joined, encoded, pool, same_page is not False)
    table = trial.table()
    choice, line = Choice.of(table), table.choose()
    step, kept = table.lines[line][0] if line else ANSWERED, bool(line)
    facts = {
        "name": chosen, "date": datetime.now(UTC).isoformat(timespec="seconds"), "form": str(step),
        "labels": len(joined.data.questions), "kept": kept,
        "result": str(choice),
    }  # fmt: skip
    matrix = trial.matrix(step, joined.data)
    with writing(store.folder, store.kind) as writer:
        if vectors_hash(writer.kind, writer.arrays) != vectors_hash(store.kind, store.arrays):
            raise RunFolderError(
                f"{store.folder}: its projection was estimated again meanwhile; run metasearch adapt again"
            )
        found = add_adapter(writer, matrix, facts, use=kept)
    return AdaptResult(found, choice)


def join_labels(store: LocalStore, data: RetrievalData, folds: int, same_page: bool | None) -> Labels:
    """Return labels on the pages of an index; candidates are named `passage ROW`.

    Raises:
        DataError: fewer than half of the labels have a page, or they are too few to hold some out.
    """
    found = (passage for passage, _ in store.passages(range(len(store))))
    root = store.root
    passages = [each if root is None else replace(each, file=(root / each.file).as_posix()) for each in found]
    pages = Pages.of(data, passages, [] if root is None else [str(root)], _SEARCHED, same_page)
    for note in pages.notes:
        log.info("%s", note)
    joined = Labels.on_pages(pages, folds)
    if joined.benchmark is None:
        groups = len({question.group for question in joined.data.questions})
        raise DataError(
            f"too few labels to hold some out: queries: {len(joined.data.questions)}, pages: {groups}; an adapter "
            f"needs {LEAST_LABELS} queries about {2 * LEAST_FOLDS} pages, where translations are one page"
        )
    return joined


def _free_name(state: Mapping[str, Any]) -> str:
    known = {each.name for each in adapters_in(state)}
    return next(name for i in range(1, len(known) + 2) if (name := f"adapter-{i}") not in known)


@dataclass(frozen=True)
class Trial:
    """Computes and scores adapters of an index.

    Attributes:
        store: the index.
        labels: on its pages.
        vectors: text of a query → its unit vector, `(D,)`.
        pool: the ranking of the index.
        translated: whether translations of a page answer what it answers.
    """

    store: LocalStore
    labels: Labels
    vectors: Mapping[str, NDArray[np.float32]]
    pool: Pool
    translated: bool = True

    def table(self) -> Table:
        """Return the scores of held-out folds by step, and of the control if answers would be kept."""
        folds = range(self.labels.folds)
        results = {(step, fold): self._score(step, fold) for step in (Step(), PLAIN, ANSWERED) for fold in folds}
        assert self.labels.benchmark is not None
        table = Table.of(results, self.labels.benchmark.task.monitor)
        if ANSWERED in table.uncontrolled():
            results |= {(ANSWERED.control, fold): self._score(ANSWERED.control, fold) for fold in folds}
            table = Table.of(results, table.measure)
        return table

    def matrix(self, step: Step, data: RetrievalData) -> NDArray[np.float32]:
        """Return the adapter of a step from labels, `(D, D)`."""
        queries = np.stack([self.vectors[question.text] for question in data.questions])
        offset = self._mean - queries.mean(0)
        answers = self._answers(data, queries) if step.learner == ANSWERED.learner else offset[None][:0]
        return metric_adapter(offset, self._translations, answers, len(queries))

    def _score(self, step: Step, fold: int) -> QueryResults:
        """Return the scores of a fold's queries by an adapter from the other folds."""
        benchmark = self.labels.hold_out(fold)
        train, test = cast(RetrievalData, benchmark.split.train), cast(RetrievalData, benchmark.split.test)
        train = shuffled(train, fold) if step.shuffled else train
        encoder = _StoredVectors(self.store, test, self.vectors, self.matrix(step, train) if step.learner else None)
        measures = [each for each in benchmark.measures if str(each) == benchmark.task.monitor]
        return evaluate(encoder, test, measures, [self.pool]).questions

    def _answers(self, data: RetrievalData, queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the differences of the nearest passages of right pages from their queries, `(a, D)`."""
        pages: dict[str, dict[str, list[int]]] = {}
        for each in data.candidates:
            for uid in each.answers:
                pages.setdefault(uid, {}).setdefault(each.page, []).append(_row(each))
        found = []
        for question, query in zip(data.questions, queries, strict=True):
            for rows in pages[question.id].values():
                own = self.store.quantised.take(rows)
                found.append(own[int((own @ query).argmax())] - query)
        return np.stack(found)

    @cached_property
    def _mean(self) -> NDArray[np.float32]:
        """The mean vector of the passages, `(D,)`."""
        rows = [_row(each) for each in self.labels.everything.candidates]
        return np.asarray(self.store.quantised.take(rows).mean(0, dtype=np.float64), np.float32)

    @cached_property
    def _translations(self) -> NDArray[np.float32]:
        """Differences of pages from the means of their translations, `(m, D)`; none if these answer otherwise."""
        found = [np.zeros((0, self.store.kind.dimension), np.float32)]
        groups = grouped(self.labels.everything.candidates, lambda each: each.group)
        for own in groups.values() if self.translated else ():
            pages = grouped(own, lambda each: each.page).values()
            found.append(around_mean([self.store.quantised.take(list(map(_row, each))) for each in pages]))
        return np.concatenate(found)


def _row(candidate: Candidate) -> int:
    return int(candidate.id.removeprefix("passage "))


class _StoredVectors:
    """The stored vectors of passages in an index, and queries through the matrix of an adapter."""

    device = torch.device("cpu")

    def __init__(
        self,
        store: LocalStore,
        data: RetrievalData,
        queries: Mapping[str, NDArray[np.float32]],
        matrix: NDArray[np.float32] | None,
    ) -> None:
        self._store, self._queries, self._matrix = store, queries, matrix
        self._rows = {each.text: _row(each) for each in data.candidates}

    def encode(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        """Return unit vectors of texts, `(len(texts), D)`."""
        if role == "candidate":
            return self._store.quantised.take([self._rows[text] for text in texts])
        vectors = np.stack([self._queries[text] for text in texts])
        return vectors if self._matrix is None else adapted(vectors, self._matrix)
