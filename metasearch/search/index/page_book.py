"""Pages of an index: their passages, and their translations."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from metasearch.search.index.base import PageScores, Rows, Scores, group_keys, number_groups

PagePlace = tuple[str, str, str, int]
"""Where a row is among the pages, as a copy of an index keeps it: hash of the page, hash of what the page has in common
with its translations, language of most places of the page, and how many passages of the page are before it."""


@dataclass(frozen=True, eq=False)
class PageBook:
    """P pages at n places of R rows.

    Attributes:
        rows: row at each place, page by page, `(n,)`. A row is at several places where pages share a text.
        numbers: number of each page among all pages, `(P,)`. A page without translations that has the passages of
            another one is its copy, and none of the book.
        starts: first place of each page, `(P,)`.
        languages: language of each page, or of most of its places, `(P,)`.
        groups: number of each page's group of translations, `(P,)`.
    """

    rows: Rows
    numbers: Rows
    starts: Rows
    languages: NDArray[np.str_]
    groups: Rows

    @classmethod
    def of(cls, rows: Rows, starts: Rows, tags: NDArray[Any], names: Sequence[str], own: Sequence[str]) -> Self:
        """Return the book of pages whose translations have the same name; `tags` is the language of each place.

        `own` is the language of each page where it is known: in a folder of a language, the version for its readers may
        be translated in part.
        """
        kept = first_equal(rows, starts, names) == np.arange(len(starts))
        sizes = np.diff(starts, append=len(rows))[kept]
        places = np.repeat(kept, np.diff(starts, append=len(rows)))
        rows, starts, tags, names = rows[places], np.cumsum(sizes) - sizes, tags[places], [*compress(names, kept)]
        known, codes = np.unique(tags, return_inverse=True)
        counts = np.zeros((len(starts), len(known)), np.int64)
        np.add.at(counts, (np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows))), codes), 1)
        languages = known[counts.argmax(1)] if len(known) else np.zeros(0, np.str_)
        stated = np.array(own, np.str_)[kept]
        languages = np.where(stated == "", languages, stated)
        return cls(rows, np.flatnonzero(kept), starts, languages, number_groups(names, languages.tolist()))

    def row_places(self, pages: Sequence[tuple[str, int]], names: Sequence[str]) -> Callable[[int], PagePlace]:
        """Return a function from a row to the first of its places; `pages` are file and line, with `names`, of all.

        Hashes depend on file, line and group of a page, so that they stay when other documents come or go.
        """
        languages = self.languages.tolist()
        pages, names = ([each[i] for i in self.numbers.tolist()] for each in (pages, names))
        facts = [*map(_hash, pages)], [*map(_hash, group_keys(names, languages, pages))], languages
        _, first = np.unique(self.rows, return_index=True)
        numbers = self._page_of_place[first]
        positions = first - self.starts[numbers]

        def place(row: int) -> PagePlace:
            number = int(numbers[row])
            page, group, language = (each[number] for each in facts)
            return page, group, language, int(positions[row])

        return place

    def scores(self, found: Rows, inside: NDArray[np.bool_] | None, score: Callable[[Rows], Scores]) -> PageScores:
        """Return the passages of the pages of some rows and of their translations, with their scores.

        `inside` are the rows that count, `(R,)`; None for all. `score` returns the scores of rows.
        """
        pages = np.unique(self._page_of_place[_find_all(self._by_row, found)])
        pages = np.sort(_find_all(self._by_group, np.unique(self.groups[pages])))
        lengths = self._sizes[pages]
        page = np.repeat(np.arange(len(pages)), lengths)
        places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths - self.starts[pages], lengths)
        if inside is not None:
            kept = inside[self.rows[places]]
            places, page = places[kept], page[kept]
        rows = self.rows[places]
        there, starts = np.unique(page, return_index=True)
        _, groups = np.unique(self.groups[pages[there]], return_inverse=True)
        tags, shared = self.languages[pages[there]].tolist(), self._first_page[rows] < pages[page]
        return PageScores(rows, score(rows), starts, tags, groups, shared)

    @cached_property
    def _first_page(self) -> Rows:
        known, first = np.unique(self.rows, return_index=True)
        found = np.zeros(known.max(initial=-1) + 1, np.int64)
        found[known] = self._page_of_place[first]
        return found

    @cached_property
    def _by_row(self) -> tuple[Rows, Rows]:
        return _sorted(self.rows)

    @cached_property
    def _by_group(self) -> tuple[Rows, Rows]:
        return _sorted(self.groups)

    @cached_property
    def _sizes(self) -> Rows:
        return np.diff(self.starts, append=len(self.rows))

    @cached_property
    def _page_of_place(self) -> Rows:
        return np.repeat(np.arange(len(self.starts)), self._sizes)


def first_equal(rows: Rows, starts: Rows, names: Sequence[str]) -> Rows:
    """Return for each page without translations the first one with the same rows, and for others themselves, `(P,)`.

    One with translations comes before those without. Pages have translations where they share a name.
    """
    found, first = np.arange(len(starts)), dict[bytes, int]()
    several = np.flatnonzero(np.bincount(rows)[rows[starts]] > 1).tolist()
    if not several:  # in an index of millions of pages, names take seconds to count
        return found
    counts, ends = Counter(names), np.append(starts[1:], len(rows))
    for number in sorted(several, key=lambda number: counts[names[number]] == 1):
        equal = first.setdefault(rows[starts[number] : ends[number]].tobytes(), number)
        found[number] = equal if counts[names[number]] == 1 else number
    return found


def _hash(key: object) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]


def _sorted(values: Rows) -> tuple[Rows, Rows]:
    """Return the places of values in ascending order, and the values in that order."""
    order = np.argsort(values, kind="stable")
    return order, values[order]


def _find_all(values: tuple[Rows, Rows], wanted: Rows) -> Rows:
    """Return all places of some values, which are sorted as by `_sorted`."""
    order, ascending = values
    first = np.searchsorted(ascending, wanted)
    counts = np.searchsorted(ascending, wanted, side="right") - first
    found: Rows = order[np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - first, counts)]
    return found
