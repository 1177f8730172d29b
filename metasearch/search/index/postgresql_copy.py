"""The copy of a local index in PostgreSQL, in one transaction: rows are added and ended, others stay."""

import json
import logging
import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from metasearch.errors import ConfigError, RunFolderError
from metasearch.io import sha256_of_bytes
from metasearch.search.documents.passage import Passage
from metasearch.search.index.base import CopyResult, Keys, Kind, OnCount, Rows, Words, fields_to_json
from metasearch.search.index.fields import numbers_in, scalars
from metasearch.search.index.local import PLACES, LocalStore
from metasearch.search.index.places import SITE
from metasearch.search.index.plan import SearchPlan
from metasearch.search.index.postgresql_server import FORMAT, Server

log = logging.getLogger(__name__)

WIDEST = 4000
"""Dimensions of a halfvec that pgvector indexes."""
_WORDS = 10**9
"""Dimensions of a sparsevec."""
_AT_ONCE = 256
"""Rows that are read and sent together."""
_K1, _B = 1.5, 0.75
"""Constants of BM25, as in a local index."""
_MEASURED = 10_000
"""Passages in the estimate of BM25's mean length."""
_COLUMNS = (
    "id bigint", "since int", "until int", "digest bigint", "language text", "file text", "line int", "heading text",
    "anchor text", "places int", "text text", "fields json", "filters jsonb", "numbers jsonb",
    "dense halfvec({dimension})", "words sparsevec({words})",
    "page text", "page_group text", "page_language text", "page_position int",
)  # fmt: skip
_INDEXES = (
    "(language)",
    "USING gin (filters jsonb_path_ops)",
    "USING hnsw (dense halfvec_ip_ops)",
    "(page_group)",
)


def copy_to_postgresql(server: Server, store: LocalStore, words: Words, on_sent: OnCount) -> CopyResult:
    """Make new or existing tables a copy of a local index; readers see it whole or not at all."""
    with server.connection() as connection:
        lock = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
        if not connection.execute(lock, (f"metasearch {server.table}",)).fetchone()[0]:
            raise RunFolderError(f"{server.shown}: another process updates it; try again when it is done")
        server.prepare(connection)
        return _Copying(connection, server, store, words).copy(on_sent)


def create_tables(connection: Any, table: str, dimension: int) -> None:
    """Create the tables of an index."""
    columns = ", ".join(_COLUMNS).format(dimension=dimension, words=_WORDS)
    connection.execute(f'CREATE TABLE "{table}" ({columns}, PRIMARY KEY (id, since))')
    connection.execute(f"CREATE TABLE {table}_state (number int PRIMARY KEY, state json, arrays bytea, words bytea)")
    connection.execute(f"COMMENT ON TABLE \"{table}\" IS '{FORMAT}'")


class _Copying:
    """An update of the tables within a transaction."""

    def __init__(self, connection: Any, server: Server, store: LocalStore, words: Words) -> None:
        self.connection, self.store, self.words = connection, store, words
        self.table, version = server.table, server.version(connection)
        self.before = version[0] if version else None
        self.counts = Counter[int]()
        self.state: dict[str, Any] = {}
        self.known = b""
        if self.before is None:
            self._create(server.shown)
        elif not self.before:
            self.state = self._first_state()
            connection.execute(f'DELETE FROM "{self.table}"')
        else:
            sql = f"SELECT state, arrays, words FROM {self.table}_state WHERE number = %s"
            self.state, self.known, counted = connection.execute(sql, (self.before,)).fetchone()
            self.counts = unpack_counts(counted)
        Kind(**self.state["kind"]).require_same(server.shown, store.kind)
        record = store.plan.record_of_copy
        self.arrays = save(record) if record else b""
        self.mark = vectors_mark(store.plan)
        self.of_files, self.pages = _by_row(store), store.page_places()
        self.cleaned: list[int] = []

    def _create(self, shown: str) -> None:
        store = self.store
        if store.kind.dimension > WIDEST:
            raise ConfigError(f"{shown}: vectors of {store.kind.dimension} dimensions; pgvector indexes {WIDEST:,}")
        create_tables(self.connection, self.table, store.kind.dimension)
        self.state = self._first_state()

    def _first_state(self) -> dict[str, Any]:
        return {"kind": asdict(self.store.kind), "length": _mean_length(self.store, self.words)}

    def copy(self, on_sent: OnCount) -> CopyResult:
        """Write what differs, and the state if anything does."""
        store, now = self.store, (self.before or 0) + 1
        numbers = row_numbers(store.row_keys())
        if len(np.unique(numbers)) < len(numbers):  # in one of 1,800 copies that have 100 million passages
            raise ConfigError("two passages would have the same number in the database; use a local index")
        sql = f'SELECT id, digest FROM "{self.table}" WHERE until IS NULL'
        there: dict[int, int] = dict(self.connection.execute(sql).fetchall())
        if self.before and len(there) != sum(self.state["languages"].values()):
            self._count_again()
        changed, names = self._changed(numbers, there)
        if self.cleaned:
            ((first, _),) = store.passages(self.cleaned[:1])
            where = f"{len(self.cleaned):,} passages, first {first.file}:{first.line}"
            log.warning("%s: PostgreSQL stores no NUL characters, U+FFFD stands for them: %s", self.table, where)
        gone = there.keys() - set(numbers.tolist())
        state = {
            **self.state, "contents": store.contents, "fields": sorted({*map(_clean, names)}), "unknown": store.unknown,
            "ranking": store.ranking_facts, SITE: store.site, "languages": store.languages,
            "arrays": sha256_of_bytes(self.arrays),
        }  # fmt: skip
        if changed or gone or (state, self.arrays) != (self.state, self.known):
            self._end([*gone, *(there.keys() & set(numbers[changed].tolist()))], now)
            self._send(changed, numbers, now, on_sent)
            for each in _INDEXES if self.before is None else ():  # faster at once than row by row
                self.connection.execute(f'CREATE INDEX ON "{self.table}" {each}')
            self.connection.execute(f"DELETE FROM {self.table}_state WHERE number < %s", (self.before,))
            counts = np.array([pair for pair in self.counts.items() if pair[1] > 0], np.int32).tobytes()
            values = now, json.dumps(state), self.arrays, counts
            self.connection.execute(
                f"INSERT INTO {self.table}_state (number, state, arrays, words) VALUES (%s, %s, %s, %s)", values
            )
            self.connection.execute(f'ANALYZE "{self.table}"')
        return CopyResult(len(store), len(changed), len(gone))

    def _changed(self, numbers: Rows, there: Mapping[int, int]) -> tuple[list[int], set[str]]:
        """Return the rows that the table lacks or has with another digest, and the names of fields to filter by."""
        changed: list[int] = []
        names: set[str] = set()
        for rows in _parts(range(len(self.store))):
            for row, (passage, places) in zip(rows, self.store.passages(rows), strict=True):
                names.update(name for name, value in passage.fields.items() if scalars(value))
                if there.get(int(numbers[row])) != self._described(row, passage, places)[0]:
                    changed.append(row)
        return changed, names

    def _described(self, row: int, passage: Passage, places: int) -> tuple[Any, ...]:
        """Return the columns from `digest` to `numbers`."""
        text, heading, anchor, fields = map(_clean, (passage.text, passage.heading, passage.anchor, passage.fields))
        self.cleaned += [row] * ((text, fields) != (passage.text, passage.fields))
        known = {"fields": fields, "file": _clean(self.of_files.get(row, {}))}
        found = (
            passage.language, passage.file, passage.line, heading, anchor, places, text,
            fields_to_json(fields) or None, _filters(known, scalars), _filters(known, numbers_in),
        )  # fmt: skip
        return zlib.crc32("\x00".join(map(str, (*found, *self.pages(row)))).encode(), self.mark), *found

    def _end(self, gone: Sequence[int], now: int) -> None:
        """End rows with this update, and delete those that ended with the one before."""
        sql = f'UPDATE "{self.table}" SET until = %s WHERE until IS NULL AND id = ANY(%s) RETURNING words::text'
        for (text,) in self.connection.execute(sql, (now, list(gone))):
            self.counts.subtract(_words(text))
        self.connection.execute(f'DELETE FROM "{self.table}" WHERE until < %s', (now,))

    def _count_again(self) -> None:
        """Count the words of all rows: others deleted some."""
        self.counts.clear()
        for (text,) in self.connection.execute(f'SELECT words::text FROM "{self.table}" WHERE until IS NULL'):
            self.counts.update(_words(text))

    def _send(self, changed: Sequence[int], numbers: Rows, now: int, on_sent: OnCount) -> None:
        sent, names = 0, ", ".join(column.split()[0] for column in _COLUMNS)
        with self.connection.cursor() as cursor, cursor.copy(f'COPY "{self.table}" ({names}) FROM STDIN') as copy:
            for rows in _parts(changed):
                passages = self.store.passages(rows)
                dense = self.store.quantised.take(rows)
                for i, cut in enumerate(self.words([passage.text for passage, _ in passages])):
                    distinct, weights = _word_weights(cut, self.state["length"])
                    self.counts.update(distinct.tolist())
                    copy.write_row((
                        int(numbers[rows[i]]), now, None, *self._described(rows[i], *passages[i]),
                        str(dense[i].astype(np.float16).tolist()),
                        sparse_text(dict(zip(distinct.tolist(), weights.tolist(), strict=True))),
                        *self.pages(rows[i]),
                    ))  # fmt: skip
                sent += len(rows)
                on_sent(sent, len(changed))


def row_numbers(keys: Keys) -> Rows:
    """Return each key's number in the table, `(n,)`: its first 63 bits."""
    return (np.ascontiguousarray(keys[:, :8]).view(">u8").ravel() >> np.uint64(1)).astype(np.int64)


def vectors_mark(plan: SearchPlan) -> int:
    """Return a number that differs where the vectors of equal texts do; queries can change without it."""
    known = plan.projection
    return zlib.crc32(b"" if known is None else known.centre.tobytes() + known.directions.tobytes())


def _parts(rows: Sequence[int]) -> list[list[int]]:
    return [list(rows[start : start + _AT_ONCE]) for start in range(0, len(rows), _AT_ONCE)]


def _mean_length(store: LocalStore, words: Words) -> float:
    """Return the mean number of words in a text of an index, estimated from at most 10,000 texts."""
    rows = np.unique(np.linspace(0, len(store) - 1, min(len(store), _MEASURED)).astype(np.int64))
    texts = ([passage.text for passage, _ in store.passages(part)] for part in _parts(rows.tolist()))
    return float(np.mean([len(cut) for own in texts for cut in words(own)]))


def _word_weights(cut: Sequence[int], length: float) -> tuple[Rows, NDArray[np.float64]]:
    """Return a text's distinct words and their weights without the IDF, f / (f + k1 (1 - b + b |text| / length))."""
    distinct, counts = np.unique(np.asarray(cut, np.int64), return_counts=True)
    return distinct, counts / (counts + _K1 * (1 - _B + _B * len(cut) / length))


def _words(text: str) -> list[int]:
    return [int(word) - 1 for word in re.findall(r"(\d+):", text)]


def _by_row(store: LocalStore) -> dict[int, dict[str, list[str]]]:
    """Return each row's paths and titles (`PLACES`), sorted."""
    found: dict[int, dict[str, set[str]]] = {}
    for name in PLACES:
        for row, value in store.place_values(name):
            found.setdefault(row, {}).setdefault(name, set()).add(value)
    return {row: {name: sorted(values) for name, values in own.items()} for row, own in found.items()}


def _filters(known: Mapping[str, Mapping[str, Any]], values_of: Callable[[Any], list[Any]]) -> str | None:
    """Return the values of fields as JSON, by level (passage or file) and name; None without any."""
    found = {
        level: {name: values for name, value in own.items() if (values := values_of(value))}
        for level, own in known.items()
    }
    return json.dumps(found, ensure_ascii=False) if any(found.values()) else None


def _clean(value: Any) -> Any:
    """Return a value of a field with U+FFFD for NUL characters."""
    if isinstance(value, dict):
        return {_clean(name): _clean(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def sparse_text(weights: Mapping[int, float]) -> str:
    """Return the weights of words as pgvector reads them; its numbers begin with 1."""
    return f"{{{','.join(f'{word + 1}:{weight:.7g}' for word, weight in weights.items())}}}/{_WORDS}"


def unpack_counts(packed: bytes) -> Counter[int]:
    """Return how many passages have each word."""
    pairs = np.frombuffer(packed, np.int32).reshape(-1, 2)
    return Counter(dict(zip(pairs[:, 0].tolist(), pairs[:, 1].tolist(), strict=True)))
