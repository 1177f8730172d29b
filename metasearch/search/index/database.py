"""An index's SQLite file: tables, a checksum per value, and SQLite errors.

Every value has a CRC-32, which starts from the number of its row: a value that changed or moved to another row is an
error that names the file.
"""

import errno
import json
import os
import sqlite3
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import RunFolderError
from metasearch.io import near, require_file, write_error
from metasearch.search.index.base import KEY_BYTES

FILE = "index.sqlite"
FORMAT = "metasearch index"
INNER = "index"
"""Folder of an index in that of a tuning."""
SCHEMA = 6
"""Changes whenever the release before cannot read a new index."""
ROW = np.dtype([("id", "<i8"), ("key", "u1", (KEY_BYTES,)), ("language", "<i4"), ("step", "<f4")])
"""A passage in a block: its number in the table of passages, -1 of a deleted one; key; language; step of its codes."""
REMEDY = "Restore the file, or delete it and run metasearch index with its documents again"
_PAGE = 2**14
_FETCHED = 4096
_TABLES = """
CREATE TABLE IF NOT EXISTS state (number INTEGER PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS file (
    number INTEGER PRIMARY KEY, facts TEXT NOT NULL, ids BLOB NOT NULL, lines BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS page (
    number INTEGER PRIMARY KEY, language TEXT NOT NULL, blocks BLOB NOT NULL, headings TEXT NOT NULL,
    crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS passage (
    id INTEGER PRIMARY KEY, language TEXT NOT NULL, text TEXT NOT NULL, fields TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS block (number INTEGER PRIMARY KEY, rows BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS codes (block INTEGER PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL);
"""
_WIDTHS = {"state": 1, "file": 3, "page": 3, "passage": 3, "block": 1, "codes": 1}
"""Table → its values between the number and the checksum."""
STATE, ARRAYS = 0, 1
"""Rows of the table of state: facts as JSON; arrays that belong to the vectors, as safetensors."""

Block = NDArray[Any]
"""Rows of a block, of type `ROW`."""


class Database:
    """An index's file. A reader sees the state at opening; a writer holds the folder's lock."""

    def __init__(self, folder: Path, write: bool = False) -> None:
        self.path = path = folder / FILE
        if not write:
            _require_index(folder)
        writable = os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))
        if write or writable:
            # A reader may write, too: the last one that closes the file removes the log of a writer.
            mode = "rwc" if write else "rw"
        else:
            # Where nothing can be written there is no writer either, unless it runs as another user and has a log.
            mode = "ro" if path.with_name(f"{FILE}-wal").exists() else "ro&immutable=1"
        self._lock = RLock()
        with self._errors():
            if path.exists():
                require_file(path)
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
            )
            # A connection and its cache of statements refer to each other, so that it would stay open.
            self.close = weakref.finalize(self, self._connection.close)
            """Closes the file; the last one that is closed brings the log of a writer into it."""
            # Damaged text is compared with its checksum before it is decoded.
            self._connection.text_factory = bytes
            if write:
                self._connection.executescript(
                    f"PRAGMA page_size={_PAGE}; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
                    f"BEGIN; {_TABLES} COMMIT"
                )
            else:
                self._connection.execute("BEGIN")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run all statements in one transaction."""
        # The connection commits at the end, and rolls back after an error.
        with self._errors(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def rows(
        self, table: str, where: str = "", values: tuple[Any, ...] = ()
    ) -> Iterator[tuple[int, list[bytes] | None]]:
        """Yield number and values of a table's rows, in order; None for the values of a damaged row."""
        with self._lock, self._errors():
            found = self._connection.execute(f"SELECT * FROM {table} {where} ORDER BY rowid", values)
        while True:
            with self._lock, self._errors():
                some = found.fetchmany(_FETCHED)
            for number, *row, crc in some:
                typed = isinstance(number, int) and all(isinstance(each, bytes) for each in row)
                yield number, row if typed and _crc(number, row) == crc else None
            if not some:
                return

    def row(self, table: str, number: int, what: str) -> list[bytes]:
        """Return the values of a row; `RunFolderError` says that `what` is damaged if it is missing or damaged."""
        for _, values in self.rows(table, "WHERE rowid = ?", (number,)):
            if values is not None:
                return values
        raise self.damaged(what)

    def rows_at(self, table: str, numbers: Sequence[int], what: str) -> list[list[bytes]]:
        """Return the values of rows by their numbers; `RunFolderError` says that `what` is damaged."""
        found = dict[int, list[bytes]]()
        for start in range(0, len(numbers), _FETCHED):
            some = tuple(numbers[start : start + _FETCHED])
            for number, values in self.rows(table, f"WHERE rowid IN ({', '.join('?' * len(some))})", some):
                if values is not None:
                    found[number] = values
        lacking = next((number for number in numbers if number not in found), None)
        if lacking is not None:
            raise self.damaged(f"{what} {lacking}")
        return [found[number] for number in numbers]

    def write(self, table: str, rows: Iterable[tuple[int, list[str | bytes]]]) -> None:
        """Write or replace rows of number and values."""
        contents = (
            (number, *row, _crc(number, [each.encode() if isinstance(each, str) else each for each in row]))
            for number, row in rows
        )
        marks = ", ".join("?" * (_WIDTHS[table] + 2))
        with self._errors():
            self._connection.executemany(f"REPLACE INTO {table} VALUES ({marks})", contents)

    def delete(self, table: str, numbers: Iterable[int]) -> None:
        """Delete rows by their numbers."""
        with self._errors():
            self._connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", ((each,) for each in numbers))

    def state(self) -> dict[str, Any]:
        """Return the facts of the index; empty where a writer died before its first word.

        `RunFolderError` if another release wrote them.
        """
        if not self._count("SELECT count(*) FROM sqlite_master"):
            return {}
        if not self._count(f"SELECT count(*) FROM state WHERE number = {STATE}"):
            if self._count("SELECT count(*) FROM block"):
                raise self.damaged("the index")
            return {}
        found = dict(json.loads(self.row("state", STATE, "the index")[0]))
        if found.get("format") != FORMAT or found.get("schema") != SCHEMA:
            raise RunFolderError(
                f"{self.path}: it has schema {found.get('schema')}, and this release of metasearch reads schema "
                f"{SCHEMA}; use the release that made it, or make the index again in another folder"
            )
        return found

    @staticmethod
    def new_state(kind: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state of a new index: without documents, and without arrays."""
        # `files` is their number, None before they are finished; `contents` the hash of all places.
        empty: dict[str, Any] = {"files": None, "contents": "", "languages": [], "arrays": False}
        state: dict[str, Any] = json.loads(json.dumps({"format": FORMAT, "schema": SCHEMA, "kind": kind, **empty}))
        return state

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Write the index's facts."""
        self.write("state", [(STATE, [json.dumps(state, ensure_ascii=False).encode()])])

    def shrink(self) -> None:
        """Return unused space to the disk if it is a quarter of the file or more."""
        if 4 * self._count("PRAGMA freelist_count") > self._count("PRAGMA page_count"):
            with self._errors():
                self._connection.execute("VACUUM")

    def damaged(self, what: str) -> RunFolderError:
        """Return the error for a damaged value."""
        return RunFolderError(f"{self.path}: {what} is damaged. {REMEDY}")

    def _count(self, statement: str) -> int:
        with self._lock, self._errors():
            return int(self._connection.execute(statement).fetchone()[0])

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunFolderError(f"{self.path} cannot be read: {error.strerror or error}") from None
        except sqlite3.ProgrammingError:  # not of the file
            raise
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the other is of a damaged name of a column
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if code == sqlite3.SQLITE_FULL:
                raise write_error(self.path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) from None
            # An operational error is of the disk or of a lock, but for a table that a damaged schema lacks.
            if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
                raise RunFolderError(f"{self.path} cannot be read or written: {error}") from None
            raise RunFolderError(f"{self.path}: {error}: the index is damaged. {REMEDY}") from None


def _crc(number: int, values: Iterable[bytes]) -> int:
    found = number & 0xFFFFFFFF
    for value in values:
        found = zlib.crc32(value, zlib.crc32(b"%d," % len(value), found))
    return found


# An index folder.


def exists(folder: Path) -> bool:
    """Return whether a folder is an index."""
    return (folder / FILE).exists()


def read_state(folder: Path) -> dict[str, Any]:
    """Return an index's current facts on disk; empty if a writer died before its first transaction."""
    with closing(Database(folder)) as database:
        return database.state()


def _require_index(folder: Path) -> None:
    if exists(folder):
        return
    if folder.exists():
        raise RunFolderError(f"{folder} is no index: it has no {FILE}; make one with metasearch index DOCS -o INDEX")
    raise RunFolderError(f"{folder} does not exist; make one with metasearch index DOCS -o {folder}{near(folder)}")
