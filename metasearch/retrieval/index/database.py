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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import RunFolderError
from metasearch.io import near, require_file, write_error
from metasearch.retrieval.index.base import KEY_BYTES, Kind, SourceFile

FILE = "index.sqlite"
FORMAT = "metasearch index"
SCHEMA = 4
"""Changes whenever an index of this release cannot be read by the one before, or the other way round."""
ROW = np.dtype([("id", "<i8"), ("key", "u1", (KEY_BYTES,)), ("language", "<i4"), ("step", "<f4")])
"""A passage in a block: its number in the table of passages, -1 of a deleted one; key; language; step of its codes."""
REMEDY = "Restore the file, or delete it and run metasearch index with its documents again"
_PAGE = 2**14
_FETCHED = 4096
_TABLES = """
CREATE TABLE IF NOT EXISTS state (number INTEGER PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS file (
    number INTEGER PRIMARY KEY, facts TEXT NOT NULL, ids BLOB NOT NULL, lines BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS passage (
    id INTEGER PRIMARY KEY, language TEXT NOT NULL, text TEXT NOT NULL, fields TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS block (number INTEGER PRIMARY KEY, rows BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS codes (block INTEGER PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL);
"""
_STATE, _ARRAYS = 0, 1
_UNWRITABLE = (
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL,
)  # fmt: skip

Block = NDArray[Any]
"""Rows of a block, of type `ROW`."""


class Database:
    """An index's file. A reader sees the state at opening; a writer holds the folder's lock."""

    def __init__(self, path: Path, write: bool = False) -> None:
        self.path = path
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
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            with self._errors():
                self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def state(self) -> dict[str, Any]:
        """Return the facts of the index; empty where a writer died before its first word."""
        if not self._select("SELECT 1 FROM sqlite_master"):
            return {}
        found = self._value(_STATE)
        if found is None and self._select("SELECT 1 FROM block LIMIT 1"):
            raise self.damaged("the index")
        return {} if found is None else dict(json.loads(found))

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Write the index's facts."""
        self._put(_STATE, json.dumps(state, ensure_ascii=False).encode())

    def arrays(self) -> bytes:
        """Return the arrays that belong to the index, as safetensors; empty where there are none."""
        return self._value(_ARRAYS) or b""

    def write_arrays(self, content: bytes) -> None:
        """Write the arrays that belong to the index."""
        self._put(_ARRAYS, content)

    def files(self) -> list[tuple[SourceFile, NDArray[np.int64], NDArray[np.int32]]]:
        """Return the document files in order, each with numbers and lines of its passages, `(n,)`."""
        found = []
        for number, facts, ids, lines, crc in self._select("SELECT * FROM file ORDER BY number"):
            if not _sound(number, (facts, ids, lines), crc):
                raise self.damaged("the list of documents")
            found.append(
                (SourceFile(**json.loads(facts)), np.frombuffer(ids, np.int64), np.frombuffer(lines, np.int32))
            )
        return found

    def write_files(self, files: Iterable[tuple[SourceFile, NDArray[np.int64], NDArray[np.int32]]]) -> None:
        """Replace the document files."""
        rows = []
        for number, (file, ids, lines) in enumerate(files):
            parts = (json.dumps(vars(file), ensure_ascii=False).encode(), ids.tobytes(), lines.tobytes())
            rows.append((number, parts[0].decode(), *parts[1:], _crc(number, *parts)))
        self._run("DELETE FROM file")
        self._run_each("INSERT INTO file VALUES (?, ?, ?, ?, ?)", rows)

    def blocks(self) -> Iterator[tuple[int, Block | None]]:
        """Yield each block's number and rows, in order; None for the rows of a damaged block."""
        for number, rows, crc in self._select("SELECT * FROM block ORDER BY number"):
            yield number, np.frombuffer(rows, ROW) if _sound(number, (rows,), crc) else None

    def write_block(self, number: int, rows: Block) -> None:
        """Replace a block's rows."""
        self._run("REPLACE INTO block VALUES (?, ?, ?)", (number, rows.tobytes(), _crc(number, rows.tobytes())))

    def codes(self, number: int) -> NDArray[np.int8]:
        """Return the codes for all rows in a block, `(n · D,)`."""
        found = self._select("SELECT data, crc FROM codes WHERE block = ?", (number,))
        if not found or not _sound(number, found[0][:1], found[0][1]):
            raise self.damaged(f"block {number}")
        return np.frombuffer(found[0][0], np.int8)

    def write_codes(self, number: int, codes: NDArray[np.int8]) -> None:
        """Write a new block's codes."""
        self._run("INSERT INTO codes VALUES (?, ?, ?)", (number, codes.tobytes(), _crc(number, codes.tobytes())))

    def delete_block(self, number: int) -> None:
        """Delete a block with its codes."""
        self._run("DELETE FROM block WHERE number = ?", (number,))
        self._run("DELETE FROM codes WHERE block = ?", (number,))

    def passage(self, number: int) -> tuple[str, dict[str, Any]]:
        """Return a passage's text and further fields."""
        found = self._select("SELECT language, text, fields, crc FROM passage WHERE id = ?", (number,))
        if not found or not _sound(number, found[0][:3], found[0][3]):
            raise self.damaged(f"passage {number}")
        _, text, fields, _ = found[0]
        return str(text.decode()), _read_fields(fields)

    def fields(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield number and further fields for each passage with any."""
        with self._lock, self._errors():
            rows = self._connection.execute("SELECT * FROM passage WHERE length(fields) > 0")
        while True:
            with self._lock, self._errors():
                some = rows.fetchmany(_FETCHED)
            for number, tag, text, fields, crc in some:
                if not _sound(number, (tag, text, fields), crc):
                    raise self.damaged(f"passage {number}")
                yield number, _read_fields(fields)
            if not some:
                return

    def sound_passages(self) -> NDArray[np.int64]:
        """Return the numbers of all undamaged passages."""
        with self._errors():
            rows = self._connection.execute("SELECT * FROM passage")
            return np.array([number for number, *values, crc in rows if _sound(number, tuple(values), crc)], np.int64)

    def write_passages(self, rows: Iterable[tuple[int, str, str, str]]) -> None:
        """Write new passages: number, language, text and further fields as JSON."""
        self._run_each(
            "INSERT INTO passage VALUES (?, ?, ?, ?, ?)",
            ((i, tag, text, more, _crc(i, tag.encode(), text.encode(), more.encode())) for i, tag, text, more in rows),
        )

    def delete_passages(self, ids: Iterable[int]) -> None:
        """Delete passages by their numbers."""
        self._run_each("DELETE FROM passage WHERE id = ?", ((number,) for number in ids))

    def shrink(self) -> None:
        """Return unused space to the disk if it is a quarter of the file or more."""
        free, pages = (self._select(f"PRAGMA {name}")[0][0] for name in ("freelist_count", "page_count"))
        if 4 * free > pages:
            self._run("VACUUM")

    def damaged(self, what: str) -> RunFolderError:
        """Return the error for a damaged value."""
        return RunFolderError(f"{self.path}: {what} is damaged. {REMEDY}")

    def _value(self, number: int) -> bytes | None:
        found = self._select("SELECT value, crc FROM state WHERE number = ?", (number,))
        if not found:
            return None
        if not _sound(number, found[0][:1], found[0][1]):
            raise self.damaged("the index")
        return bytes(found[0][0])

    def _put(self, number: int, value: bytes) -> None:
        self._run("REPLACE INTO state VALUES (?, ?, ?)", (number, value, _crc(number, value)))

    def _select(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock, self._errors():
            return self._connection.execute(statement, values).fetchall()

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        with self._errors():
            self._connection.execute(statement, values)

    def _run_each(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._errors():
            self._connection.executemany(statement, rows)

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
            if code in _UNWRITABLE:
                raise RunFolderError(f"{self.path} cannot be read or written: {error}") from None
            raise RunFolderError(f"{self.path}: {error}: the index is damaged. {REMEDY}") from None


def _crc(number: int, *values: bytes) -> int:
    found = number & 0xFFFFFFFF
    for value in values:
        found = zlib.crc32(value, zlib.crc32(b"%d," % len(value), found))
    return found


def _sound(number: Any, values: tuple[Any, ...], crc: Any) -> bool:
    typed = isinstance(number, int) and all(isinstance(value, bytes) for value in values)
    return typed and _crc(number, *values) == crc


def _read_fields(content: bytes) -> dict[str, Any]:
    return dict(json.loads(content.decode())) if content else {}


# An index folder: whether it exists, and its kind.


def exists(folder: Path) -> bool:
    """Return whether a folder is an index."""
    return (folder / FILE).exists()


def read_kind(folder: Path) -> Kind | None:
    """Return an index's encoder and settings; None if there is no index. `RunFolderError` if it is damaged."""
    state = read_state(folder) if exists(folder) else None
    return Kind(**state["kind"]) if state else None


def read_state(folder: Path) -> dict[str, Any]:
    """Return an index's current facts on disk; empty if a writer died before its first transaction."""
    require_index(folder)
    database = Database(folder / FILE)
    try:
        return checked_state(database)
    finally:
        database.close()


def require_index(folder: Path) -> None:
    """Raise `RunFolderError` unless a folder is an index."""
    if exists(folder):
        return
    if folder.exists():
        raise RunFolderError(f"{folder} is no index: it has no {FILE}; make one with metasearch index DOCS -o INDEX")
    raise RunFolderError(f"{folder} does not exist; make one with metasearch index DOCS -o {folder}{near(folder)}")


def checked_state(database: Database) -> dict[str, Any]:
    """Return an index's facts; `RunFolderError` if another release wrote them."""
    found = database.state()
    if found and (found.get("format"), found.get("schema")) != (FORMAT, SCHEMA):
        raise RunFolderError(
            f"{database.path}: it has schema {found.get('schema')}, and this release of metasearch reads schema "
            f"{SCHEMA}; use the release that made it, or make the index again in another folder"
        )
    return found
