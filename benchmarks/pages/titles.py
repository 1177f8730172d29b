"""Titles of a manual as queries for its pages, with labels of some, on the vectors and page scores of its index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import metasearch as ms
from benchmarks.pages.asked import read_asked
from benchmarks.pages.memory import LABELLED, TOP
from benchmarks.pages.questions import open_index
from benchmarks.pages.systems import cached
from metasearch.config.roles import Role
from metasearch.config.seeding import stream
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.encoders.pool_scores import balance
from metasearch.search.index.local import LocalStore
from metasearch.search.index.maps import mapped
from metasearch.search.index.page_scores import group_means, page_scores, spread_of
from metasearch.search.query.searcher import QUERY
from metasearch.search.tune.adapt.searched import SearchedIndex

ENCODER = "e5"
TESTED = 0.2
"""Share of the pages that have no label in any draw, at least."""
Array = NDArray[Any]


class Known:
    """Vectors of texts that are known."""

    device = torch.device("cpu")

    def __init__(self, vectors: Mapping[tuple[Role, str], Array]) -> None:
        self.vectors = vectors
        self._none = next(iter(vectors.values()))[None][:0]

    @classmethod
    def of(cls, index: SearchedIndex, data: RetrievalData) -> "Known":
        """Return the vectors of the questions and candidates of an index."""
        texts: tuple[tuple[Role, Any], ...] = ((QUERY, data.questions), ("candidate", data.candidates))
        keys = {role: list(dict.fromkeys(each.text for each in own)) for role, own in texts}
        pairs = (zip(own, index.encode(own, role), strict=True) for role, own in keys.items())
        return cls({(role, text): vector for role, own in zip(keys, pairs, strict=True) for text, vector in own})

    def encode(self, texts: Sequence[str], role: Role) -> Array:
        """Return unit vectors of texts, `(len(texts), D)`."""
        return np.stack([self.vectors[role, text] for text in texts]) if len(texts) else self._none


@dataclass(frozen=True, eq=False)
class Manual:
    """Titles and passages of a manual, with their vectors as its index searches them.

    Attributes:
        data: titles, whose ids are their pages, and passages in the order of their pages.
        encoder: gives their vectors.
        starts: first passage of each page, `(P,)`.
        languages: the pages of each language.
        groups: number of what a page shares with its translations, `(P,)`.
        right: whether a title asks for a page, `(Q, P)`.
    """

    name: str
    index: SearchedIndex
    data: RetrievalData
    encoder: Known
    starts: Array
    languages: Sequence[Array]
    groups: Array
    right: Array

    @classmethod
    def read(cls, pages: Path, name: str, output: Path) -> "Manual":
        """Return a manual from its index, which is made unless it is there."""
        (asked,) = read_asked(pages, "", name)
        folder = output / f"titles-{name}-{ENCODER}"
        searcher = ms.open_searcher(folder) if folder.exists() else open_index(asked, ENCODER, output)
        store = searcher.store
        assert isinstance(store, LocalStore)
        titles = tuple(Question(*each.pages, each.language, each.text, *each.pages) for each in asked.questions)
        texts = list(dict.fromkeys(asked.texts))
        vectors = cached(lambda: searcher.encoder.encode(texts, QUERY), (ENCODER, QUERY, *texts), output / "vectors")
        passages = sorted(
            (
                Candidate(f"passage {i}", each.language, each.text, "", (Path(each.file).stem,), page=each.file)
                for i, each in enumerate(store.passages_by_place())
            ),
            key=lambda each: each.page,
        )
        plan = replace(store.plan, adapter=None)
        index = SearchedIndex(store, tuple(passages), dict(zip(texts, vectors, strict=True)), plan)
        starts = np.unique([each.page for each in passages], return_index=True)[1]
        first = [passages[i] for i in starts]
        tags, names = np.array([each.language for each in first]), np.array([Path(each.page).stem for each in first])
        languages = [np.flatnonzero(tags == tag) for tag in np.unique(tags)]
        right = np.array([title.id for title in titles])[:, None] == names[None, :]
        data = RetrievalData(titles, index.passages)
        return cls(
            name, index, data, Known.of(index, data), starts, languages, np.unique(names, return_inverse=True)[1], right
        )

    def labels(self, count: int, seed: int) -> RetrievalData:
        """Return labelled titles of some pages in three languages, and all passages."""
        pages = stream(seed, "labels", self.name).permutation(sorted({each.id for each in self.data.questions}))
        some = pages[: int(len(pages) * (1 - TESTED))].tolist()
        spoken = [
            each for page in some for each in self.data.questions if each.id == page and each.language in LABELLED
        ]
        return replace(self.data, questions=tuple(spoken[:count]))

    def parts(self, labels: RetrievalData) -> tuple[Array, Array]:
        """Return the numbers of titles of labelled pages in other languages, and of titles of other pages."""
        known = np.array([each.id in {own.id for own in labels.questions} for each in self.data.questions])
        spoken = np.array([each.language in LABELLED for each in self.data.questions])
        return np.flatnonzero(known & ~spoken), np.flatnonzero(~known)

    @cached_property
    def taught(self) -> RetrievalData:
        """All titles, as examples."""
        return self.examples(self.data.questions)

    def examples(self, questions: Sequence[Question]) -> RetrievalData:
        """Return questions with a passage of each page that they ask for: the nearest to titles in three languages."""
        texts: dict[str, list[str]] = {}
        for each in questions:
            texts.setdefault(each.id, []).extend([each.text] if each.language in LABELLED else [])
        means = {page: self.encoder.encode(own, QUERY).mean(0) for page, own in texts.items() if own}
        found = []
        for begin, end in zip(self.starts, [*self.starts[1:], len(self.index.passages)], strict=True):
            own = self.index.passages[begin:end]
            if (page := own[0].answers[0]) in means:
                vectors = self.encoder.encode([each.text for each in own], "candidate")
                found.append(
                    replace(own[int((vectors @ means[page]).argmax())], language=Path(own[0].page).parent.name)
                )
        return RetrievalData(tuple(each for each in questions if each.id in means), tuple(found))

    def scores(self, matrix: Array) -> Array:
        """Return balanced scores of pages for all titles through an adapter, `(Q, P)`."""
        queries = self.encoder.encode([each.text for each in self.data.questions], QUERY)
        documents = self.encoder.encode([each.text for each in self.data.candidates], "candidate")
        found = page_scores(mapped(queries, matrix) @ documents.T, self.starts, self.index.plan.sharpness)
        balance(found, self.languages)
        return found

    def gains(self, labels: RetrievalData) -> Array:
        """Return what pages gain for titles by labelled queries, `(Q, P)`."""
        found, number = np.zeros(self.right.shape), {}
        for i, start in enumerate(self.starts):
            number[self.index.passages[start].page] = i
        labelled, pages = self.index.labelled(labels)
        queries = self.encoder.encode([each.text for each in self.data.questions], QUERY)
        for row, (own, gain) in enumerate(labelled.recall(queries) if labelled else []):
            found[row, [number[pages[i]] for i in own]] = gain * spread_of(self.index.plan.sharpness or 0)
        return found

    def precisions(self, scores: Array) -> Array:
        """Return the average precision of all titles by scores of pages and their translations, `(Q,)`."""
        order = np.argsort(-scores - group_means(scores, self.groups), axis=1, kind="stable")[:, :TOP]
        hits = np.take_along_axis(self.right, order, 1)
        precision = np.cumsum(hits, 1) / np.arange(1, TOP + 1)[: hits.shape[1]]
        return np.asarray((precision * hits).sum(1) / np.minimum(self.right.sum(1), TOP))
