"""What copies of an index in databases share: numbers, digests, words and pages of rows.

A copy has each row once, at its first place, with the page and the group of translations of that place. A folder has a
row in all pages that share its text.
"""

import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import ConfigError, RunFolderError
from metasearch.search.documents.passage import Passage
from metasearch.search.index.base import (
    Keys,
    PageScores,
    Ranking,
    Rows,
    Store,
    Words,
    keys_by_language,
    require_languages,
)
from metasearch.search.index.fields import scalars
from metasearch.search.index.local import LocalStore
from metasearch.search.index.places import SITE

AT_ONCE = 256
"""Rows that are read and sent together."""
K1, B = 1.5, 0.75
"""Constants of BM25, as in a local index."""
EXACT = 20_000
"""Passages in the languages of a search that a database reads all, rather than search its graph of vectors (HNSW)."""
EXPLORED = 1000
"""Vectors of a graph that a search keeps in sight: the most that pgvector takes."""
_MEASURED = 10_000
"""Passages in the estimate of BM25's mean length."""


class CopyStore(Store, Protocol):
    """A copy of an index, with its facts in `state` as the copy was made."""

    state: Mapping[str, Any]

    def __len__(self) -> int:
        """Return how many passages there are."""
        return self.count()

    def count(self, languages: Collection[str] = ()) -> int:
        """Return how many passages some languages have, or all."""
        return sum(self.languages[tag] for tag in set(languages or self.languages))

    @property
    def unknown(self) -> dict[str, str]:
        """Languages that the encoder hardly knows."""
        return dict(self.state.get("unknown", {}))

    @property
    def site(self) -> str:
        """The address of the root of the documents; empty without one."""
        return str(self.state.get(SITE, ""))

    def known_rows(self, numbers: Sequence[int]) -> dict[int, tuple[str, int]]:
        """Return language and number of places of the rows that are there."""
        ...

    def equal_rows(self, passages: Sequence[Passage], languages: Sequence[str]) -> list[dict[int, tuple[str, int]]]:
        """Return for each passage the rows with its text and fields: row → language and number of places."""
        require_languages(languages, self.languages)
        numbers = first_bits(keys_by_language(passages, languages))
        there = self.known_rows(np.unique(numbers).tolist())
        rows = numbers.reshape(len(passages), len(languages)).tolist()
        return [{row: there[row] for row in own if row in there} for own in rows]

    def rows_of(self, keys: Keys) -> Rows:
        """Return the rows with some keys, of keys that are there, `(r,)`."""
        return np.array(sorted(self.known_rows(first_bits(keys).tolist())), np.int64)


def lack_of_pages(name: str) -> RunFolderError:
    """Return the error for a copy of an earlier release, whose rows have no pages."""
    how = f"delete it, and call metasearch index DOCUMENTS -o INDEX --to {name}"
    return RunFolderError(f"{name}: an earlier release made this copy, without pages; {how}")


def ranked(found: Sequence[tuple[int, float]]) -> Ranking:
    """Return rows and scores as a ranking."""
    return np.array([row for row, _ in found], np.int64), np.array([score for _, score in found], np.float32)


def stacked(found: Sequence[Ranking]) -> Ranking:
    """Return the rankings of queries as one, `(q, K)`: as many rows as each of them has."""
    shape = len(found), min((len(rows) for rows, _ in found), default=0)
    rows = np.array([own[: shape[1]] for own, _ in found], np.int64).reshape(shape)
    return rows, np.array([own[: shape[1]] for _, own in found], np.float32).reshape(shape)


def numbers_of_keys(keys: Keys) -> Rows:
    """Return each key's number in a database, `(n,)`: its first 63 bits.

    Two of 100 million passages have the same number in one of 1,800 copies, which is a `ConfigError`.
    """
    numbers = first_bits(keys)
    if len(np.unique(numbers)) < len(numbers):
        raise ConfigError("two passages would have the same number in the database; use a local index")
    return numbers


def first_bits(keys: Keys) -> Rows:
    """Return the first 63 bits of keys, `(n,)`."""
    return (np.ascontiguousarray(keys[:, :8]).view(">u8").ravel() >> np.uint64(1)).astype(np.int64)


def digest(values: Iterable[object], mark: int) -> int:
    """Return a number that differs where a row's values do; `mark` tells whether its vectors are current."""
    return zlib.crc32("\x00".join(map(str, values)).encode(), mark)


def vectors_mark(store: LocalStore) -> int:
    """Return a number that differs where the vectors of equal texts do; queries can change without it."""
    known = store.plan.projection
    return zlib.crc32(b"" if known is None else known.centre.tobytes() + known.directions.tobytes())


def page_table(found: Sequence[tuple[int, float, str, str, str]]) -> PageScores:
    """Return rows with their scores, pages, groups and languages of pages, which are in the order of the pages."""
    rows, scores, pages, groups, languages = zip(*found, strict=True) if found else ((),) * 5
    starts = np.array([i for i, page in enumerate(pages) if i == 0 or page != pages[i - 1]], np.int64)
    heads = starts.tolist()
    numbers: dict[str, int] = {}
    numbered = np.array([numbers.setdefault(groups[i], len(numbers)) for i in heads], np.int64)
    tags = [languages[i] for i in heads]
    return PageScores(np.array(rows, np.int64), np.array(scores, np.float32), starts, tags, numbered)


def parts(rows: Sequence[int]) -> list[list[int]]:
    """Return rows in parts of `AT_ONCE`."""
    return [list(rows[start : start + AT_ONCE]) for start in range(0, len(rows), AT_ONCE)]


def find_changed(
    store: LocalStore, numbers: Rows, there: Mapping[int, int], digest_of: Callable[[int, Passage, int], int]
) -> tuple[list[int], set[str]]:
    """Return the rows that a copy lacks or has with another digest, and the names of fields to filter by.

    `there` has the digests of the copy by number, and `digest_of` returns the one of a row, from its passage and the
    number of its places.
    """
    changed: list[int] = []
    names: set[str] = set()
    for rows in parts(range(len(store))):
        for row, (passage, places) in zip(rows, store.passages(rows), strict=True):
            names.update(name for name, value in passage.fields.items() if scalars(value))
            if there.get(int(numbers[row])) != digest_of(row, passage, places):
                changed.append(row)
    return changed, names


def copy_facts(store: LocalStore, names: Collection[str]) -> dict[str, Any]:
    """Return the facts of an index that every copy keeps; `names` are of fields to filter by."""
    facts = {"contents": store.contents, "fields": sorted(names), "unknown": store.unknown}
    return {**facts, "ranking": store.ranking_facts, SITE: store.site}


def mean_length(store: LocalStore, words: Words) -> float:
    """Return the mean number of words in a text of an index, estimated from at most 10,000 texts."""
    rows = np.unique(np.linspace(0, len(store) - 1, min(len(store), _MEASURED)).astype(np.int64))
    texts = ([passage.text for passage, _ in store.passages(part)] for part in parts(rows.tolist()))
    return float(np.mean([len(cut) for own in texts for cut in words(own)]))


def word_weights(cut: Sequence[int], length: float) -> tuple[Rows, NDArray[np.float64]]:
    """Return a text's distinct words and their weights without the IDF, f / (f + k1 (1 - b + b |text| / length))."""
    distinct, counts = np.unique(np.asarray(cut, np.int64), return_counts=True)
    return distinct, counts / (counts + K1 * (1 - B + B * len(cut) / length))
