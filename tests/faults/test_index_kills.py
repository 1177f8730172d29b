"""Whatever an index's writer does when its process dies, what was said to be in is in."""

import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest

from helpers.indexes import hits_of, kind, made, queries
from helpers.kills import finished, killed, moments
from metasearch.errors import RunFolderError
from metasearch.search.index.local import LocalStore
from metasearch.search.index.writer import writing

CONTENT = made(60, per_file=20)
LATER = CONTENT.part(np.r_[0:20, 40:60])
NEW = made(30, seed=3, per_file=30)
ROWS = 7


def add(folder, content, files, said=None):
    """Bring an index up to date, and write down after each portion which keys were said to be in."""
    with writing(folder, kind()) as store:
        for start in range(0, len(content.passages), ROWS):
            part = content.part(range(start, min(start + ROWS, len(content.passages))))
            store.upsert(part.vectors, part.passages, part.keys)
            if said:
                with said.open("a") as file:
                    file.write(part.keys.tobytes().hex() + "\n")
        store.finish(files)


def build(folder, said=None):
    return lambda: add(folder, CONTENT, CONTENT.files(), said)


def update(folder, said=None):
    return lambda: add(folder, NEW, [*LATER.files(), *renamed(NEW)], said)


def drop(folder, said=None):
    return lambda: add(folder, NEW.part([]), CONTENT.part(np.r_[5:20]).files())


def renamed(content):
    return [replace(each, file=replace(each.file, path="new.txt")) for each in content.files()]


def answers(folder):
    store = LocalStore.open(folder, threads=1)
    store.verify()
    ((rows, scores),) = store.search(queries(3), 70)
    return [hits_of(store, own, of) for own, of in zip(rows, scores, strict=True)]


def said_to_be_in(said):
    text = bytes.fromhex(said.read_text().replace("\n", "")) if said.exists() else b""
    return np.frombuffer(text[: len(text) // 16 * 16], np.uint8).reshape(-1, 16)


def wrong_after(begin, before, whole, folder, said, moment):
    """Kill a writer at a moment, look at what is there, go on, and return what is wrong."""
    if not killed(begin(folder, said), folder.parent, moment):
        return "never came to it"
    try:
        if answers(folder) not in (before, whole):
            return "a reader saw something between"
    except RunFolderError as error:
        # Only a first build may have nothing to show yet.
        if before is not None or not any(text in str(error) for text in ("incomplete", "no index", "not exist")):
            return str(error)
    keys = said_to_be_in(said)
    with writing(folder, kind()) as store:
        if not store.known(keys).all():
            return f"{(~store.known(keys)).sum()} of {len(keys)} that were said to be in are not"
    code, text = finished(begin(folder), folder.parent)
    if code:
        return text
    return None if answers(folder) == whole else "came to something else"


def check(begin, first, tmp_path, every, capsys):
    """Kill a writer at every so many of its moments, or at all."""
    start = tmp_path / "start" / "index"
    start.parent.mkdir()
    if first:
        first(start)()
    before = answers(start) if first else None
    whole = tmp_path / "whole" / "index"
    whole.parent.mkdir()
    if first:
        shutil.copytree(start, whole)
    found = moments(begin(whole, whole.parent / "said"), whole.parent)
    own = [moment for moment in found if "said" not in str(moment)]
    own = own[:: every or len(own) // 3]
    expected, wrong = answers(whole), {}
    for i, moment in enumerate(own):
        folder = tmp_path / str(i) / "index"
        folder.parent.mkdir()
        if first:
            shutil.copytree(start, folder)
        problem = wrong_after(begin, before, expected, folder, folder.parent / "said", moment)
        if problem:
            wrong[str(moment)] = problem
        shutil.rmtree(folder.parent)
    with capsys.disabled():
        sys.stdout.write(f"\nkilled at {len(own)} moments, {len(own) - len(wrong)} survived\n")
    assert wrong == {}
    assert len(own) > 2
    assert any("COMMIT" in str(moment) for moment in found)


@pytest.mark.parametrize(
    "every",
    [
        pytest.param(1, marks=[pytest.mark.exhaustive, pytest.mark.timeout(0)]),
        pytest.param(None, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(("begin", "first"), [(build, None), (drop, build), (update, build)])
def test_a_killed_writer_leaves_the_old_or_the_new_and_goes_on(begin, first, tmp_path, every, capsys):
    check(begin, first, tmp_path, every, capsys)
