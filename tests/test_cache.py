"""Folders of the cache are made once, and again where they are not what was made."""

import hashlib
import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from metasearch import io
from metasearch.cli.doctor import environment
from metasearch.data.locate import fetch
from metasearch.encoders.open import only_cached
from metasearch.errors import EncoderError, HubError
from metasearch.io import cache_folder, cached


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Maker:
    """Writes two files, and counts how often."""

    def __init__(self):
        self.times = 0

    def __call__(self, folder):
        self.times += 1
        (folder / "weights").write_bytes(b"1234")
        (folder / "below").mkdir()
        (folder / "below" / "config").write_text("{}")


def test_a_folder_is_made_once():
    make = Maker()
    assert cached("a", make) == cached("a", make)
    assert make.times == 1
    assert (cached("a", make) / "below" / "config").read_text() == "{}"


DAMAGES = {
    "changed": lambda path: path.write_bytes(b"1235"),
    "removed": lambda path: path.unlink(),
    "added": lambda path: path.with_name("new").write_text("x"),
}
ANY_DAMAGE = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)


@ANY_DAMAGE
@pytest.mark.parametrize("name", ["weights", "sha256.json"])
def test_a_changed_one_is_made_again_and_a_line_says_so(name, damage, caplog):
    make = Maker()
    folder = cached("a", make)
    damage(folder / name)
    with caplog.at_level(logging.WARNING):
        assert cached("a", make) == folder
    assert make.times == 2
    assert caplog.messages == [f"{folder} was changed or is incomplete: making it again"]
    assert (folder / "weights").read_bytes() == b"1234"
    assert not (folder / "new").exists()


def test_one_that_cannot_be_made_leaves_nothing(cache):
    def fail(folder):
        (folder / "weights").write_bytes(b"12")
        raise EncoderError("the source is damaged")

    with pytest.raises(EncoderError, match="the source is damaged"):
        cached("a", fail)
    assert [path.name for path in cache.iterdir()] == ["a.lock"]


def test_those_who_come_at_the_same_time_wait_for_the_first():
    make = Maker()
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: cached("a", make), range(4)))) == 1
    assert make.times == 1


def test_it_is_in_the_users_folder_for_caches(monkeypatch, tmp_path):
    monkeypatch.delenv("METASEARCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "metasearch"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "metasearch"


def test_a_user_without_a_home_is_told_which_variable_to_set(monkeypatch):
    """As in a container that runs as a number, which no file of users names."""
    for name in ("METASEARCH_CACHE", "XDG_CACHE_HOME", "HOME", "USERPROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does where it finds no home
    with pytest.raises(EncoderError, match=r"^this user has no home for the cache; set METASEARCH_CACHE to a folder$"):
        cached("a", lambda folder: None)
    (found,) = [each for section in environment() for each in section.findings if each.about == "cache"]
    assert (found.state, found.code) == ("bad", 6)


def test_a_user_without_a_home_gets_no_folder_of_the_hub_here(monkeypatch):
    """The hub's library would make one whose name is `~`."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", "~/.cache/huggingface/hub")
    for use in (fetch, only_cached):
        with pytest.raises(HubError, match=r"^hub:a/b: this user has no home .*; set HF_HOME to a folder$"):
            use("hub:a/b")


def settled(monkeypatch):
    """Let files count as settled at once; return the list of those that are read."""
    read = []
    monkeypatch.setattr(io, "_SETTLED", -(10**12))
    monkeypatch.setattr(
        io, "digest", lambda path: read.append(path.name) or hashlib.sha256(path.read_bytes()).hexdigest()
    )
    return read


def test_no_file_is_read_again_that_was_not_written(tmp_path, monkeypatch):
    read, folder = settled(monkeypatch), tmp_path / "folder"
    folder.mkdir()
    Maker()(folder)
    expected = {"weights": hashlib.sha256(b"1234").hexdigest(), "below/config": hashlib.sha256(b"{}").hexdigest()}
    assert io.digests(folder) == expected
    assert sorted(read) == ["config", "weights"]
    assert io.digests(folder) == expected
    assert len(read) == 2


@pytest.mark.skipif(os.name == "nt", reason="there the time of the last change is not known")
@ANY_DAMAGE
def test_a_file_that_was_written_is_read_again_whatever_its_time_says(tmp_path, monkeypatch, damage):
    settled(monkeypatch)
    folder = tmp_path / "folder"
    folder.mkdir()
    Maker()(folder)
    weights = folder / "weights"
    before, times = io.digests(folder), weights.stat()
    time.sleep(0.02)  # longer than the clock of the file system ticks
    damage(weights)
    if weights.exists():
        os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert io.digests(folder) != before


def test_a_file_that_was_just_written_is_read_again(tmp_path, cache):
    (tmp_path / "folder").mkdir()
    Maker()(tmp_path / "folder")
    io.digests(tmp_path / "folder")
    assert not cache.exists()
