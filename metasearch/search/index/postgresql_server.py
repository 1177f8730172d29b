"""A server of PostgreSQL with pgvector: its address, connections, and what it says of an index."""

import logging
import re
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from queue import Empty, LifoQueue
from typing import Any
from urllib.parse import urlsplit

from metasearch.config.extras import import_extra
from metasearch.errors import ConfigError, RunFolderError, first_line
from metasearch.search.settings import without_password

log = logging.getLogger(__name__)
logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of what follows an error that is raised

FORMAT = "metasearch index, schema 2"
"""Comment of the table."""
OLDEST = 0, 8
"""The first version of pgvector that searches on where conditions leave too few rows (iterative scans)."""
_TABLE = re.compile(r"[a-z_][a-z0-9_]{0,49}")


class Server:
    """Connections to the server of an address, one for each search at a time.

    The address is `postgresql://USER@HOST:PORT/DATABASE/TABLE`, perhaps with `?sslmode=require` and others.
    `ConfigError` if it is invalid, which does not show it: it may have a password.
    """

    def __init__(self, address: str) -> None:
        self._psycopg = psycopg = import_extra("psycopg", "postgres", "a store in PostgreSQL")
        self.shown = without_password(address)
        found = re.fullmatch(r"postgres(?:ql)?://([^/?#]*)/([^/?#]+)/([^/?#]+)(\?[^#]*)?", address)
        expected = "expected postgresql://USER@HOST:PORT/DATABASE/TABLE, TABLE in letters a-z, digits and _"
        if not found or not _TABLE.fullmatch(found[3]):
            raise ConfigError(f"{urlsplit(address).scheme}://…: {expected}")
        self.table = found[3]
        uri = f"postgresql://{found[1]}/{found[2]}{found[4] or ''}"
        try:
            given = psycopg.conninfo.conninfo_to_dict(uri)
        except psycopg.ProgrammingError as error:
            raise ConfigError(f"{self.shown}: {first_line(error)}; {expected}") from None
        self._parameters = {"connect_timeout": "10", "application_name": "metasearch", **given}
        self._idle: LifoQueue[Any] = LifoQueue()
        self._path: str | None = None
        """Sets the search path of a transaction; empty where it has pgvector already, None before that is known."""
        # A forked process shares the connections, and must not close them when it exits.
        weakref.finalize(self, _close_all, self._idle).atexit = False

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """Yield a connection in a transaction, committed at the end; `RunFolderError` if the server does not do it."""
        try:
            connection = self._connect()
            try:
                with connection.transaction():
                    if self._path:
                        connection.execute(self._path)
                    yield connection
            finally:
                if connection.info.transaction_status == self._psycopg.pq.TransactionStatus.IDLE:
                    self._idle.put(connection)
                else:
                    connection.close()
        except self._psycopg.Error as error:
            raise RunFolderError(f"{self.shown}: {first_line(error)}") from None

    def _connect(self) -> Any:
        while True:
            try:
                connection = self._idle.get_nowait()
                connection.execute("")  # the server may have been restarted
                return connection
            except Empty:
                break
            except self._psycopg.OperationalError:
                connection.close()
        connection = self._psycopg.connect(**self._parameters, autocommit=True, prepare_threshold=None)
        # Not a method: a cycle would keep server and connection until the next garbage collection.
        connection.add_notice_handler(partial(_warn, self.shown))
        if self._path is None:
            self._path = _path_to_pgvector(connection)
        return connection

    def version(self, connection: Any) -> tuple[int, str] | None:
        """Return number and digest of the last update; None where there is no table, number 0 where it was emptied.

        A table that was dropped and created again may have the same number.
        """
        sql = "SELECT to_regclass(%(name)s)::text, obj_description(to_regclass(%(name)s))"
        table, comment = connection.execute(sql, {"name": self.table}).fetchone()
        if table is None:
            return None
        if comment != FORMAT:
            raise RunFolderError(f"{self.shown}: this release of metasearch did not make the table; choose another")
        sql = f"SELECT number, md5(state::text) FROM {self.table}_state ORDER BY number DESC LIMIT 1"
        return connection.execute(sql).fetchone() or (0, "")

    def prepare(self, connection: Any) -> None:
        """Create the extension where it is missing; `RunFolderError` where it is not installed or too old."""
        sql = "SELECT installed_version, default_version FROM pg_available_extensions WHERE name = 'vector'"
        installed, offered = connection.execute(sql).fetchone() or (None, "")
        version = str(installed or offered)
        if not version:
            raise RunFolderError(f"{self.shown}: the server has no pgvector; install it there")
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
            needed = ".".join(map(str, OLDEST))
            hint = "call ALTER EXTENSION vector UPDATE, after an update of pgvector on the server"
            raise RunFolderError(f"{self.shown}: pgvector {version} is older than {needed}; {hint}")
        if installed is None:
            connection.execute("CREATE EXTENSION vector")


def _path_to_pgvector(connection: Any) -> str | None:
    """Return the statement that adds the schema of pgvector to the search path; None where it is not installed."""
    found = connection.execute(
        "SELECT current_setting('search_path'), quote_ident(nspname), nspname = ANY(current_schemas(true)) "
        "FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'"
    ).fetchone()
    if found is None:
        return None
    path, schema, inside = found
    schemas = schema if path in ("", '""') else f"{path}, {schema}"
    return "" if inside else f"SET LOCAL search_path TO {schemas}"


def _close_all(idle: LifoQueue[Any]) -> None:
    while not idle.empty():
        idle.get_nowait().close()


def _warn(shown: str, notice: Any) -> None:
    if notice.severity_nonlocalized in ("NOTICE", "WARNING"):  # others become errors
        log.warning("%s: %s", shown, notice.message_primary)
