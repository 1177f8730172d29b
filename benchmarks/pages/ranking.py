"""Ranks the pages of an index for questions, by a search or by scores of passages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.pages.asked import DEEP, Asked, Found, Mask, Values, measure
from metasearch.config.languages import UNKNOWN, primary_language
from metasearch.data.languages import detectable, detector
from metasearch.errors import DataError
from metasearch.search.index.base import PageScores
from metasearch.search.index.local import LocalStore
from metasearch.search.query.pages import RankedPages
from metasearch.search.query.searcher import Searcher

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Way:
    """How scores of passages become a ranking of pages; see `RankedPages`."""

    sharpness: float | None
    balance: bool
    grouped: bool


@dataclass(frozen=True, eq=False)
class Table:
    """All pages of an index.

    Attributes:
        pages: passages, page by page. Its rows are numbers of places, since pages may share a row.
        rows: row of the index at each place, `(n,)`.
        numbers: number of each page among the files that are asked for, `(P,)`.
    """

    pages: PageScores
    rows: NDArray[np.int64]
    numbers: NDArray[np.int64]

    @classmethod
    def read(cls, searcher: Searcher, asked: Asked) -> Self:
        """Return the pages of an index of the asked files."""
        store = searcher.store
        assert isinstance(store, LocalStore)
        everything = np.arange(len(store)), np.zeros(len(store), np.float32)
        found = store.score_pages(np.zeros(store.kind.dimension, np.float32), everything)
        files = list(store.files)
        if len(files) > len(found.starts):  # some have no text, and no page
            there = {passage.file for passage, _ in store.passages(everything[0])}
            files = [file for file in files if file in there]
        if len(files) != len(found.starts):
            raise DataError(f"{store.name}: {len(found.starts)} pages of {len(files)} files; index web pages alone")
        place = places(asked)
        numbers = np.array([place[(store.root or Path()).joinpath(file).resolve()] for file in files], np.int64)
        return cls(replace(found, rows=np.arange(len(found.rows))), found.rows, numbers)

    @property
    def page_of_place(self) -> NDArray[np.int64]:
        """The page of the table that each place is in, `(n,)`."""
        return np.repeat(np.arange(len(self.numbers)), np.diff(self.pages.starts, append=len(self.rows)))

    def rank(self, scores: Scores, way: Way, own: Sequence[str], kept: Mask | None = None) -> Found:
        """Return the pages for one question.

        Args:
            scores: of the rows of the index.
            way: how pages are ranked.
            own: tags of the question's language.
            kept: which of the asked files are in the pool, `(P,)`; by default all.
        """
        table = replace(self.pages, scores=scores[self.rows])
        if kept is not None:
            table = part(table, kept[self.numbers])
        ranked = RankedPages(table, way.sharpness, way.balance, way.grouped, own, (), {})
        page, numbers, hits = self.page_of_place, self.numbers, ranked.hits(DEEP)
        listed = [row for hit in hits for row in (hit.row, *hit.translations)]
        return Found(
            numbers[page[[hit.row for hit in hits]]].tolist(), list(dict.fromkeys(numbers[page[listed]].tolist()))
        )

    def measure(self, asked: Asked, scores: Scores, way: Way, own: Sequence[Sequence[str]]) -> dict[str, Values]:
        """Return the values of questions by scores of the rows of the index, `(Q, R)`; `own` as of `own_tags`."""
        found = [self.rank(each, way, tags) for each, tags in zip(scores, own, strict=True)]
        return measure(asked, found, self.rank_alone(asked, scores, way, own))

    def rank_alone(self, asked: Asked, scores: Scores, way: Way, own: Sequence[Sequence[str]]) -> list[Found | None]:
        """Return the pages where right ones exist in one other language alone; None for titles, to save time."""
        return [
            self.rank(scores[i], way, own[i], asked.kept(i)) if asked.kind == "questions" and other else None
            for i, other in enumerate(asked.others)
        ]


def part(table: PageScores, kept: Mask) -> PageScores:
    """Return a table with some of its pages, `kept` `(P,)`."""
    sizes = np.diff(table.starts, append=len(table.rows))
    inside = np.repeat(kept, sizes)
    _, groups = np.unique(table.groups[kept], return_inverse=True)
    return PageScores(
        table.rows[inside],
        table.scores[inside],
        np.cumsum(sizes[kept]) - sizes[kept],
        [tag for tag, there in zip(table.languages, kept.tolist(), strict=True) if there],
        groups,
    )


def places(asked: Asked) -> dict[Path, int]:
    """Return the number of each file."""
    return {path.resolve(): number for number, path in enumerate(asked.files)}


def own_tags(searcher: Searcher, texts: Sequence[str]) -> list[list[str]]:
    """Return for each question the tags of the index that are its language, detected as a search detects it."""
    known = sorted({primary_language(tag) for tag in searcher.languages} & detectable())
    detect = detector(known) if len(known) > 1 else lambda _: known[0] if known else UNKNOWN
    found = (detect(text) for text in texts)
    return [[tag for tag in searcher.languages if primary_language(tag) == language] for language in found]


def search(searcher: Searcher, asked: Asked, by: str | None = None) -> list[Found]:
    """Return the pages of `metasearch search`; a hit is the file of the passage that is shown."""
    place = places(asked)
    found = []
    for hits in searcher.search(asked.texts, top_k=DEEP, by=by):
        shown = [place[searcher.path_of(hit.passage).resolve()] for hit in hits]
        versions = (each for hit in hits for each in (hit.passage, *(other.passage for other in hit.translations)))
        listed = [place[searcher.path_of(each).resolve()] for each in versions]
        found.append(Found(list(dict.fromkeys(shown)), list(dict.fromkeys(listed))))
    return found
