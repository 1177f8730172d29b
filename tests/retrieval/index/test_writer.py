"""What a writer said to be in is in, and what readers see changes in one moment."""

import json
import logging
import multiprocessing
import os
from dataclasses import replace

import numpy as np
import pytest

from helpers.indexes import DIMENSION, Made, expected, found_by, key_of, kind, made, queries, texts_of, write_index
from metasearch.data.documents.passage import Passage
from metasearch.errors import ConfigError, EncoderError, NonFiniteError, RunFolderError
from metasearch.retrieval.index import compact as compaction
from metasearch.retrieval.index.index import Index
from metasearch.retrieval.index.writer import compact, writing


def segments_of(folder):
    return [part["rows"] for part in json.loads((folder / "manifest.json").read_text())["segments"]]


def files_of(folder):
    return sorted(path.name for kind in ("segments", "locations", "arrays") for path in (folder / kind).glob("*"))


def named_by(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    stored = [*(part["stored"] for part in manifest["segments"]), manifest["locations"], manifest["arrays"]]
    return sorted(f"{each['name']}.safetensors" for each in stored if each)


def test_adding_at_once_or_in_ten_portions_gives_the_same_results(tmp_path):
    content, asked = made(230), queries(5)
    once = Index.open(write_index(tmp_path / "once", content, rows=1000))
    often = Index.open(write_index(tmp_path / "often", content, rows=9, portions=10))
    for ours, theirs in zip(once.search(asked, 30), often.search(asked, 30), strict=True):
        assert (ours == theirs).all()
    assert [once.passage(row) for row in range(230)] == [often.passage(row) for row in range(230)] == content.passages


def test_what_is_there_already_is_not_stored_again(tmp_path):
    content = made(40)
    write_index(tmp_path, content)
    with writing(tmp_path, kind()) as writer:
        assert writer.known(content.keys).all()
        assert not writer.known(made(3, seed=5).keys).any()
        assert writer.add(content.vectors, content.passages, content.keys) == 0
        new = made(2, seed=5)
        both = Made(
            np.concatenate([content.vectors[:3], new.vectors, new.vectors]),
            [*content.passages[:3], *new.passages, *new.passages],
            np.concatenate([content.keys[:3], new.keys, new.keys]),
        )
        assert writer.add(both.vectors, both.passages, both.keys) == 2
        assert writer.known(new.keys).all()
        writer.flush()
    assert segments_of(tmp_path) == [40, 2]


def test_passages_of_files_that_are_gone_are_found_no_more(tmp_path):
    content, asked = made(120), queries(4)
    write_index(tmp_path, content)
    left = [i for i, passage in enumerate(content.passages) if passage.file != "docs/1.txt"]
    with writing(tmp_path, kind()) as writer:
        writer.finish([writer.places(path) for path in writer.files if path != "docs/1.txt"])
    index = Index.open(tmp_path)
    assert (len(index), index.files) == (90, 3)
    assert texts_of(found_by(index, asked, 90)) == texts_of(expected(content.part(left), asked, 90))


def test_a_text_at_several_places_is_one_hit_at_the_first_of_them(tmp_path):
    content = made(4)
    same = Passage("the same", "a.txt", 7, "de")
    places = [same, replace(same, line=9), replace(same, file="b.txt", line=1), replace(same, language="tr")]
    content = Made(content.vectors, places, np.array([key_of(p) for p in places]))
    index = Index.open(write_index(tmp_path, content))
    rows, scores = index.search(content.vectors[:1], 10)
    assert [(hit.passage, hit.places) for hit in index.hits(rows[0], scores[0])] in (
        [(places[0], 3), (places[3], 1)],
        [(places[3], 1), (places[0], 3)],
    )
    assert index.all_places(0) == places[:3]
    assert (len(index), index.places) == (2, 4)


def test_compaction_changes_no_result(tmp_path, monkeypatch):
    content, asked = made(240), queries(5)
    kept = np.array([i for i in range(240) if (i // 30) % 2])
    monkeypatch.setattr(compaction, "SMALL", 0)
    monkeypatch.setattr(compaction, "_DEAD", 1)
    with writing(tmp_path, kind(), rows=13) as writer:
        writer.add(content.vectors, content.passages, content.keys)
        writer.finish(content.part(kept).files())
    before = Index.open(tmp_path)
    assert len(segments_of(tmp_path)) == 19
    monkeypatch.setattr(compaction, "_DEAD", 0)
    monkeypatch.setattr(compaction, "MOST_ROWS", 20)
    compact(tmp_path)
    after = Index.open(tmp_path)
    assert sum(segments_of(tmp_path)) == 120
    assert max(segments_of(tmp_path)) == 20
    for ours, theirs in zip(before.search(asked, 50), after.search(asked, 50), strict=True):
        assert (ours == theirs).all()
    # What a reader has open is there although its files are removed.
    assert [before.passage(i) for i in range(120)] == [after.passage(i) for i in range(120)]
    assert files_of(tmp_path) == named_by(tmp_path)


@pytest.mark.parametrize(
    ("sizes", "live", "chosen"),
    [
        ([100, 100], [75, 100], []),
        ([100, 100], [74, 100], [0]),
        ([100, 100], [0, 100], [0]),
        ([10] * 8, [10] * 8, []),
        ([10] * 9, [10] * 9, list(range(9))),
        ([10] * 9 + [40_000], [10] * 9 + [40_000], list(range(9))),
    ],
)
def test_what_is_written_anew(sizes, live, chosen):
    assert compaction.rewritten(sizes, live) == chosen


def test_readers_see_what_is_added_once_it_is_finished(tmp_path):
    content, more = made(30), made(30, seed=1)
    write_index(tmp_path, content)
    with writing(tmp_path, kind()) as writer:
        writer.add(more.vectors, more.passages, more.keys)
        writer.flush()
        assert len(Index.open(tmp_path)) == 30
        writer.finish([*content.files(), *(replace(f, file=replace(f.file, path="b")) for f in more.files())])
        assert len(Index.open(tmp_path)) == 60


def test_another_encoder_or_other_settings_are_refused(tmp_path):
    with writing(tmp_path, kind(words=90)) as writer:
        writer.finish([])
    with (
        pytest.raises(EncoderError, match="not of 'e5'"),
        writing(tmp_path, replace(kind(words=90), encoder="e5", fingerprint="f2")),
    ):
        pass
    with (
        pytest.raises(ConfigError, match=r"made with words 90, not 50; leave that as it was"),
        writing(tmp_path, kind(words=50)),
    ):
        pass


def test_a_vector_that_is_not_finite_names_its_passage(tmp_path):
    content = made(5)
    content.vectors[3, 2] = np.inf
    with writing(tmp_path, kind()) as writer, pytest.raises(NonFiniteError, match=r"docs/0\.txt:4: "):
        writer.add(content.vectors, content.passages, content.keys)


def test_own_arrays_come_back_and_stay(tmp_path):
    centre = np.arange(DIMENSION, dtype=np.float64)
    with writing(tmp_path, kind()) as writer:
        writer.keep({"centre": centre})
        content = made(5)
        writer.add(content.vectors, content.passages, content.keys)
        with pytest.raises(RunFolderError, match="has vectors already"):
            writer.keep({"centre": centre + 1})
        writer.finish(content.files())
    assert (Index.open(tmp_path).arrays["centre"] == centre).all()
    with writing(tmp_path, kind()) as writer:
        assert (writer.arrays["centre"] == centre).all()


def test_files_that_no_manifest_names_are_removed_and_others_are_left(tmp_path):
    write_index(tmp_path, made(20))
    named = files_of(tmp_path)
    (tmp_path / "segments" / f"{'0' * 64}.safetensors").write_bytes(b"left")
    (tmp_path / "segments" / f"{named[0]}.new").write_bytes(b"left")
    (tmp_path / "segments" / "notes.txt").write_bytes(b"of the user")
    with writing(tmp_path, kind()):
        pass
    assert files_of(tmp_path) == sorted([*named, "notes.txt"])


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
        assert len(Index.open(tmp_path)) == 20


def test_a_reader_that_comes_in_the_middle_of_a_change_takes_the_new_manifest(tmp_path, monkeypatch):
    from metasearch.retrieval.index import index as module

    write_index(tmp_path, made(40))
    old = module.Manifest.read(tmp_path)
    write_index(tmp_path, made(30, seed=1))
    seen = iter([old])
    read = module.Manifest.read
    monkeypatch.setattr(module.Manifest, "read", lambda folder: next(seen, None) or read(folder))
    assert len(Index.open(tmp_path)) == 30


def test_what_is_damaged_is_made_again(tmp_path, caplog):
    content, asked = made(100), queries(3)
    with writing(tmp_path, kind(), rows=50) as writer:
        writer.add(content.vectors, content.passages, content.keys)
        writer.finish(content.files())
    whole = Index.open(tmp_path).search(asked, 100)
    path = next((tmp_path / "segments").iterdir())
    path.write_bytes(path.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING), writing(tmp_path, kind()) as writer:
        assert writer.files == {}
        missing = ~writer.known(content.keys)
        assert missing.sum() in (50, 100)
        part = content.part(np.flatnonzero(missing))
        writer.add(part.vectors, part.passages, part.keys)
        writer.finish(content.files())
    assert path.name in caplog.text
    index = Index.open(tmp_path)
    index.verify()
    for ours, theirs in zip(index.search(asked, 100), whole, strict=True):
        assert (ours == theirs).all()


def test_what_killed_processes_have_added_is_merged_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr("metasearch.retrieval.index.writer._FRESH", 4)
    content = made(60)
    for start in range(0, 60, 9):  # each adds three segments, and ends before it has finished
        with writing(tmp_path, kind(), rows=3) as writer:
            for chosen in np.array_split(np.arange(start, min(start + 9, 60)), 3):
                part = content.part(chosen)
                writer.add(part.vectors, part.passages, part.keys)
        assert len(segments_of(tmp_path)) < 2 * 4
    assert writer.known(content.keys).all()
