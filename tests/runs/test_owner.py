"""A folder belongs to one process, also where the lock of the file system is each machine's own.

The process elsewhere is a real one that says it is on another host and takes no lock, as on such a file system.
"""

import logging
import subprocess
import sys
import time

import pytest

from metasearch.errors import RunFolderError
from metasearch.files import OWNER
from metasearch.runs import owner

STALE, BEAT = 1.5, 0.2
ELSEWHERE = """
import socket, sys
socket.gethostname = lambda: "elsewhere"
from filelock import SoftFileLease
lease = SoftFileLease(sys.argv[1], lease_duration=float(sys.argv[2]), heartbeat_interval=float(sys.argv[3]))
with lease:
    print("held", flush=True)
    sys.stdin.read()
"""
HERE = """
import sys, time
from pathlib import Path
from metasearch.runs import owner
owner.STALE_SECONDS, owner.BEAT_SECONDS = float(sys.argv[2]), float(sys.argv[3])
with owner.owned(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    time.sleep(60)
    print("wrote")
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(owner, "STALE_SECONDS", STALE)
    monkeypatch.setattr(owner, "BEAT_SECONDS", BEAT)
    monkeypatch.setattr(owner, "_LOOK_SECONDS", 0.05)


def begun(code, path):
    command = [sys.executable, "-c", code, str(path), str(STALE), str(BEAT)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    return process


@pytest.fixture
def elsewhere(tmp_path):
    process = begun(ELSEWHERE, tmp_path / OWNER)
    yield process
    process.kill()
    process.wait()


def test_who_lives_on_another_machine_keeps_its_folder_and_is_named(tmp_path, elsewhere):
    began = time.monotonic()
    with pytest.raises(RunFolderError) as error, owner.owned(tmp_path, "the folder is taken"):
        pass
    assert str(error.value) == f"the folder is taken (process {elsewhere.pid} on elsewhere)"
    # Its next sign tells that it lives: nobody waits until it would be stale.
    assert time.monotonic() - began < STALE


def test_who_ends_on_another_machine_is_waited_for(tmp_path, elsewhere):
    elsewhere.stdin.close()
    with owner.owned(tmp_path, "the folder is taken", patience=60):
        assert elsewhere.wait() == 0


def test_who_died_on_another_machine_is_followed_after_the_documented_time_and_a_line_says_so(
    tmp_path, elsewhere, caplog
):
    elsewhere.kill()
    elsewhere.wait()
    began = time.monotonic()
    with caplog.at_level(logging.WARNING, "metasearch"), owner.owned(tmp_path, "the folder is taken"):
        assert STALE - BEAT <= time.monotonic() - began < 10 * STALE
    gone = f"process {elsewhere.pid} on elsewhere"
    assert caplog.messages == [f"{tmp_path} is taken over from {gone}, which gave no sign for {STALE:.0f} seconds"]
    assert not (tmp_path / OWNER).exists()


def test_who_died_on_this_machine_is_followed_at_once(tmp_path):
    process = begun(HERE, tmp_path)
    process.kill()
    process.communicate()
    assert (tmp_path / OWNER).is_file()
    began = time.monotonic()
    with owner.owned(tmp_path, "the folder is taken"):
        assert time.monotonic() - began < STALE


def test_who_lost_its_folder_ends_and_writes_nothing_more(tmp_path):
    process = begun(HERE, tmp_path)
    (tmp_path / OWNER).unlink()  # as whoever took over, and has let go again, leaves it
    said, error = process.communicate(timeout=30)
    assert (process.returncode, said) == (RunFolderError.exit_code, b"")
    assert error.decode() == f"metasearch: error: {tmp_path}: another process has taken over; this one ends\n"
