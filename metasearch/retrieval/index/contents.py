"""The rows of an index: each text in each language once, numbered in the order in which the documents first have it."""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np

from metasearch.data.documents.passage import Passage
from metasearch.retrieval.index.locations import Locations
from metasearch.retrieval.index.scan import Places, Rows, ScanArrays
from metasearch.retrieval.index.segment import Segment


class Contents:
    """Segments and locations together, R rows.

    Args:
        segments: in the order in which locations number them.
        locations: of the documents.
    """

    def __init__(self, segments: Sequence[Segment], locations: Locations) -> None:
        self.segments = segments
        self.locations = locations
        _, first, counts = np.unique(locations.words, return_index=True, return_counts=True)
        order = np.argsort(first)
        self.first: Rows = first[order]
        """First place of each row, `(R,)`."""
        self.places: Rows = counts[order]
        """How many places each row has, `(R,)`."""
        self.at: Places = (locations.segments[self.first], locations.rows[self.first])
        """Segment of each row, and its row there."""
        self._last: tuple[tuple[frozenset[str], ...], list[ScanArrays]] | None = None
        """The last groups that were searched, as most searches ask for the same ones."""

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def languages(self) -> dict[str, int]:
        """How many rows each language has, most first."""
        found: Counter[str] = Counter()
        for segment, numbers in zip(self.segments, self.numbers, strict=True):
            counts = np.bincount(segment.languages[numbers >= 0], minlength=len(segment.tags))
            found.update({tag: int(count) for tag, count in zip(segment.tags, counts, strict=True) if count})
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    @cached_property
    def numbers(self) -> list[Rows]:
        """For each segment the row in the index of each of its rows, -1 of a dead one, `(n,)`."""
        found = [np.full(len(segment), -1, np.int64) for segment in self.segments]
        for number, numbers in enumerate(found):
            own = np.flatnonzero(self.at[0] == number)
            numbers[self.at[1][own]] = own
        return found

    def searched(self, groups: Sequence[Collection[str]] = ((),)) -> list[ScanArrays]:
        """Return what is searched of each segment.

        Args:
            groups: languages whose rows are ranked apart; an empty one has all languages.

        Raises:
            ValueError: a language is in two of the groups.
        """
        # Read once: another thread may search other groups meanwhile.
        key, last = tuple(map(frozenset, groups)), self._last
        if last and last[0] == key:
            return last[1]
        named = [tag for tags in groups for tag in set(tags or self.languages)]
        if len(set(named)) < len(named):
            raise ValueError(f"a language is in two of the groups {list(map(list, groups))}")
        found = []
        for segment, numbers in zip(self.segments, self.numbers, strict=True):
            inside = [[group for group, tags in enumerate(groups) if tag in tags or not tags] for tag in segment.tags]
            of_tag = np.array([own[0] if own else -1 for own in inside], np.int16)
            own = np.where(numbers >= 0, of_tag[segment.languages], np.int16(-1))
            found.append(ScanArrays(segment.codes, segment.steps, numbers, own))
        self._last = key, found
        return found

    def text(self, row: int) -> str:
        """Return the text of a row."""
        return self.segments[int(self.at[0][row])].text(int(self.at[1][row]))

    def passage(self, row: int) -> Passage:
        """Return the passage of a row at its first place."""
        return self._passage(int(self.first[row]))

    def all_places(self, row: int) -> list[Passage]:
        """Return the passage of a row at each of its places."""
        words = self.locations.words
        return [self._passage(int(place)) for place in np.flatnonzero(words == words[self.first[row]])]

    def _passage(self, place: int) -> Passage:
        locations = self.locations
        segment, row = self.segments[int(locations.segments[place])], int(locations.rows[place])
        file = locations.files[int(np.searchsorted(locations.ends, place, side="right"))]
        return Passage(segment.text(row), file.path, int(locations.lines[place]), segment.tag(row))
