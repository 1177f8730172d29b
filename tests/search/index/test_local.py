"""An index in a folder: what `upsert` kept stays, and what readers see changes in one moment."""

import multiprocessing
import os
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from helpers.indexes import (
    DIMENSION,
    Made,
    expected,
    found_by,
    hits_of,
    key_of,
    kind,
    made,
    queries,
    texts_of,
    write_index,
)
from metasearch.encoders.maps import Projection
from metasearch.errors import ConfigError, EncoderError, NonFiniteError, RunFolderError
from metasearch.search.documents.passage import Passage
from metasearch.search.index import writer
from metasearch.search.index.base import passage_keys
from metasearch.search.index.exact_search import to_int8
from metasearch.search.index.local import LocalStore
from metasearch.search.index.plan import SearchPlan
from metasearch.search.index.writer import writing


def passages_of(store):
    return [passage for passage, _ in store.passages(range(len(store)))]


def block_sizes(folder):
    """Return how many rows each block has, 32 bytes each."""
    with sqlite3.connect(folder / "index.sqlite") as file:
        return [size // 32 for (size,) in file.execute("SELECT length(rows) FROM block ORDER BY number")]


def same(ours, theirs):
    return all((a == b).all() for pair in zip(ours, theirs, strict=True) for a, b in zip(*pair, strict=True))


def test_adding_at_once_or_in_ten_portions_gives_the_same_results(tmp_path, monkeypatch):
    content, asked = made(230), queries(5)
    once = LocalStore.open(write_index(tmp_path / "once", content))
    monkeypatch.setattr(writer, "ROWS", 9)
    often = LocalStore.open(write_index(tmp_path / "often", content, portions=10))
    assert len(block_sizes(tmp_path / "often")) > 10
    assert same(once.search(asked, 30), often.search(asked, 30))
    assert passages_of(once) == passages_of(often) == content.passages
    assert once.contents == often.contents


def test_a_passage_with_a_known_key_is_not_stored_again(tmp_path):
    content, new = made(40), made(2, seed=5)
    write_index(tmp_path, content)
    with writing(tmp_path, kind()) as store:
        assert store.known(content.keys).all()
        assert not store.known(new.keys).any()
        assert store.upsert(content.vectors, content.passages, content.keys) == 0
        both = Made(
            np.concatenate([content.vectors[:3], new.vectors, new.vectors]),
            [*content.passages[:3], *new.passages, *new.passages],
            np.concatenate([content.keys[:3], new.keys, new.keys]),
        )
        assert store.upsert(both.vectors, both.passages, both.keys) == 2
        assert store.known(new.keys).all()
    assert block_sizes(tmp_path) == [40, 2]


def test_passages_of_files_that_are_gone_are_found_no_more_and_leave_the_file(tmp_path):
    content, asked = made(120), queries(4)
    write_index(tmp_path, content)
    left = [i for i, passage in enumerate(content.passages) if passage.file != "docs/1.txt"]
    with writing(tmp_path, kind()) as store:
        store.finish([each for path, each in store.places_by_file.items() if path != "docs/1.txt"])
    store = LocalStore.open(tmp_path)
    assert (len(store), len(store.files)) == (90, 3)
    assert texts_of(found_by(store, asked, 90)) == texts_of(expected(content.part(left), asked, 90))
    with sqlite3.connect(tmp_path / "index.sqlite") as file:
        assert file.execute("SELECT count(*) FROM passage").fetchone() == (90,)


def test_a_text_at_several_places_is_one_hit_at_the_first_of_them(tmp_path):
    content = made(4)
    one = Passage("the same", "a.txt", 7, "de")
    places = [one, replace(one, line=9), replace(one, file="b.txt", line=1), replace(one, language="tr")]
    content = Made(content.vectors, places, np.array([key_of(p) for p in places]))
    store = LocalStore.open(write_index(tmp_path, content))
    ((rows, scores),) = store.search(content.vectors[:1], 10)
    assert {(hit.passage, hit.places) for hit in hits_of(store, rows[0], scores[0])} == {(one, 3), (places[3], 1)}
    assert (len(store), store.places) == (2, 4)


@pytest.mark.parametrize(
    ("kept", "sizes"),
    [
        (range(60), [20, 20, 20]),
        (range(5, 60), [20, 20, 20]),  # a quarter of a block is dead
        (range(6, 60), [20, 20, 14]),  # more: it is written anew
        ([*range(6), *range(20, 26), *range(40, 60)], [20, 12]),
    ],
)
def test_a_block_with_many_deleted_passages_is_written_anew_and_no_result_changes(tmp_path, monkeypatch, kept, sizes):
    monkeypatch.setattr(writer, "ROWS", 20)
    content, asked = made(60), queries(5)
    write_index(tmp_path / "whole", content)
    with writing(tmp_path / "whole", kind()) as store:
        store.finish(content.part(list(kept)).files())
    assert block_sizes(tmp_path / "whole") == sizes
    write_index(tmp_path / "new", content.part(list(kept)))
    changed, new = (LocalStore.open(tmp_path / name) for name in ("whole", "new"))
    assert same(changed.search(asked, 50), new.search(asked, 50))
    assert passages_of(changed) == passages_of(new)
    changed.verify()


def test_a_reader_keeps_what_it_opened_and_a_new_one_sees_what_is_finished(tmp_path):
    content, more = made(30), made(30, seed=1)
    write_index(tmp_path, content)
    before = LocalStore.open(tmp_path)
    with writing(tmp_path, kind()) as store:
        store.upsert(more.vectors, more.passages, more.keys)
        assert len(LocalStore.open(tmp_path)) == 30
        assert not before.changed()
        store.finish([replace(each, file=replace(each.file, path="b")) for each in more.files()])
    assert before.changed()
    assert passages_of(before) == content.passages
    assert [passage.text for passage in passages_of(LocalStore.open(tmp_path))] == [p.text for p in more.passages]


def test_another_encoder_or_other_settings_are_refused(tmp_path):
    with writing(tmp_path, kind(words=90)) as store:
        store.finish([])
    with (
        pytest.raises(EncoderError, match="not of 'e5'"),
        writing(tmp_path, replace(kind(words=90), encoder="e5", fingerprint="f2")),
    ):
        pass
    with (
        pytest.raises(ConfigError, match=r"made with words 90, not 50; keep that setting \(--words\)"),
        writing(tmp_path, kind(words=50)),
    ):
        pass


def test_a_vector_that_is_not_finite_names_its_passage(tmp_path):
    content = made(5)
    content.vectors[3, 2] = np.inf
    with writing(tmp_path, kind()) as store, pytest.raises(NonFiniteError, match=r"docs/0\.txt:4: "):
        store.upsert(content.vectors, content.passages, content.keys)


def test_a_place_whose_passage_was_never_kept_is_refused(tmp_path):
    content = made(5)
    with writing(tmp_path, kind()) as store:
        store.upsert(content.vectors[:3], content.passages[:3], content.keys[:3])
        with pytest.raises(ValueError, match="a passage has no vector"):
            store.finish(content.files())


def test_the_plan_comes_back_and_stays_until_there_is_another_one(tmp_path):
    content = made(5)
    neutral = Projection(np.full(DIMENSION, 0.5), np.eye(DIMENSION)[:1], ("de", "el"))
    for plan, centre in ((SearchPlan(neutral, (3, 2), sharpness=7.0), 0.5), (None, 0.5), (SearchPlan(), None)):
        with writing(tmp_path, kind()) as store:
            store.upsert(content.vectors, content.passages, content.keys)
            store.finish(content.files(), plan)
        store = LocalStore.open(tmp_path)
        if centre:
            assert (store.plan.projection.centre == centre).all()
            assert (store.plan.texts, store.plan.sharpness) == ((3, 2), 7.0)
        else:
            assert store.plan.record == {}
        expected = to_int8(neutral(to_int8(content.vectors).take(slice(None)))) if centre else to_int8(content.vectors)
        np.testing.assert_array_equal(store.quantised.codes, expected.codes)


def test_two_writers_exclude_each_other_and_readers_go_on(tmp_path):
    write_index(tmp_path, made(20))
    fork = multiprocessing.get_context("fork")
    said = fork.SimpleQueue()

    def write():
        try:
            with writing(tmp_path, kind()):
                said.put("wrote")
        except RunFolderError as error:
            said.put(str(error))
        os._exit(0)

    with writing(tmp_path, kind()):
        other = fork.Process(target=write)
        other.start()
        other.join(60)
        assert "another process writes this index" in said.get()
        assert len(LocalStore.open(tmp_path)) == 20


def test_a_key_is_of_text_and_language_and_not_of_the_place():
    one = Passage("a text", "a.txt", 1, "de")
    keys = passage_keys([one, replace(one, file="b.txt", line=9), replace(one, text="b"), replace(one, language="tr")])
    assert keys.shape == (4, 16)
    assert len({key.tobytes() for key in keys}) == 3
    assert (keys[0] == keys[1]).all()
    moved = passage_keys([replace(one, text="e3:abc", language="d"), replace(one, text="abc", language="de3:")])
    assert (moved[0] != moved[1]).any()
