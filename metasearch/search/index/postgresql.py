"""An index in PostgreSQL with pgvector: a copy of a local index in two tables, made by `metasearch index --to`.

A row of TABLE is a text in a language, numbered by the first 63 bits of its key. It came with update `since` and left
with update `until`, null if it is there. Rows that left with the last update stay, so that a reader has all rows of the
update with which it began. A row of TABLE_state is an update: encoder, settings, projection, and how many passages have
each word.

A text at several places is one row, with the page and the group of translations of its first place. A folder has it on
all of its pages.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from safetensors.numpy import load

from metasearch.errors import RunFolderError
from metasearch.search.documents.passage import Passage
from metasearch.search.index.base import (
    ALL,
    CopyResult,
    Keys,
    Kind,
    OnCount,
    PageScores,
    Ranking,
    Rows,
    Scope,
    Store,
    Words,
    keys_by_language,
    require_field,
    require_languages,
    require_queries,
)
from metasearch.search.index.local import PLACES, LocalStore
from metasearch.search.index.maps import Vectors
from metasearch.search.index.places import SITE
from metasearch.search.index.plan import SearchPlan
from metasearch.search.index.postgresql_copy import (
    copy_to_postgresql,
    create_tables,
    row_numbers,
    sparse_text,
    unpack_counts,
)
from metasearch.search.index.postgresql_server import Server
from metasearch.search.settings import Condition, Conditions

EXACT = 20_000
"""Passages in the languages of a search that are all read, rather than searched by the graph of vectors (HNSW)."""
EXPLORED = 1000
"""Vectors of the graph that a search keeps in sight: the most that pgvector takes."""
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


class PostgresStore(Store):
    """Tables that a `Searcher` searches as it does a local index.

    Rows are the numbers of passages. Hits come from an index of pgvector (HNSW), which is approximate, or from a scan
    of all rows that meet the conditions, as the server plans it. Vectors are in float16.
    """

    def __init__(self, server: Server) -> None:
        self._server, self._table = server, server.table
        self.name = server.shown
        with server.connection() as connection:
            connection.execute(_SNAPSHOT)
            self.version = server.version(connection)
            if self.version is None or not self.version[0]:
                problem = "no such table" if self.version is None else "the table was emptied"
                raise RunFolderError(
                    f"{self.name}: {problem}; call metasearch index DOCUMENTS -o INDEX --to {self.name}"
                )
            self.number = number = self.version[0]
            sql = f"SELECT state, arrays FROM {self._table}_state WHERE number = %s"
            self.state, packed = connection.execute(sql, (number,)).fetchone()
        self.kind = Kind(**self.state["kind"])
        self.plan = SearchPlan.read(load(packed) if packed else {}, self.state["ranking"])
        self._visible = f"since <= {number} AND (until IS NULL OR until > {number})"

    @classmethod
    def check(cls, address: str) -> None:
        """Raise an error if an index cannot be copied to an address; nothing is changed there."""
        server = Server(address)
        with server.connection() as connection, connection.transaction(force_rollback=True):
            server.prepare(connection)
            if server.version(connection) is None:
                create_tables(connection, server.table, 1)

    @classmethod
    def open(cls, address: str) -> "PostgresStore":
        """Open the index at an address."""
        return cls(Server(address))

    @classmethod
    def copy(cls, index: LocalStore, address: str, words: Words, on_sent: OnCount) -> CopyResult:
        """Make new or existing tables a copy of a local index, in one transaction."""
        return copy_to_postgresql(Server(address), index, words, on_sent)

    @property
    def languages(self) -> dict[str, int]:
        """How many passages each language has, most first."""
        return dict(self.state["languages"])

    @property
    def unknown(self) -> dict[str, str]:
        """Languages that the encoder hardly knows."""
        return dict(self.state.get("unknown", {}))

    @property
    def site(self) -> str:
        """The address of the root of the documents; empty without one."""
        return str(self.state.get(SITE, ""))

    def __len__(self) -> int:
        """Return how many passages there are."""
        return sum(self.languages.values())

    def changed(self) -> bool:
        """Return whether the index was updated since it was opened."""
        with self._server.connection() as connection:
            return self._server.version(connection) != self.version

    def reopen(self) -> "PostgresStore":
        """Return the index in its current state."""
        return PostgresStore(self._server)

    def search(
        self, vectors: Vectors, top_k: int = 10, groups: Sequence[Collection[str]] = ((),), where: Conditions = ()
    ) -> list[Ranking]:
        """Return for each group of languages the best rows and their scores, as `Store.search`; approximate."""
        require_queries(vectors, top_k)
        queries = [str(vector.tolist()) for vector in vectors]
        with self._reading() as connection:
            # With conditions, an iterative scan stops at max_scan_tuples, and returns rows that are not the nearest.
            connection.execute(f"SET LOCAL hnsw.iterative_scan = {'off' if where else 'relaxed_order'}")
            connection.execute(f"SET LOCAL hnsw.ef_search = {EXPLORED}")
            return [self._nearest(connection, queries, top_k, Scope(languages, where)) for languages in groups]

    def _nearest(self, connection: Any, queries: Sequence[str], top_k: int, scope: Scope) -> Ranking:
        """Return for each query the best of the rows in scope: found by rounded vectors, ranked by the query's own."""
        inside, values = self._inside(scope)
        count = sum(self.languages[tag] for tag in set(scope.languages or self.languages))
        sql = (
            "SELECT id, -(dense::vector <#> %(query)s::vector) AS score FROM (SELECT id, dense FROM "
            f'"{self._table}" WHERE {inside} ORDER BY dense <#> %(query)s::vector::halfvec LIMIT %(near)s) AS near '
            "ORDER BY score DESC, id"
        )
        near = max(2 * min(top_k, count), 100)
        asked = [{**values, "query": query, "near": near} for query in queries]
        found: list[Any] = []
        for exact in [True] if count <= EXACT else [False, True]:
            connection.execute("SELECT set_config('enable_indexscan', %s, true)", ("off" if exact else "on",))
            found = [connection.execute(sql, own).fetchall() for own in asked]
            if all(len(own) == near for own in found):  # else so few rows meet the conditions that all of them are read
                break
        shape = len(found), min([top_k, *map(len, found)])
        best = [_ranking(own[: shape[1]]) for own in found]
        rows = np.array([own for own, _ in best], np.int64).reshape(shape)
        return rows, np.array([own for _, own in best], np.float32).reshape(shape)

    def search_words(self, words: Words, queries: Sequence[str], top_k: int, scope: Scope = ALL) -> list[Ranking]:
        """Return for each query the best rows by BM25 and their scores, best first, `(K,)` each: all rows are read."""
        counts, found = self._word_counts, []
        inside, values = self._inside(scope)
        sql = (
            f'SELECT id, -(words <#> %(query)s::sparsevec) AS score FROM "{self._table}" '
            f"WHERE {inside} AND words <#> %(query)s::sparsevec < 0 ORDER BY score DESC, id LIMIT %(most)s"
        )
        with self._reading() as connection:
            for cut in words(list(queries)):
                known = {word: counts[word] for word in map(int, cut) if word in counts}
                weights = {word: np.log1p((len(self) - n + 0.5) / (n + 0.5)) for word, n in known.items()}
                asked = {**values, "query": sparse_text(weights), "most": top_k}
                found.append(_ranking(connection.execute(sql, asked).fetchall()))
        return found

    @cached_property
    def _word_counts(self) -> Counter[int]:
        with self._reading() as connection:
            sql = f"SELECT words FROM {self._table}_state WHERE number = %s"
            return unpack_counts(connection.execute(sql, (self.number,)).fetchone()[0])

    def passages(self, rows: Sequence[int] | Rows) -> list[tuple[Passage, int]]:
        """Return the passages of rows at their first places, and how many places each has."""
        columns = "id, places, text, file, line, language, coalesce(fields, '{}'), heading, anchor"
        wanted = [int(row) for row in rows]
        with self._reading() as connection:
            sql = f'SELECT {columns} FROM "{self._table}" WHERE id = ANY(%s) AND {self._visible}'
            found = {row: (Passage(*own), places) for row, places, *own in connection.execute(sql, (wanted,))}
        return [found[row] for row in wanted]

    def score_pages(self, vector: Vectors, ranking: Ranking, scope: Scope = ALL) -> PageScores:
        """Return all passages of the pages of some rows and of their translations, as `Store.score_pages`.

        A passage at several places is in the page of its first one alone.
        """
        inside, values = self._inside(scope)
        sql = (
            "SELECT id, -(dense::vector <#> %(query)s::vector), page, page_group, page_language "
            f'FROM "{self._table}" WHERE {inside} AND page_group IN '
            f'(SELECT page_group FROM "{self._table}" WHERE id = ANY(%(rows)s) AND {self._visible}) '
            "ORDER BY page, page_position"
        )
        asked = {**values, "query": str(vector.tolist()), "rows": ranking[0].tolist()}
        with self._reading() as connection:
            return _page_scores(connection.execute(sql, asked).fetchall())

    def equal_rows(self, passages: Sequence[Passage], languages: Sequence[str]) -> list[dict[int, tuple[str, int]]]:
        """Return for each passage the rows with its text and fields: row → language and number of places."""
        require_languages(languages, self.languages)
        numbers = row_numbers(keys_by_language(passages, languages))
        there = self._known(np.unique(numbers))
        rows = numbers.reshape(len(passages), len(languages)).tolist()
        return [{row: there[row] for row in own if row in there} for own in rows]

    def rows_of(self, keys: Keys) -> Rows:
        """Return the rows with some keys, of keys that are there, `(r,)`."""
        return np.array(sorted(self._known(row_numbers(keys))), np.int64)

    def _known(self, rows: Rows) -> dict[int, tuple[str, int]]:
        """Return language and number of places of the rows that are there."""
        with self._reading() as connection:
            sql = f'SELECT id, language, places FROM "{self._table}" WHERE id = ANY(%s) AND {self._visible}'
            return {row: (tag, places) for row, tag, places in connection.execute(sql, (rows.tolist(),))}

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """Yield a connection in one snapshot; `RunFolderError` if its rows were deleted."""
        with self._server.connection() as connection:
            connection.execute(_SNAPSHOT)
            sql = f"SELECT number, md5(state::text) FROM {self._table}_state WHERE number = %s"
            found = connection.execute(sql, (self.number,)).fetchone()
            if found != self.version:
                what = "made again" if found else "updated twice"
                raise RunFolderError(f"{self.name}: it was {what} since it was opened; open it again")
            yield connection

    def _inside(self, scope: Scope) -> tuple[str, dict[str, Any]]:
        """Return the condition on rows in SQL, and its values."""
        require_languages(scope.languages, self.languages)
        values: dict[str, Any] = {}
        texts = [self._visible, *(self._condition(each, f"v{i}_", values) for i, each in enumerate(scope.where))]
        if scope.languages:
            texts.append("language = ANY(%(languages)s)")
            values["languages"] = sorted(set(scope.languages))
        return " AND ".join(texts), values

    def _condition(self, condition: Condition, prefix: str, values: dict[str, Any]) -> str:
        """Return a condition in SQL, with the meaning that it has in a local index (`Column`), and add its values."""
        name, operator, number = condition.name, condition.operator, condition.number
        level = "file" if name in PLACES and name not in self.state["fields"] else "fields"
        if level == "fields":
            require_field(condition, self.state["fields"])
        if operator not in ("=", "!="):
            values |= {f"{prefix}at": [level, name], f"{prefix}bound": float(number or 0)}
            bound = f"jsonb_build_object('bound', %({prefix}bound)s::float8)"
            return f"jsonb_path_exists(numbers #> %({prefix}at)s, '$[*] ? (@ {operator} $bound)', {bound})"
        equal = [value for value in (condition.value, number) if value is not None]
        values |= {f"{prefix}{i}": json.dumps({level: {name: [value]}}) for i, value in enumerate(equal)}
        text = " OR ".join(f"filters @> %({prefix}{i})s::jsonb" for i in range(len(equal)))
        return f"({text})" if operator == "=" else f"({text}) IS NOT TRUE"


def _ranking(found: Sequence[tuple[int, float]]) -> Ranking:
    """Return rows and scores as a ranking, `(K,)` each."""
    return np.array([row for row, _ in found], np.int64), np.array([score for _, score in found], np.float32)


def _page_scores(found: Sequence[tuple[int, float, str, str, str]]) -> PageScores:
    """Return rows with score, page, group and language of the page, which are in the order of the pages."""
    rows, scores, pages, groups, languages = zip(*found, strict=True) if found else ((),) * 5
    heads = [i for i, page in enumerate(pages) if i == 0 or page != pages[i - 1]]
    numbers: dict[str, int] = {}
    numbered = np.array([numbers.setdefault(groups[i], len(numbers)) for i in heads], np.int64)
    starts, tags = np.array(heads, np.int64), [languages[i] for i in heads]
    return PageScores(np.array(rows, np.int64), np.array(scores, np.float32), starts, tags, numbered)


STORE_POSTGRESQL = PostgresStore
"""A copy of an index in PostgreSQL with pgvector: `postgresql://USER@HOST:PORT/DATABASE/TABLE`."""

STORE_POSTGRES = PostgresStore
"""The same by its short name: `postgres://USER@HOST:PORT/DATABASE/TABLE`."""
