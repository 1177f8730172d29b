"""A copy in a real PostgreSQL while its writer and its server are killed at random moments, and readers search."""

import json
import random
import re
import threading
import time
from collections import Counter

import numpy as np
import pytest

from helpers.chaos import Chaos
from helpers.commands import metasearch
from metasearch.errors import RunFolderError
from metasearch.search.index.local import LocalStore
from metasearch.search.index.postgresql import PostgresStore
from metasearch.search.index.postgresql_copy import row_numbers

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]

MOST = 2000
COLUMNS = (
    "id, digest, language, file, line, heading, anchor, places, text, fields::text, filters, numbers, dense::text, "
    "regexp_replace(words::text, ':[^,}]+', '', 'g')"
)
"""All of a passage but the weights of its words, which depend on the mean length of texts in the first copy."""
LOST = r"connection|updated twice|terminat|starting up|recovery|shutting down"
"""What a reader may be told."""


def texts(state):
    """Return the texts of a state of the documents, each of four words: 300 that stay and some of its own."""
    own = (f"State {state} text {i}" for i in range(200 + state * 37 % 100))
    return sorted([*(f"Kept as text {i}" for i in range(300)), *own]) if state else []


class Copy:
    """Documents that change, and what readers and the writer know of their copy."""

    def __init__(self, server, folder):
        self.server, self.folder, self.address = server, folder, server.address("help")
        self.written = self.acknowledged = 0
        self.seen, self.told, self.wrong = Counter(), Counter(), []
        self.stopped = threading.Event()

    def change(self):
        """Write the next state of the documents, which an update may or may not reach."""
        self.written += 1
        rows = (json.dumps({"text": text}) + "\n" for text in texts(self.written))
        (self.folder / "docs.jsonl").write_text("".join(rows))

    def command(self, address):
        return ["index", self.folder / "docs.jsonl", "-o", self.folder / "index", "--encoder=tiny", "--to", address]

    def disturb(self, runner):
        """Kill the writer or the server, half of the times within the update of the tables."""
        if random.random() < 0.5:
            while not self.updating() and runner.process.poll() is None:
                time.sleep(0.02)
            time.sleep(random.uniform(0, 0.6))
        if random.random() < 0.5:
            runner.killed()
            return "writer"
        within = self.updating()
        self.server.kill()
        time.sleep(random.uniform(0, 2))
        self.server.start()
        return "server within an update" if within else "server"

    def updating(self):
        with self.server.connect() as connection:
            return connection.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'").fetchone()

    def read(self):
        """Open the copy and search it twice, again and again; note all that is wrong."""
        while not self.stopped.is_set():
            least = self.acknowledged
            try:
                store = PostgresStore.open(self.address)
                first = self.state_of(store)
                if not least <= first <= self.written:
                    self.wrong.append(f"state {first}, {least} was acknowledged")
                time.sleep(random.uniform(0, 0.5))
                if self.state_of(store) != first:
                    self.wrong.append("a reader that was open saw another state")
                self.seen[first] += 1
            except RunFolderError as error:
                said = str(error)
                self.told[re.sub(r"\d+", "N", said.partition("/help: ")[2])] += 1
                if "\n" in said or not re.search(LOST if least else f"{LOST}|no such table", said):
                    self.wrong.append(said)
                time.sleep(0.1)
            except Exception as error:
                self.wrong.append(repr(error))

    def state_of(self, store):
        """Return which state a search sees; `ValueError` where it is none."""
        ((rows, _),) = store.search(np.ones((1, store.kind.dimension), np.float32), MOST)
        found = sorted(passage.text for passage, _ in store.passages(rows[0]))
        state = next(int(text.split()[1]) for text in reversed(found) if text.startswith("State"))
        if found != texts(state) or len(store) != len(found):
            raise ValueError(f"{len(found)} texts of {len(store)} are not state {state}")
        return state

    def rows(self, table):
        """Return what a table holds in its last update, without the numbers of updates."""
        with self.server.connect() as connection:
            sql = f"SELECT {COLUMNS} FROM {table} WHERE until IS NULL ORDER BY id"
            states = f"SELECT state::jsonb - 'length', arrays, words FROM {table}_state ORDER BY number DESC LIMIT 1"
            return connection.execute(sql).fetchall(), connection.execute(states).fetchall()


def test_readers_see_whole_updates_and_none_is_lost_whatever_is_killed(postgres, tmp_path):
    copy, chaos = Copy(postgres, tmp_path), Chaos()
    copy.change()
    readers = [threading.Thread(target=copy.read) for _ in range(2)]
    for each in readers:
        each.start()
    try:
        while not chaos.over and not copy.wrong:
            if chaos.run(copy.command(copy.address), copy.disturb, (1, 12)) == 0:
                copy.acknowledged = copy.written
            if random.random() < 0.7:
                copy.change()
    finally:
        copy.stopped.set()
        for each in readers:
            each.join()
    print(f"\n{chaos}; {copy.written} states; {copy.seen.total()} readings of {len(copy.seen)}; told {dict(copy.told)}")  # noqa: T201
    assert copy.wrong == []
    assert set(chaos.ends) <= {0, 5, -9}
    metasearch(*copy.command(copy.address))
    metasearch(*copy.command(postgres.address("fresh")))
    rows, state = copy.rows("help")
    assert (rows, state) == copy.rows("fresh")
    index = LocalStore.open(tmp_path / "index")
    index.verify()
    assert [row[0] for row in rows] == sorted(row_numbers(index.row_keys()).tolist())
    assert sorted(row[8] for row in rows) == texts(copy.written)
