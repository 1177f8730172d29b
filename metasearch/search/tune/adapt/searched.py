"""The search of an index on labelled queries: stored vectors, its plan, and the scores of held-out folds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import cast

import numpy as np
import torch

from metasearch.config.measure import Pool
from metasearch.config.roles import Role
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import Candidate, RetrievalData
from metasearch.encoders.neutral import ProjectedEncoder
from metasearch.encoders.protocols import TextEncoder
from metasearch.evaluation.scores import Evaluation
from metasearch.search.index.base import Rows
from metasearch.search.index.labelled_queries import LabelledQueries
from metasearch.search.index.local import LocalStore
from metasearch.search.index.maps import Vectors, mapped
from metasearch.search.index.page_scores import sharpness_for, spread_of
from metasearch.search.index.plan import SearchPlan
from metasearch.search.query.searcher import QUERY, Searcher
from metasearch.search.tune.adapt.metric import learn_adapter
from metasearch.search.tune.page_ranking import Boosts, evaluate_pages
from metasearch.search.tune.steps import REMEMBERED, Step
from metasearch.search.tune.training import shuffled


@dataclass(frozen=True)
class SearchedIndex:
    """An index whose search is scored on labels; it encodes texts as that search does.

    Attributes:
        store: the index.
        passages: its passages that are searched.
        queries: text of a labelled query → its vector from the encoder, `(D,)`.
        plan: how it is searched; without an adapter, which the labels decide.
    """

    store: LocalStore
    passages: tuple[Candidate, ...]
    queries: Mapping[str, Vectors]
    plan: SearchPlan = field(default_factory=SearchPlan)
    device = torch.device("cpu")

    @classmethod
    def of(cls, searcher: Searcher, data: RetrievalData) -> "SearchedIndex":
        """Encode the queries of labels on the passages of an index."""
        store = searcher.store
        assert isinstance(store, LocalStore)
        texts = list(dict.fromkeys(question.text for question in data.questions))
        vectors = searcher.encoder.encode(texts, QUERY)
        found = dict(zip(texts, vectors, strict=True))
        return cls(store, data.candidates, found, replace(store.plan, adapter=None))

    def without_projection(self) -> "SearchedIndex":
        """Return the same index, searched with the vectors of its encoder."""
        if self.plan.projection is None:
            return self
        queries = np.stack([*self.queries.values()])
        documents = self.store.stored.take(self.rows)
        sharpness = None if self.plan.sharpness is None else sharpness_for(queries @ documents.T)
        return replace(self, plan=SearchPlan(sharpness=sharpness, ranking=self.plan.ranking))

    @cached_property
    def rows(self) -> Rows:
        """The rows of its passages, which are named for their places."""
        return self.store.place_rows[[int(each.id.removeprefix("passage ")) for each in self.passages]]

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return the vectors of the search for passages or labelled queries, `(len(texts), D)`."""
        if role != "candidate":
            return np.stack([self._searched_queries[text] for text in texts])
        own = self.plan.projection is not None or self.store.plan.projection is None
        return (self.store.quantised if own else self.store.stored).take([self._row_of[text] for text in texts])

    @cached_property
    def _row_of(self) -> Mapping[str, int]:
        return {each.text: row for each, row in zip(self.passages, self.rows.tolist(), strict=True)}

    @cached_property
    def _searched_queries(self) -> Mapping[str, Vectors]:
        through = self.plan.queries(np.stack([*self.queries.values()]))
        return dict(zip(self.queries, through, strict=True))

    def adapter(self, form: str, data: RetrievalData) -> Vectors:
        """Return the matrix of an adapter of the search from labels, `(D, D)`."""
        return learn_adapter(self, self.passages, form, data)

    def labelled(self, data: RetrievalData) -> tuple[LabelledQueries | None, list[str]]:
        """Return the queries of labels with their pages, and the names of the pages; None where none are apart."""
        keys, counts, known = self.store.row_keys(), np.bincount(self.store.place_rows), dict[str, int]()
        for each, row in zip(self.passages, self.rows.tolist(), strict=True):
            if counts[row] == 1:  # else it stands on other pages, too
                known.setdefault(each.page, row)
        pages: dict[str, dict[str, None]] = {}
        for each in data.candidates:
            for uid in each.answers if each.page in known else ():
                pages.setdefault(uid, {})[each.page] = None
        of_text: dict[str, dict[str, None]] = {}
        for question in data.questions:
            of_text.setdefault(question.text, {}).update(pages.get(question.id, {}))
        numbers = {page: i for i, page in enumerate(dict.fromkeys(each for own in of_text.values() for each in own))}
        found = keys[[known[page] for page in numbers]].reshape(-1, keys.shape[1])
        own = [[numbers[page] for page in each] for each in of_text.values()]
        return LabelledQueries.of(self.encode([*of_text], QUERY), own, found), [*numbers]

    def _boosts(self, step: Step, train: RetrievalData, test: RetrievalData, fold: int) -> Boosts:
        """Return what pages gain for questions of the test split by the labelled queries of the train split."""
        if step.learner != REMEMBERED or not self.plan.sharpness:
            return {}
        data = replace(train, candidates=self.passages)  # also translations that no label means
        labelled, pages = self.labelled(shuffled(data, fold) if step.shuffled else data)
        texts = list(dict.fromkeys(question.text for question in test.questions))
        found = labelled.recall(self.encode(texts, QUERY)) if labelled else []
        spread = spread_of(self.plan.sharpness)
        return {text: ([pages[i] for i in own], gain * spread) for text, (own, gain) in zip(texts, found, strict=False)}

    def score(self, step: Step, benchmark: Benchmark, pools: Sequence[Pool]) -> dict[Pool, Evaluation]:
        """Return the scores of the test split in each pool by a step that trains no weights.

        An adapter is computed from the train split; a control learns from, or is asked for, answers of other queries.
        """
        search = self if step.projected else self.without_projection()
        train, test = cast("RetrievalData", benchmark.split.train), cast("RetrievalData", benchmark.split.test)
        encoder: TextEncoder = search
        if step.adapts:
            right = shuffled(train, benchmark.fold) if step.shuffled else train
            adapter = partial(mapped, matrix=search.adapter(step.learner, right))
            encoder = ProjectedEncoder(encoder, adapter, (QUERY,))
        boosts = search._boosts(step, train, test, benchmark.fold)
        return score_test(encoder, step, benchmark, pools, search.plan.sharpness, boosts)


def score_test(
    encoder: TextEncoder, step: Step, benchmark: Benchmark, pools: Sequence[Pool], sharpness: float | None,
    boosts: Boosts = MappingProxyType({}),
) -> dict[Pool, Evaluation]:  # fmt: skip
    """Return the scores of the test split in each pool; a control that learns nothing is asked for other answers."""
    test = cast("RetrievalData", benchmark.split.test)
    if step.shuffled and not step.learns:
        test = shuffled(test, benchmark.fold)
    return {pool: evaluate_pages(encoder, test, benchmark.measures, pool, sharpness, boosts) for pool in pools}
