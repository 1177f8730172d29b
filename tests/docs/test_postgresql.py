"""The page about PostgreSQL is run: its commands and its SQL, against a real server."""

import json

import pytest

from helpers.commands import metasearch
from helpers.documents import blocks, commands, names, table
from helpers.files import write_all
from metasearch.search.indexes import open_searcher

PAGE = "docs/postgresql.md"
SHOWN = "postgresql://localhost/shop/help"


@pytest.mark.slow
def test_the_commands_and_the_sql_of_the_page_find_the_same(postgres, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {"key.de.txt": "Der Schlüssel liegt unter der Matte.", "parcel.de.txt": "Ein Paket kommt am Montag."}
    write_all(tmp_path / "help-pages", texts)
    address = postgres.address("help")
    index, search, serve = (
        [address if word == SHOWN else word for word in own] for own in commands(PAGE, "metasearch")
    )
    assert "copied: 2 passages sent" in metasearch(*index, "--encoder", "mini-e5").output
    both = [], ["--no-balance", "--by", "passage"]
    hits = [json.loads(metasearch(*search, "--json", *more).stdout)["hits"] for more in both]
    assert [hit["file"] for hit in hits[0]] == ["key.de.txt", "parcel.de.txt"]
    assert serve == ["serve", address]

    (query,) = open_searcher(address).encode_queries([search[2]])
    (sql,) = blocks(PAGE, "sql")
    with postgres.connect() as connection:
        found = connection.execute(sql.replace("$1", "%(query)s"), {"query": str(query.tolist())}).fetchall()
        columns = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'help'::regclass AND attnum > 0"
        )
        assert {name for cell, _ in table(PAGE, "column") for name in names(cell)} == {name for (name,) in columns}
    assert [(file, text) for file, text, _ in found] == [(hit["file"], hit["text"]) for hit in hits[1]]
    assert [score for *_, score in found] == pytest.approx([hit["score"] for hit in hits[1]], abs=1e-3)
