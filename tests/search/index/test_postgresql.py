"""An index in a real server of PostgreSQL with pgvector: updates, readers and writers beside them, and errors."""

import gc
import threading
import time
from contextlib import suppress
from dataclasses import replace
from urllib.parse import quote, urlencode

import numpy as np
import pytest

from helpers.indexes import cut_words as words
from helpers.indexes import found_by, kind, made, queries, write_index
from helpers.indexes import texts_of as texts_in
from metasearch.encoders.maps import Projection
from metasearch.errors import ConfigError, RunFolderError
from metasearch.search.index.local import LocalStore
from metasearch.search.index.plan import SearchPlan
from metasearch.search.index.postgresql import PostgresStore
from metasearch.search.index.postgresql_server import Server
from metasearch.search.index.stores import open_store
from metasearch.search.index.writer import writing
from metasearch.search.settings import parse_conditions, without_password


def copied(server, folder, content, on_sent=lambda done, total: None, table="help"):
    store = LocalStore.open(write_index(folder, content))
    result = PostgresStore.copy(store, server.address(table), words, on_sent)
    assert result.passages == len(store)
    return result.sent, result.deleted


def texts_of(store, top_k=100, **how):
    ((rows, _),) = store.search(queries(1), top_k, **how)
    return sorted(passage.text for passage, _ in store.passages(rows[0]))


def test_a_reader_keeps_its_state_for_one_update_and_is_then_told_to_open_the_index_again(postgres, tmp_path):
    content = made(40)
    copied(postgres, tmp_path / "a", content)
    reader = PostgresStore.open(postgres.address("help"))
    before = texts_of(reader), reader.languages
    copied(postgres, tmp_path / "b", content.part(range(20, 40)))
    assert (texts_of(reader), reader.languages) == before
    assert len(texts_of(reader.reopen())) == 20
    copied(postgres, tmp_path / "c", content.part(range(25, 40)))
    with pytest.raises(RunFolderError, match="it was updated twice since it was opened; open it again"):
        reader.search(queries(1))


def test_a_reader_that_is_opened_during_two_updates_has_the_state_before_them(postgres, tmp_path, monkeypatch):
    content, version = made(40), Server.version
    copied(postgres, tmp_path / "a", content)

    def slow(server, connection):
        found = version(server, connection)
        monkeypatch.undo()
        for name, first in (("b", 20), ("c", 25)):
            copied(postgres, tmp_path / name, content.part(range(first, 40)))
        return found

    monkeypatch.setattr(Server, "version", slow)
    assert len(PostgresStore.open(postgres.address("help"))) == 40


def test_readers_beside_writers_see_an_update_whole_or_not_at_all(postgres, tmp_path):
    """Two indexes take turns at one address, of which each has its own texts."""
    stores = [LocalStore.open(write_index(tmp_path / str(seed), made(30, seed))) for seed in (1, 2)]
    wholes = [sorted(passage.text for passage, _ in each.passages(range(30))) for each in stores]
    address, seen, stopped = postgres.address("help"), [], threading.Event()
    PostgresStore.copy(stores[0], address, words, lambda done, total: None)

    def read():
        while not stopped.is_set():
            with suppress(RunFolderError):  # two updates came between the two lines
                store = PostgresStore.open(address)
                seen.append(texts_of(store))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    for turn in range(1, 7):
        PostgresStore.copy(stores[turn % 2], address, words, lambda done, total: None)
    stopped.set()
    for each in readers:
        each.join()
    assert seen
    assert all(each in wholes for each in seen)


def test_a_store_that_is_given_up_closes_its_connections(postgres, tmp_path):
    copied(postgres, tmp_path / "a", made(3))
    gc.disable()
    try:
        for _ in range(5):
            PostgresStore.open(postgres.address("help")).search(queries(1))
            with pytest.raises(RunFolderError, match="no such table"):
                PostgresStore.open(postgres.address("other"))
    finally:
        gc.enable()
    time.sleep(0.1)
    with postgres.connect() as connection:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'metasearch'"
        assert connection.execute(sql).fetchone()[0] <= 1  # the last one may be about to end


def test_searches_in_threads_are_those_in_turn(postgres, tmp_path):
    copied(postgres, tmp_path / "a", made(60))
    store, asked, found = PostgresStore.open(postgres.address("help")), queries(16), {}

    def search(i):
        ((rows, _),) = store.search(asked[i : i + 1], 5)
        found[i] = rows[0].tolist()

    threads = [threading.Thread(target=search, args=(i,)) for i in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    ((rows, _),) = store.search(asked, 5)
    assert [found[i] for i in range(16)] == rows.tolist()


def test_a_second_writer_is_refused_and_the_first_one_goes_on(postgres, tmp_path):
    refused = []

    def beside(done, total):
        if not refused:
            with pytest.raises(RunFolderError, match="/help: another process updates it; try again when"):
                copied(postgres, tmp_path / "b", made(3))
            refused.append(done)

    assert copied(postgres, tmp_path / "a", made(300), beside) == (300, 0)
    assert refused == [256]


def test_a_server_that_is_killed_within_an_update_has_the_state_before_it(postgres, tmp_path):
    content = made(30)
    copied(postgres, tmp_path / "a", content)
    opened = PostgresStore.open(postgres.address("help"))
    before = texts_of(opened)

    def killed(done, total):
        if done == 256:
            postgres.kill()

    with pytest.raises(RunFolderError, match=r"^postgresql://metasearch@127\.0\.0\.1:\d+/postgres/help: [^\n]+$"):
        copied(postgres, tmp_path / "b", made(300, seed=5), killed)
    with pytest.raises(RunFolderError, match=r"/help: connection failed: [^\n]+ Connection refused$"):
        opened.search(queries(1))
    postgres.start()
    assert texts_of(opened) == before  # by a new connection
    assert not opened.changed()
    assert copied(postgres, tmp_path / "c", made(300, seed=5)) == (300, 30)


def test_columns_of_others_and_another_order_of_columns_change_no_update(postgres, tmp_path):
    copied(postgres, tmp_path / "a", made(6))
    with postgres.connect() as connection:
        connection.execute("ALTER TABLE help ADD COLUMN clicks int NOT NULL DEFAULT 0, DROP COLUMN heading")
        connection.execute("ALTER TABLE help ADD COLUMN heading text")  # at the end
        connection.execute("ALTER TABLE help_state ADD COLUMN made timestamp DEFAULT now()")
        connection.execute("UPDATE help SET clicks = 7")
    assert copied(postgres, tmp_path / "b", made(9)) == (3, 0)
    assert len(texts_of(PostgresStore.open(postgres.address("help")))) == 9
    with postgres.connect() as connection:
        assert connection.execute("SELECT sum(clicks) FROM help WHERE until IS NULL").fetchone() == (6 * 7,)


def test_pgvector_may_be_in_any_schema(postgres, tmp_path):
    with postgres.connect() as connection:
        connection.execute('CREATE SCHEMA IF NOT EXISTS "My extensions"')
        connection.execute('CREATE EXTENSION vector SCHEMA "My extensions"')
    copied(postgres, tmp_path / "a", made(6))
    for options in (
        "",
        "?options=-csearch_path%3Dpublic",
        "?options=-csearch_path%3Dpublic%2C%22My%5C%20extensions%22",
    ):
        store = PostgresStore.open(postgres.address("help") + options)
        assert len(texts_of(store)) == 6
        assert len(store.search_words(words, ["passage"], 9)[0][0]) == 6


def test_tables_that_were_made_again_are_noticed_though_they_have_the_same_number(postgres, tmp_path):
    copied(postgres, tmp_path / "a", made(6))
    store = PostgresStore.open(postgres.address("help"))
    with postgres.connect() as connection:
        connection.execute("DROP TABLE help, help_state")
    assert store.changed()
    projection = Projection(np.zeros(24), np.eye(24)[:1], ("de", "el"))
    with writing(tmp_path / "a", kind()) as writer:
        writer.write_plan(SearchPlan(projection=projection))
    PostgresStore.copy(LocalStore.open(tmp_path / "a"), postgres.address("help"), words, lambda done, total: None)
    assert store.changed()
    assert store.reopen().number == store.number
    with pytest.raises(RunFolderError, match="/help: it was made again since it was opened; open it again"):
        store.search(queries(1))


@pytest.mark.parametrize("emptied", ["TRUNCATE help, help_state", "TRUNCATE help_state", "DELETE FROM help"])
def test_emptied_tables_are_filled_again(postgres, tmp_path, emptied):
    """Also where they had several updates, and where rows or states alone were deleted."""
    copied(postgres, tmp_path / "a", made(9))
    copied(postgres, tmp_path / "a", made(6))
    with postgres.connect() as connection:
        connection.execute(emptied)
    if "state" in emptied:
        with pytest.raises(RunFolderError, match="/help: the table was emptied; call metasearch index DOCUMENTS -o"):
            PostgresStore.open(postgres.address("help"))
    PostgresStore.check(postgres.address("help"))
    assert copied(postgres, tmp_path / "b", made(6)) == (6, 0)
    store = PostgresStore.open(postgres.address("help"))
    assert texts_of(store) == sorted(passage.text for passage in made(6).passages)
    ((_, scores),) = store.search_words(words, ["passage"], 9)
    assert scores.tolist() == pytest.approx([1 / 2.5 * np.log(1 + 0.5 / 6.5)] * 6, rel=1e-5)
    with postgres.connect() as connection:
        found = connection.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'help'").fetchall()
    assert sum("(page_group)" in definition for (definition,) in found) == 1


def test_files_and_folders_are_conditions(postgres, tmp_path):
    copied(postgres, tmp_path / "a", made(60))  # thirty in a file
    store = PostgresStore.open(postgres.address("help"))
    for where, count in (("path=docs/1.txt", 30), ("path!=docs/1.txt", 30), ("path=docs", 60), ("title=Keys", 0)):
        assert len(texts_of(store, where=parse_conditions([where]))) == count


@pytest.mark.slow
def test_an_index_of_vectors_finds_most_of_the_best_and_all_that_meet_a_rare_condition(postgres, tmp_path, monkeypatch):
    monkeypatch.setattr("metasearch.search.index.postgresql.EXACT", 0)
    content = made(3000)  # of files with thirty passages each
    copied(postgres, tmp_path / "a", content)
    local = LocalStore.open(tmp_path / "a")
    with postgres.connect() as connection:
        connection.execute("DROP INDEX help_language_idx")  # so that the planner has no other way
    address = f"{postgres.address('help')}?options=-cenable_seqscan%3Doff%20-cenable_bitmapscan%3Doff"
    store = PostgresStore.open(address)

    def texts(place, where):
        ((rows, _),) = place.search(queries(20), 10, [["de", "el"]], where=parse_conditions(where))
        return [{passage.text for passage, _ in place.passages(own)} for own in rows]

    for where, least in (((), 0.95), (("path=docs/7.txt",), 1)):  # ten of 3,000 in each language
        both = zip(texts(store, list(where)), texts(local, list(where)), strict=True)
        assert np.mean([len(found & best) / 10 for found, best in both]) >= least
    with store._server.connection() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
    with postgres.connect() as connection:
        sql = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'help_dense_idx'"
        assert connection.execute(sql).fetchone()[0] >= 20


@pytest.mark.slow
def test_a_rare_condition_finds_the_best_of_all_rows_that_meet_it(postgres, tmp_path, monkeypatch):
    """Where 15 % of the rows meet the condition, an iterative scan returns enough rows, but not the ten nearest.

    It is limited to few rows here, as in a large table: where 0.2 % of 60,000 rows meet it, recall@10 is 0.89.
    """
    monkeypatch.setattr("metasearch.search.index.postgresql.EXACT", 0)
    monkeypatch.setattr("metasearch.search.index.postgresql.EXPLORED", 20)
    content = made(3000, dimension=192)
    for i, passage in enumerate(content.passages):
        content.passages[i] = replace(passage, fields={"price": i % 20})
    copied(postgres, tmp_path / "a", content)
    where, asked = parse_conditions(["price<3"]), queries(20, 192)
    options = "-cseq_page_cost=1000000 -chnsw.max_scan_tuples=1000"  # so that the planner takes the graph
    graph = f"{postgres.address('help')}?{urlencode({'options': options}, quote_via=quote)}"
    stores = PostgresStore.open(graph), LocalStore.open(tmp_path / "a")
    found, best = (found_by(store, asked, 10, where=where) for store in stores)
    shared = [len({*own} & {*right}) / 10 for own, right in zip(texts_in(found), texts_in(best), strict=True)]
    assert np.mean(shared) >= 0.97


def test_a_nul_character_which_postgresql_cannot_store_is_replaced_and_named(postgres, tmp_path, said):
    content = made(3)
    content.passages[1] = replace(content.passages[1], text="the \0 key", fields={"kind\0": ["a\0b"]})
    copied(postgres, tmp_path / "a", content)
    assert "no NUL characters, U+FFFD stands for them: 1 passages, first docs/0.txt:2" in said()[-1]
    store = PostgresStore.open(postgres.address("help"))
    assert texts_of(store, where=parse_conditions(["kind\ufffd=a\ufffdb"])) == ["the \ufffd key"]
    assert copied(postgres, tmp_path / "b", content) == (0, 0)


# What is wrong with a server or an address: one line each, without the password.


def refused(address, error=RunFolderError):
    """Return what is said of an address before an index is made, and of a search there."""
    said = []
    for call in (lambda: PostgresStore.check(address), lambda: open_store(address)):
        with pytest.raises(error) as caught:
            call()
        said.append(str(caught.value))
    assert not any("\n" in each or "wr0ng" in each for each in said)
    return said


def test_a_wrong_password_is_named_and_the_right_one_is_read_as_libpq_does(postgres, tmp_path, monkeypatch):
    plain = postgres.address("help", "guarded")
    wrong = plain.replace("guarded@", "guarded:wr0ng@")
    assert all(f"{plain}: connection failed" in each for each in refused(wrong))
    assert all('authentication failed for user "guarded"' in each for each in refused(f"{plain}?password=wr0ng"))
    monkeypatch.delenv("PGPASSWORD", raising=False)
    assert all("no password supplied" in each for each in refused(plain))
    (tmp_path / "pgpass").write_text("127.0.0.1:*:*:guarded:s3cret\n")
    (tmp_path / "pgpass").chmod(0o600)
    with postgres.connect() as connection:
        connection.execute("CREATE EXTENSION vector")
    for name, value in (("PGPASSFILE", str(tmp_path / "pgpass")), ("PGPASSWORD", "s3cret")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            PostgresStore.check(plain)


def test_what_a_server_lacks_is_named(postgres):
    address = postgres.address("help")
    (said, _) = refused(address.replace("/postgres/", "/shop/"))
    assert 'database "shop" does not exist' in said
    (said, _) = refused("postgresql://127.0.0.1:1/shop/help")
    assert "Connection refused" in said
    (said, _) = refused(postgres.address("help", "guarded").replace("guarded@", "guarded:s3cret@"))
    assert "permission denied to create extension" in said


@pytest.mark.parametrize(
    ("versions", "says"),
    [
        ("SELECT 1 WHERE false", "the server has no pgvector; install it there"),
        ("VALUES ('vector', NULL, '0.6.2')", "pgvector 0.6.2 is older than 0.8; call ALTER EXTENSION vector UPDATE"),
        ("VALUES ('vector', '0.7.4', '0.8.2')", "pgvector 0.7.4 is older than 0.8; call ALTER EXTENSION vector UPDATE"),
    ],
)
def test_a_server_without_pgvector_or_with_an_old_one_is_named(postgres, versions, says):
    """The server looks at a table of ours in place of its own list."""
    with postgres.connect() as connection:
        rows = versions if versions.startswith("VALUES") else "SELECT 'vector', '', '' WHERE false"
        columns = "name, installed_version, default_version"
        connection.execute(f"CREATE VIEW pg_available_extensions ({columns}) AS {rows}")
    with pytest.raises(RunFolderError, match=says):
        PostgresStore.check(f"{postgres.address('help')}?options=-csearch_path%3Dpublic,pg_catalog")


def test_a_table_that_is_not_there_or_of_something_else_is_named(postgres):
    with pytest.raises(RunFolderError, match="/help: no such table; call metasearch index DOCUMENTS -o INDEX"):
        open_store(postgres.address("help"))
    with postgres.connect() as connection:
        connection.execute("CREATE TABLE help (page text)")
    for said in refused(postgres.address("help")):
        assert said.endswith("/help: this release of metasearch did not make the table; choose another")
    PostgresStore.check(postgres.address("other"))
    with postgres.connect() as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert found == [("help",)]  # a check leaves nothing behind


@pytest.mark.parametrize(
    "address",
    ["postgresql://", "postgresql://u:wr0ng@h", "postgresql://u:wr0ng@h/db", "postgres://u:wr0ng@h/db/Big-table",
     "postgresql://u:p/wr0ng@h/db/t", "postgresql://u:wr0ng@h/db/t?sslmod=require", "postgresql:h/db/t"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused_without_its_password(address):
    for said in refused(address, ConfigError):
        assert "expected postgresql://USER@HOST:PORT/DATABASE/TABLE" in said


def test_a_password_is_not_shown():
    shown = "postgresql://ada@h:5432/db/t?sslmode=require"
    assert without_password(shown) == shown
    assert without_password(shown.replace("ada", "ada:s3c:r@t")) == shown
    assert without_password(f"{shown}&password=s3cret") == f"{shown}&password=***"
    assert without_password("help.index") == "help.index"
