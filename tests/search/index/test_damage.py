"""A damaged index is named, or not believed; it never gives a wrong answer."""

import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from helpers.indexes import hits_of, kind, made, queries
from metasearch.encoders.maps import Projection
from metasearch.errors import RunFolderError
from metasearch.search.index.database import read_state
from metasearch.search.index.local import LocalStore
from metasearch.search.index.plan import SearchPlan
from metasearch.search.index.writer import writing

CONTENT = made(60, dimension=4, per_file=3)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage") / "index"
    with writing(folder, kind(4)) as store:
        for start in (0, 20, 40):
            part = CONTENT.part(range(start, start + 20))
            store.upsert(part.vectors, part.passages, part.keys)
        neutral = Projection(np.ones(4) / 8, np.eye(4)[:1], ("de", "el"))
        store.finish(CONTENT.files(), SearchPlan(neutral, (20, 20)))
    return folder


@pytest.fixture
def folder(sound, tmp_path):
    """Return a copy of the index, without what is cached."""
    return shutil.copytree(sound, tmp_path / "index", ignore=shutil.ignore_patterns("projection"))


def answer(folder):
    store = LocalStore.open(folder, threads=1)
    ((rows, scores),) = store.search(queries(2, 4), 60)
    found = [hits_of(store, own, of) for own, of in zip(rows, scores, strict=True)]
    return found, store.plan.projection.centre.tolist(), store.languages, list(store.files)


def answer_or_error(folder):
    try:
        return answer(folder), ""
    except RunFolderError as error:
        return None, str(error)


def test_a_bit_that_flips_changes_no_answer_or_the_file_is_named(sound, folder):
    step = 331
    right = answer(sound)
    path = folder / "index.sqlite"
    content, named = path.read_bytes(), 0
    written = np.flatnonzero(np.frombuffer(content, np.uint8))  # the rest is room for more
    for number, place in enumerate(written[::step].tolist()):
        changed = bytearray(content)
        changed[place] ^= 1 << number % 8
        path.write_bytes(changed)
        found, error = answer_or_error(folder)
        assert found == right or str(path) in error, place
        named += found is None
    assert named > len(written) / step / 2
    path.write_bytes(content)
    assert answer(folder) == right


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9])
def test_a_file_that_is_cut_off_is_named(folder, share):
    path = folder / "index.sqlite"
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(RunFolderError, match=r"index\.sqlite|incomplete"):
        answer(folder)


DAMAGE = {
    "UPDATE block SET crc = crc + 1 WHERE number = 1": "block 1",
    "UPDATE codes SET data = zeroblob(80) WHERE block = 1": "block 1",
    "DELETE FROM codes WHERE block = 1": "block 1",
    "UPDATE passage SET text = 'other' WHERE id = 25": "passage 25",
    "DELETE FROM passage WHERE id = 30": "passage 30",
    "DELETE FROM file WHERE number = 2": "the list of documents",
    "UPDATE state SET crc = crc + 1 WHERE number = 1": "the index",
}


@pytest.mark.parametrize(("statement", "what"), DAMAGE.items())
def test_damage_is_named_with_its_remedy(folder, statement, what):
    with sqlite3.connect(folder / "index.sqlite") as file:
        file.execute(statement)
    with pytest.raises(
        RunFolderError, match=rf"index\.sqlite: {what} is damaged\. Restore the file, or delete it and run metasearch"
    ):
        answer(folder)


def test_verify_names_all_that_is_damaged(folder):
    store = LocalStore.open(folder)
    store.verify()
    with sqlite3.connect(folder / "index.sqlite") as file:
        file.execute("UPDATE passage SET crc = crc + 1 WHERE id IN (3, 45)")
    with pytest.raises(RunFolderError, match=r"passage 3 is damaged.*passage 45 is damaged"):
        LocalStore.open(folder).verify()


@pytest.mark.parametrize(("read", "table"), [(LocalStore.open, "file"), (read_state, "state")])
def test_an_index_that_cannot_be_read_is_closed(folder, read, table):
    with closing(sqlite3.connect(folder / "index.sqlite")) as file, file:
        file.execute(f"UPDATE {table} SET crc = crc + 1")
    with pytest.raises(RunFolderError, match="is damaged") as caught:
        read(folder)
    # An open file has two more beside it, and the error refers to what opened it.
    assert caught.tb
    assert [path.name for path in folder.iterdir() if path.name.startswith("index")] == ["index.sqlite"]
