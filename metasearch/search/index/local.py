"""An index in a folder, to be searched: passages in SQLite, and an exact search of all vectors in memory."""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load

from metasearch.errors import RunFolderError
from metasearch.runs.versions import cores
from metasearch.search.documents.passage import BELOW, Passage
from metasearch.search.documents.read import GROUP, is_page
from metasearch.search.index.adapters import read_adapter
from metasearch.search.index.base import (
    ALL,
    Keys,
    Kind,
    PageScores,
    Ranking,
    Rows,
    Scope,
    SearchError,
    SourceFile,
    Store,
    Words,
    find_sorted,
    key_words,
    keys_by_language,
    require_field,
    require_languages,
    require_queries,
)
from metasearch.search.index.bm25 import Bm25
from metasearch.search.index.database import ARRAYS, ROW, Block, Database, read_state
from metasearch.search.index.exact_search import Quantised
from metasearch.search.index.fields import Column
from metasearch.search.index.mapped_vectors import expand_vectors, projected
from metasearch.search.index.maps import Vectors
from metasearch.search.index.page_book import PageBook, PagePlace, first_equal
from metasearch.search.index.places import SITE, find_encoder, roots
from metasearch.search.index.plan import SearchPlan
from metasearch.search.settings import Condition, Conditions

_REMEMBERED = 64
"""Documents whose headings stay in memory."""
PLACES = ("path", "title")
"""Fields to filter by, unless documents have such: the file and each folder that it is in; its outermost headings."""
_AT_ONCE = 4096
"""Passages whose words are counted at a time."""


@dataclass(frozen=True, eq=False)
class Contents:
    """The documents' passages: R rows at P places, files in order."""

    files: Sequence[SourceFile]
    ends: Rows  # file i has the places from `ends[i - 1]` up to `ends[i]`
    lines: NDArray[np.int32]  # of each place, `(P,)`
    ids: Rows  # number of the passage at each place, `(P,)`
    sorted: Rows  # numbers of the passages, ascending, `(R,)`
    rows: Rows  # row of each of `sorted`, `(R,)`
    first: Rows  # first place of each row, `(R,)`
    counts: Rows  # places of each row, `(R,)`

    @classmethod
    def read(cls, database: Database, count: int) -> "Contents":
        """Read `count` documents; `RunFolderError` for another number."""
        found = [values for _, values in database.rows("file") if values is not None]
        if len(found) != count:
            raise database.damaged("the list of documents")
        files = [SourceFile(**json.loads(facts)) for facts, _, _ in found]
        ids = np.frombuffer(b"".join(numbers for _, numbers, _ in found), np.int64)
        lines = np.frombuffer(b"".join(own for *_, own in found), np.int32)
        ends = np.cumsum([len(own) // lines.itemsize for *_, own in found], dtype=np.int64)
        distinct, first, counts = np.unique(ids, return_index=True, return_counts=True)
        order = np.argsort(first)
        rows = np.empty(len(order), np.int64)
        rows[order] = np.arange(len(order))
        return cls(files, ends, lines, ids, distinct, rows, first[order], counts[order])

    def parts(self) -> Iterator[tuple[SourceFile, slice]]:
        """Yield the files with their places."""
        ends = self.ends.tolist()
        yield from zip(self.files, map(slice, [0, *ends], ends), strict=True)

    def rows_of(self, ids: Rows) -> Rows:
        """Return each passage's row, -1 without a place."""
        return find_sorted(self.sorted, self.rows, ids)


class LocalStore(Store):
    """An index in a folder. `open` gives one.

    Rows are numbered from 0 in the order of the documents. A row is a text in a language: what several places of the
    documents have is one row, at the first of them. By default a search has as many threads as there are processors.
    """

    def __init__(self, folder: Path, database: Database, state: dict[str, Any], threads: int | None = None) -> None:
        self.folder = folder
        self.name = str(folder)
        self.threads = threads or cores() or 1
        self._database = database
        self.state = state
        self.kind = replace(Kind(**state["kind"]), encoder=find_encoder(state, folder))
        record = load(database.row("state", ARRAYS, "the index")[0]) if state["arrays"] else {}
        self.ranking_facts = {"balance": bool(state.get("translated")), **state.get("ranking", {})}
        """How the index is to be searched, as keys of `RankingSettings`."""
        self.plan = SearchPlan.read(record, self.ranking_facts)
        self.plan = replace(self.plan, adapter=read_adapter(self))
        self._last: tuple[tuple[frozenset[str], ...], NDArray[np.int16]] | None = None
        self._bm25: Bm25 | None = None
        self._columns: dict[str, Column | None] = {}
        """The fields of all passages by name, once one was read; None of a field that was not read yet."""

    @classmethod
    def open(cls, folder: Path, *, threads: int | None = None) -> "LocalStore":
        """Open an index for searching, in its current state; all scored data is read and checked."""
        database = Database(folder)
        try:
            state = database.state()
            if state.get("files") is None:
                raise RunFolderError(
                    f"{database.path}: the index is incomplete; run metasearch index with its documents again"
                )
            store = cls(folder, database, state, threads)
            assert store.quantised
            return store
        except BaseException:
            database.close()
            raise

    # Reading.

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._contents.first)

    @property
    def contents(self) -> str:
        """Hash of all rows and places: equal hashes mean equal texts in equal order."""
        return str(self.state["contents"])

    @property
    def places(self) -> int:
        """Number of places in the documents, each with a row's text."""
        return len(self._contents.ids)

    @cached_property
    def files(self) -> dict[str, SourceFile]:
        """The document files, by path."""
        return {file.path: file for file in self._contents.files}

    @cached_property
    def languages(self) -> dict[str, int]:
        """How many rows each language has, most first."""
        counts = zip(self.state["languages"], np.bincount(self._row_languages).tolist(), strict=False)
        return dict(sorted((each for each in counts if each[1]), key=lambda item: (-item[1], item[0])))

    def state_row(self, number: int, what: str) -> bytes:
        """Return a row of the table of state; `RunFolderError` says that `what` is damaged."""
        return self._database.row("state", number, what)[0]

    @property
    def root(self) -> Path:
        """The folder to which paths of documents are relative, which may be gone."""
        known = roots(self.state, self.folder)
        return next((root for root in known if root.is_dir()), known[-1])

    @property
    def site(self) -> str:
        """The address of the root of the documents, or the empty text."""
        return str(self.state.get(SITE, ""))

    def canonical_url(self, file: str) -> str:
        """Return the address that a page names as its own, or the empty text."""
        return self.files[file].url

    @property
    def unknown(self) -> dict[str, str]:
        """Languages of the index that its encoder hardly knows, and the reason of each."""
        return {tag: reason for tag, reason in self.state.get("unknown", {}).items() if tag in self.languages}

    def changed(self) -> bool:
        """Return whether another writer has changed the index; `RunFolderError` where it is gone or damaged."""
        return read_state(self.folder) != self.state

    def reopen(self) -> "LocalStore":
        """Return the index in its current state on disk; errors as in `open`."""
        return LocalStore.open(self.folder, threads=self.threads)

    def verify(self) -> None:
        """Compare all with its checksum; `RunFolderError` names each damaged block, or its first damaged passage."""
        rows = self._database.rows("passage")
        sound, problems = np.array([number for number, values in rows if values is not None], np.int64), []
        for number, values in self._database.rows("block"):
            try:
                block = self._block(number, values)
                self._codes(number, block)
                missing = np.setdiff1d(block["id"][block["id"] >= 0], sound, assume_unique=True)
                if len(missing):
                    raise self._database.damaged(f"passage {missing.min()}")
            except RunFolderError as error:
                problems.append(str(error))
        if problems:
            raise RunFolderError("; ".join(problems))

    def search(
        self, vectors: Vectors, top_k: int = 10, groups: Sequence[Collection[str]] = ((),), where: Conditions = ()
    ) -> list[Ranking]:
        """Return for each group of languages the best rows and their scores, as `Store.search`.

        Exact, but for the rounding of vectors to eight bits. Of equal scores the lower row comes first. K is `top_k`,
        or fewer where there are fewer rows.

        Raises:
            ConfigError: no row is in one of the languages or has one of the fields, or `top_k` is below 1.
            NonFiniteError: a vector is not finite.
            ValueError: a language is in two groups.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.kind.dimension:
            raise ValueError(f"expected vectors (q, {self.kind.dimension}), got {vectors.shape}")
        require_queries(vectors, top_k)
        chosen = self.groups(groups)
        if where:
            chosen = np.where(self._meets(where), chosen, -1).astype(np.int16)
            sizes = np.bincount(chosen[chosen >= 0], minlength=len(groups)).tolist()
        else:
            sizes = [sum(self.languages[tag] for tag in set(languages) or self.languages) for languages in groups]
        wanted = [min(top_k, size) for size in sizes]
        if not any(wanted) or not len(vectors):
            return [(np.zeros((len(vectors), w), np.int64), np.zeros((len(vectors), w), np.float32)) for w in wanted]
        found = self.quantised.search(chosen, vectors, wanted, self.threads)
        return [(np.stack(best.rows), np.stack(best.scores)) for best in found]

    def search_words(self, words: Words, queries: Sequence[str], top_k: int, scope: Scope = ALL) -> list[Ranking]:
        """Return for each query the best rows by BM25, as `Store.search_words`."""
        if self._bm25 is None:
            parts = (range(start, min(start + _AT_ONCE, len(self))) for start in range(0, len(self), _AT_ONCE))
            texts = ([passage.text for passage, _ in self.passages(rows)] for rows in parts)
            self._bm25 = Bm25(self.folder, [self.contents, self.kind.fingerprint], texts, words)
        return self._bm25.search(queries, top_k, self.rows_in(scope.languages, scope.where))

    def expand(self) -> "LocalStore":
        """Return the index with expanded vectors, from their cache if possible.

        `SearchError` if it has too many passages, or passages of one language alone.
        """
        return self._expanded

    @cached_property
    def _expanded(self) -> "LocalStore":
        numbers = {tag: self.rows_in([tag]) for tag in self.languages}
        vectors = f"{self.contents} {hashlib.sha256(self.plan.space).hexdigest()}"
        found = copy(self)
        found.quantised = expand_vectors(self.folder, vectors, self.quantised, numbers)
        return found

    def groups(self, groups: Sequence[Collection[str]]) -> NDArray[np.int16]:
        """Return the group number of each row's language, or -1, `(R,)`."""
        # Read once: another thread may search other groups meanwhile.
        key, last = tuple(map(frozenset, groups)), self._last
        if last and last[0] == key:
            return last[1]
        require_languages([tag for languages in groups for tag in languages], self.languages)
        named = [tag for tags in groups for tag in set(tags or self.languages)]
        if len(set(named)) < len(named):
            raise ValueError(f"a language is in two groups {list(map(list, groups))}")
        inside = [[i for i, tags in enumerate(groups) if tag in tags or not tags] for tag in self.state["languages"]]
        of_tag = np.array([own[0] if own else -1 for own in inside], np.int16)
        found = of_tag[self._row_languages]
        self._last = key, found
        return found

    def rows_in(self, languages: Collection[str], where: Conditions = ()) -> NDArray[np.bool_]:
        """Return which rows are in some languages and meet all conditions, `(R,)`."""
        inside = np.asarray(self.groups([languages]) >= 0)
        return inside & self._meets(where) if where else inside

    def _meets(self, where: Conditions) -> NDArray[np.bool_]:
        meets = [self._column(each).meets(each, len(self)) for each in where]
        return np.asarray(np.logical_and.reduce(meets), np.bool_)

    def _column(self, condition: Condition) -> Column:
        """Return the field of a condition for all rows, read on first use."""
        columns, name = self._columns, condition.name
        if columns.get(name) is None and (name in columns or not columns):
            names = set[str]()
            found = list(self._field_values(name, names))
            columns |= {each: columns.get(each) for each in names}
            if name in names:
                columns[name] = Column(found)
        if name in PLACES and name not in columns:
            columns[name] = Column(self.place_values(name))
        require_field(condition, columns)
        column = columns[name]
        assert column is not None
        if not len(column):
            message = f"the field '{name}' has no text, number or boolean to filter by"
            raise SearchError("where", "unknown_field", message)
        return column

    def _field_values(self, name: str, names: set[str] | None = None) -> Iterator[tuple[int, Any]]:
        """Yield each row with a field and its value; `names` gets the names of all fields."""
        found = []
        for number, values in self._database.rows("passage", "WHERE length(fields) > 0"):
            if values is None:
                raise self._database.damaged(f"passage {number}")
            fields = json.loads(values[2])
            if names is not None:
                names.update(fields)
            if name in fields:
                found.append((number, fields[name]))
        rows = self._contents.rows_of(np.array([number for number, _ in found], np.int64)).tolist()
        yield from ((row, value) for row, (_, value) in zip(rows, found, strict=True) if row >= 0)

    def place_values(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield each row with the paths or the titles of its documents (`PLACES`)."""
        rows = self.place_rows
        for number, (file, part) in enumerate(self._contents.parts()):
            if name == "path":
                values = {file.path, *(each.as_posix() for each in PurePosixPath(file.path).parents)}
            else:
                values = {heading.split(BELOW)[0] for _, heading, _ in self._headings(number) if heading}
            yield from ((row, value) for row in set(rows[part].tolist()) for value in sorted(values))

    def passages(self, rows: Sequence[int] | Rows) -> list[tuple[Passage, int]]:
        """Return the passages of rows at their first places, and how many places each has."""
        own, found = self._contents, []
        places = own.first[np.asarray(rows, np.int64)]
        files = np.searchsorted(own.ends, places, side="right").tolist()
        read = self._database.rows_at("passage", own.ids[places].tolist(), "passage")
        for row, place, at, (tag, text, fields) in zip(rows, places.tolist(), files, read, strict=True):
            file, headings = own.files[at], self._headings(at)
            before = bisect_right(headings, place - (int(own.ends[at - 1]) if at else 0), key=lambda each: int(each[0]))
            _, heading, anchor = headings[before - 1] if before else (0, "", "")
            line, language = int(own.lines[place]), tag.decode()
            further = json.loads(fields or "{}")
            passage = Passage(text.decode(), file.path, line, language, further, heading, anchor)
            found.append((passage, int(own.counts[row])))
        return found

    def passages_by_place(self) -> list[Passage]:
        """Return the passage at each place of the documents, in their order; its row is in `place_rows`."""
        own = [passage for passage, _ in self.passages(range(len(self)))]
        return [
            replace(own[row], file=file.path, line=line)
            for file, part in self._contents.parts()
            for row, line in zip(self.place_rows[part].tolist(), self._contents.lines[part].tolist(), strict=True)
        ]

    @cached_property
    def place_rows(self) -> Rows:
        """The row at each place of the documents, `(P,)`."""
        return self._contents.rows_of(self._contents.ids)

    @cached_property
    def _headings(self) -> Callable[[int], list[tuple[int, str, str]]]:
        """Reads headings and anchors of a file by its number, as in `FilePlaces.headings`, and caches some files."""

        @lru_cache(_REMEMBERED)
        def read(number: int) -> list[tuple[int, str, str]]:
            *_, headings = self._database.row("page", number, "the list of documents")
            return [(first, heading, anchor) for first, heading, anchor in json.loads(headings)]

        return read

    def score_pages(self, vector: Vectors, ranking: Ranking, scope: Scope = ALL) -> PageScores:
        """Return all passages of the pages of some rows and of their translations, as `Store.score_pages`."""
        inside = self.rows_in(scope.languages, scope.where) if scope.languages or scope.where else None
        return self._pages.scores(ranking[0], inside, lambda rows: self.quantised.score(rows, vector))

    def page_places(self) -> Callable[[int], PagePlace]:
        """Return a function from a row to its place among the pages, for a copy of the index."""
        _, pages, names, _ = self._named_pages
        return self._pages.row_places(pages, names)

    def place_groups(self) -> list[str]:
        """Return for each place, as `passages_by_place`, the name that its page shares with its translations."""
        starts, _, names, _ = self._named_pages
        return [str(name) for name in np.repeat(names, np.diff(starts, append=len(self.place_rows)))]

    def original_places(self) -> Rows:
        """Return for each place, as `passages_by_place`, where it is on the page that its page copies."""
        starts, _, names, _ = self._named_pages
        moved = starts[first_equal(self.place_rows, starts, names)] - starts
        return np.arange(len(self.place_rows)) + np.repeat(moved, np.diff(starts, append=len(self.place_rows)))

    @cached_property
    def _pages(self) -> PageBook:
        rows = self.place_rows
        tags = np.array(self.state["languages"])[self._row_languages[rows]] if len(rows) else np.zeros(0, str)
        starts, _, names, languages = self._named_pages
        return PageBook.of(rows, starts, tags, names, languages)

    @property
    def _named_pages(self) -> tuple[Rows, list[tuple[str, int]], list[str], list[str]]:
        """First place of each page, `(P,)`; the page, as `page_of` has it; name that it shares with translations.

        Then the language of its file, empty for an unknown one and for rows.
        """
        rows, own = self._contents.rows_of(self._contents.ids), self._contents
        paged = [is_page(file.path) for file in own.files]
        grouped = {} if all(paged) else dict(self._field_values(GROUP))
        starts, pages, names, languages = list[int](), list[tuple[str, int]](), list[str](), list[str]()
        for whole, (file, part) in zip(paged, own.parts(), strict=True):
            if whole:
                heads = [part.start] if part.stop > part.start else []
                pages += [(file.path, 0)] * len(heads)
                names += [file.group] * len(heads)
            else:
                heads = (part.start + np.flatnonzero(np.diff(own.lines[part], prepend=-1))).tolist()
                lines = own.lines[heads].tolist()
                pages += [(file.path, line) for line in lines]
                values = [grouped.get(int(rows[head])) for head in heads]
                both = zip(lines, values, strict=True)
                names += [f"{file.path}:{line}" if value is None else f"group {value}" for line, value in both]
            starts += heads
            languages += [file.language if whole else ""] * len(heads)
        return np.array(starts, np.int64), pages, names, languages

    def equal_rows(self, passages: Sequence[Passage], languages: Sequence[str]) -> list[dict[int, tuple[str, int]]]:
        """Return for each passage the rows with its text and fields: row → language and number of places."""
        found = find_sorted(*self._sorted_keys, key_words(keys_by_language(passages, languages)))
        counts = self._contents.counts
        return [
            {row: (tag, int(counts[row])) for row, tag in zip(rows, languages, strict=True) if row >= 0}
            for rows in found.reshape(len(passages), len(languages)).tolist()
        ]

    def rows_of(self, keys: Keys) -> Rows:
        """Return the rows with some keys, of keys that are there, `(r,)`."""
        found = find_sorted(*self._sorted_keys, key_words(keys))
        return found[found >= 0]

    @cached_property
    def _sorted_keys(self) -> tuple[NDArray[np.bytes_], Rows]:
        words = key_words(self.row_keys())
        order = np.argsort(words)
        return words[order], order

    def row_keys(self) -> Keys:
        """Return each row's key, `(R, 16)`."""
        return self._of_rows("key")

    @cached_property
    def _contents(self) -> Contents:
        return Contents.read(self._database, self.state["files"] or 0)

    @cached_property
    def _rows(self) -> dict[int, Rows]:
        """Rows of each block's passages, -1 without a place; `RunFolderError` if a row is in no block."""
        found = {number: self._contents.rows_of(block["id"]) for number, block in self._blocks.items()}
        if sum(np.count_nonzero(rows >= 0) for rows in found.values()) < len(self):
            raise self._database.damaged("a block")
        return found

    def _of_rows(self, name: str) -> NDArray[Any]:
        """Return what the blocks say about each row in a field of `ROW`, `(R, ...)`."""
        found = np.zeros(len(self), ROW[name])
        for number, rows in self._rows.items():
            found[rows[rows >= 0]] = self._blocks[number][name][rows >= 0]
        return found

    @cached_property
    def _row_languages(self) -> NDArray[np.int32]:
        """Language number of each row, `(R,)`."""
        return self._of_rows("language")

    @cached_property
    def _blocks(self) -> dict[int, Block]:
        """The blocks by number; the first damaged one is an error."""
        return {number: self._block(number, values) for number, values in self._database.rows("block")}

    def _block(self, number: int, values: Sequence[bytes] | None) -> Block:
        if values is None:
            raise self._database.damaged(f"block {number}")
        return np.frombuffer(values[0], ROW)

    @cached_property
    def quantised(self) -> Quantised:
        """All rows' vectors, through the projection of the plan; `RunFolderError` if damaged."""
        if self.plan.projection:
            return projected(self.folder, f"{len(self)} {self.contents}", self.plan, lambda: self.stored)
        return self.stored

    @property
    def stored(self) -> Quantised:
        """The stored vectors of all rows."""
        codes = np.empty((len(self), self.kind.dimension), np.int8)
        for number, rows in self._rows.items():
            there = rows >= 0
            if there.all() and (np.diff(rows) == 1).all():  # copies less than lists of rows do
                codes[rows[0] : rows[-1] + 1] = self._codes(number, self._blocks[number])
            elif there.any():
                codes[rows[there]] = self._codes(number, self._blocks[number])[there]
        return Quantised(codes, self._of_rows("step"))

    def _codes(self, number: int, block: Block) -> NDArray[np.int8]:
        (content,) = self._database.row("codes", number, f"block {number}")
        return np.frombuffer(content, np.int8).reshape(len(block), self.kind.dimension)
