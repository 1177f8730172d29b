"""Whenever a preparation dies, the next one goes on to the same bytes, and does no finished shard again."""

import sys

import pytest

from helpers.kills import finished, killed, moments
from helpers.prepared import contents, prepared, write_lines
from metasearch.data.prepared.corpus import open_corpus
from metasearch.data.prepared.manifest import is_prepared
from metasearch.errors import DataError


def build(files, folder):
    return lambda: prepared([files], folder, shard=30, block=16)


def wrong_after(files, folder, expected, moment):
    """Kill a preparation at a moment, go on, and return what is wrong."""
    if not killed(build(files, folder), folder.parent, moment):
        return "never came to it"
    if not (folder / "manifest.json").exists() and is_prepared(folder):
        try:
            open_corpus(folder)
            return "what is half done is taken for whole"
        except DataError as error:
            if "its preparation is not finished" not in str(error):
                return str(error)
    shards = {path: path.stat().st_mtime_ns for path in folder.glob("work/shard-*.json")}
    made = {path: path.stat().st_mtime_ns for path in (folder / "shards").glob("*.safetensors")}
    code, text = finished(build(files, folder), folder.parent)
    if code:
        return text
    again = sum(path.stat().st_mtime_ns != before for path, before in made.items())
    if again > max(0, len(made) - len(shards)):
        return f"{again} of {len(shards)} finished shards were made again"
    return None if contents(folder) == expected else "came to something else"


@pytest.mark.parametrize(
    "every",
    [
        pytest.param(1, marks=[pytest.mark.exhaustive, pytest.mark.timeout(0)]),
        pytest.param(None, marks=pytest.mark.slow),
    ],
)
def test_a_preparation_that_is_killed_goes_on(tmp_path, every, capsys):
    files = write_lines(tmp_path / "files")
    whole = tmp_path / "whole" / "prepared"
    whole.parent.mkdir()
    own = moments(build(files, whole), whole.parent)
    own = own[:: every or len(own) // 3]
    expected, wrong = contents(whole), {}
    for i, moment in enumerate(own):
        folder = tmp_path / str(i) / "prepared"
        folder.parent.mkdir()
        if problem := wrong_after(files, folder, expected, moment):
            wrong[str(moment)] = problem
    with capsys.disabled():
        sys.stdout.write(f"\nkilled at {len(own)} moments, {len(own) - len(wrong)} survived\n")
    assert wrong == {}
    assert len(own) > 2
