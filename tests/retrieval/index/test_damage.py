"""A damaged index is named, or not believed; it never gives a wrong answer."""

import json
import shutil

import numpy as np
import pytest

from helpers.indexes import kind, made, queries, write_index
from metasearch.errors import RunFolderError
from metasearch.retrieval.index.index import Index
from metasearch.retrieval.index.writer import writing


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage") / "index"
    content = made(6, dimension=4, per_file=3)
    with writing(folder, kind(4)) as writer:
        writer.keep({"centre": np.ones(4)})
        writer.add(content.vectors, content.passages, content.keys)
        writer.finish(content.files())
    return folder


def answer(folder):
    index = Index.open(folder, threads=1)
    rows, scores = index.search(queries(2, 4), 6)
    return [index.hits(own, of) for own, of in zip(rows, scores, strict=True)], index.arrays["centre"].tolist()


def segments_of(folder):
    """Return the files of the segments, in the order of the manifest."""
    parts = json.loads((folder / "manifest.json").read_text())["segments"]
    return [folder / "segments" / f"{part['stored']['name']}.safetensors" for part in parts]


def flipped(content, bit):
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def of(folder, which):
    (path,) = [
        path for path in folder.rglob("*.*") if path.is_file() and path.relative_to(folder).as_posix().startswith(which)
    ]
    return path


@pytest.mark.parametrize("which", ["segments", "locations", "arrays", "manifest"])
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 61])
def test_every_bit_that_flips_is_found(sound, tmp_path, which, step):
    right = answer(sound)
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    path = of(folder, which)
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), step):
        path.write_bytes(flipped(content, bit))
        with pytest.raises(RunFolderError) as error:
            answer(folder)
        assert path.name in str(error.value), bit
    path.write_bytes(content)
    assert answer(folder) == right


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 97])
def test_without_hashes_a_flipped_bit_gives_an_answer_or_an_error_and_never_a_crash(sound, tmp_path, step):
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    path = of(folder, "segments")
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), step):
        path.write_bytes(flipped(content, bit))
        try:
            index = Index.open(folder, checked=False, threads=1)
            rows, scores = index.search(queries(2, 4), 6)
            for own, of_rows in zip(rows, scores, strict=True):
                index.hits(own, of_rows)
        except RunFolderError:
            continue
        with pytest.raises(RunFolderError, match=path.name):
            index.verify()


@pytest.mark.parametrize("which", ["segments", "locations", "arrays"])
def test_a_missing_or_shorter_file_is_named_when_the_index_is_opened(sound, tmp_path, which):
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    path = of(folder, which)
    content = path.read_bytes()
    for size in (0, 1, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(RunFolderError, match=f"{path.name}.*the index is damaged"):
            Index.open(folder)
    path.unlink()
    with pytest.raises(RunFolderError, match=f"{path.name}: No such file"):
        Index.open(folder)


def test_verify_names_all_that_is_damaged(sound, tmp_path):
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    index = Index.open(folder)
    names = []
    for which in ("segments", "locations", "arrays"):
        path = of(folder, which)
        path.write_bytes(flipped(path.read_bytes(), 8 * path.stat().st_size - 3))
        names.append(path.name)
    with pytest.raises(RunFolderError) as error:
        index.verify()
    assert all(name in str(error.value) for name in names)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_damaged_segment_is_made_anew_wherever_it_stands(tmp_path, number):
    content, asked = made(150), queries(3)
    write_index(tmp_path, content, rows=50, portions=3)
    right = [each.tolist() for each in Index.open(tmp_path).search(asked, 20)]
    path = segments_of(tmp_path)[number]
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    write_index(tmp_path, content, rows=50)
    assert [each.tolist() for each in Index.open(tmp_path).search(asked, 20)] == right
    Index.open(tmp_path).verify()


def test_an_index_that_was_written_anew_meanwhile_is_sound_though_files_of_before_are_gone(tmp_path):
    before = Index.open(write_index(tmp_path, made(20)))
    write_index(tmp_path, made(30, seed=5))
    before.verify()
    (path,) = segments_of(tmp_path)
    path.unlink()
    with pytest.raises(RunFolderError, match=path.name):
        before.verify()
