"""`metasearch.adapt`: learns a query adapter of an index, and searches with it if it helps on held-out folds."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.config import yaml
from metasearch.config.adapt import METRIC, AdapterSettings
from metasearch.config.measure import BALANCED, EXPANDED, MULTILINGUAL, Pool
from metasearch.config.roles import Role
from metasearch.config.run import Device
from metasearch.data.labels import load_labels
from metasearch.data.records import Candidate, RetrievalData, grouped
from metasearch.encoders.adapter import adapted
from metasearch.errors import ConfigError, DataError
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines.adapt.learn import draw_examples, learn
from metasearch.pipelines.adapt.metric import around_mean, metric_adapter
from metasearch.pipelines.adapt.verdict import ADAPTER, Verdict
from metasearch.pipelines.tune.labels import LEAST_FOLDS, LEAST_LABELS, Labels
from metasearch.pipelines.tune.pages import Pages
from metasearch.pipelines.tune.steps import Step
from metasearch.pipelines.tune.table import Table
from metasearch.pipelines.tune.training import shuffled
from metasearch.retrieval.index.adapters import AdapterFacts, adapters_in, add_adapter, require_new
from metasearch.retrieval.index.base import Rows
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.index.stores import is_address
from metasearch.retrieval.index.writer import writing
from metasearch.retrieval.indexes import open_searcher
from metasearch.retrieval.search.neutral import project
from metasearch.retrieval.search.searcher import QUERY

log = logging.getLogger(__name__)

_SEARCHED = 20_000
"""Passages of pages without a label that a fold searches, about."""


@dataclass(frozen=True)
class AdaptResult:
    """A learned adapter as the index has it, and its held-out scores."""

    facts: AdapterFacts
    verdict: Verdict

    @property
    def kept(self) -> bool:
        """Whether the index is searched with it."""
        return self.facts.kept


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
    **asked: Any,
) -> AdaptResult:
    """Learn a query adapter from labels, and search the index with it if it is significantly better.

    No document is encoded again. The adapter stays in the index, whether it is used or not
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
        asked: keys of `AdapterSettings`.

    Raises:
        ConfigError: the index is in a database, a setting is wrong, or the name is taken.
        DataError: the labels cannot be read or joined to pages, or are too few to hold some out.
        EncoderError: the encoder cannot be loaded, or is another one.
        RunFolderError: the folder is no index, is damaged, or cannot be written.
    """
    settings = yaml.check(asked, AdapterSettings, "adapt")
    if is_address(index):
        raise ConfigError(f"{index}: an adapter is learned on the folder of an index, not on a copy in a database")
    searcher = open_searcher(index, device, encoder, trust_remote_code)
    store = searcher.store
    assert isinstance(store, LocalStore)
    chosen = name if name is not None else _free_name(store.state)
    require_new(store.state, chosen, store.folder)
    joined = join_labels(store, load_labels(labels, columns, named=True), settings.folds, same_page)
    vectors = project(searcher.encoder, store.arrays)
    ranking = searcher.ranking
    pool: Pool = EXPANDED if ranking.expand else BALANCED if ranking.balance else MULTILINGUAL
    texts = list(dict.fromkeys(question.text for question in joined.data.questions))
    trial = Trial(
        store,
        joined,
        dict(zip(texts, vectors.encode(texts, QUERY), strict=True)),
        settings,
        pool,
        same_page is not False,
    )
    verdict = trial.verdict()
    facts = {
        "name": chosen, "date": datetime.now(UTC).isoformat(timespec="seconds"), "form": settings.form,
        "labels": len(joined.data.questions), "kept": verdict.kept, "result": verdict.sentence,
    }  # fmt: skip
    matrix = trial.train(trial.labels.everything)
    with writing(store.folder, store.kind) as writer:
        found = add_adapter(writer, matrix, facts, use=verdict.kept)
    return AdaptResult(found, verdict)


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
            f"too few labels to hold some out: {len(joined.data.questions)} queries about {groups} pages; an adapter "
            f"needs {LEAST_LABELS} queries about {2 * LEAST_FOLDS} pages, where translations are one page"
        )
    return joined


def _free_name(state: Mapping[str, Any]) -> str:
    known = {each.name for each in adapters_in(state)}
    return next(name for i in range(1, len(known) + 2) if (name := f"adapter-{i}") not in known)


@dataclass(frozen=True)
class Trial:
    """Trains and scores adapters of an index.

    Attributes:
        store: the index.
        labels: on its pages.
        vectors: text of a query → its unit vector, `(D,)`.
        settings: of the training.
        pool: the ranking of the index.
        translated: whether translations of a page answer what it answers.
    """

    store: LocalStore
    labels: Labels
    vectors: Mapping[str, NDArray[np.float32]]
    settings: AdapterSettings
    pool: Pool
    translated: bool = True

    def train(self, data: RetrievalData) -> NDArray[np.float32]:
        """Return the matrix that is learned from labels, `(D, D)`."""
        queries = np.stack([self.vectors[question.text] for question in data.questions])
        pages = self._right_pages(data, queries)
        if self.settings.form != METRIC:
            return learn(draw_examples(self.store, queries, pages, self.settings), self.settings)
        nearest = [np.array([rows[0] for rows in own]) for own in pages]
        differences = [self.store.quantised.take(rows) - q for q, rows in zip(queries, nearest, strict=True)]
        return metric_adapter(np.concatenate(differences), self._translations)

    def _right_pages(self, data: RetrievalData, queries: NDArray[np.float32]) -> list[list[Rows]]:
        """Return the rows of each page that answers a query, the nearest passage first."""
        known: dict[str, dict[str, list[int]]] = {}
        for each in data.candidates:
            for uid in each.answers:
                known.setdefault(uid, {}).setdefault(each.page or each.id, []).append(_row(each))
        found = []
        for question, query in zip(data.questions, queries, strict=True):
            pages = [np.array(rows, np.int64) for rows in known[question.id].values()]
            scores = [self.store.quantised.take(rows) @ query for rows in pages]
            found.append([rows[np.argsort(-own, kind="stable")] for rows, own in zip(pages, scores, strict=True)])
        return found

    @cached_property
    def _translations(self) -> NDArray[np.float32]:
        """Differences of pages from the means of their translations, `(m, D)`; none if these answer otherwise."""
        take, none = self.store.quantised.take, np.zeros((0, self.store.kind.dimension), np.float32)
        if not self.translated:
            return none
        groups = grouped(self.labels.everything.candidates, lambda each: each.group).values()
        pages = ([own for own in grouped(each, lambda c: c.page).values()] for each in groups)
        return np.concatenate([none, *(around_mean([take(list(map(_row, own))) for own in each]) for each in pages)])

    def verdict(self) -> Verdict:
        """Return the scores on held-out folds without the adapter, with it, and if need be with its control."""
        adapter, results, folds = Step(ADAPTER), {}, range(self.labels.folds)
        benchmark = self.labels.benchmark
        assert benchmark is not None
        measure = benchmark.task.monitor
        measures = [each for each in benchmark.measures if str(each) == measure]

        def score(step: Step, fold: int, matrix: NDArray[np.float32] | None) -> None:
            test = self._part(fold, "test")
            found = evaluate(_StoredVectors(self.store, test, self.vectors, matrix), test, measures, [self.pool])
            results[step, fold] = found.questions

        for fold in folds:
            score(Step(), fold, None)
            score(adapter, fold, self.train(self._part(fold, "train")))
        table = Table.of(results, measure)
        if table.choose():
            for fold in folds:
                score(adapter.control, fold, self.train(shuffled(self._part(fold, "train"), fold)))
            table = Table.of(results, measure)
        return Verdict.of(table)

    def _part(self, fold: int, name: Literal["train", "test"]) -> RetrievalData:
        return cast(RetrievalData, getattr(self.labels.hold_out(fold).split, name))


def _row(candidate: Candidate) -> int:
    return int(candidate.id.removeprefix("passage "))


class _StoredVectors:
    """The vectors of an index's passages as they are stored, and of queries through the matrix of an adapter."""

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
