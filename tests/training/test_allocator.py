"""How a process that trains holds memory."""

import os
import platform
import subprocess
import sys

import pytest
from click.testing import CliRunner

from metasearch.cli import main
from metasearch.jobs.doctor import hardware
from metasearch.training import allocator

PAGES = """
import resource
from concurrent.futures import ThreadPoolExecutor
from metasearch.training.allocator import keep_memory, return_memory

COUNT, SIZE, PAGE = 4, 20 * 2**20, resource.getpagesize()

def share():
    "Return how much of a block that was freed a moment ago has to be given by the system anew."
    faults = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        blocks = [bytearray(SIZE) for _ in range(COUNT)]
        del blocks
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return faults[-1] / (COUNT * SIZE / PAGE)

print(share(), keep_memory(), share(), ThreadPoolExecutor(1).submit(share).result())
print(return_memory(), share(), ThreadPoolExecutor(1).submit(share).result())
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_a_block_is_kept_for_the_next_one_in_every_thread_and_handed_back_where_that_is_asked_for(monkeypatch):
    for name in allocator.ALLOCATOR_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    said = subprocess.run([sys.executable, "-c", PAGES], capture_output=True, text=True, check=True).stdout.split()
    assert said[1] == "True"
    assert float(said[0]) > 0.4
    assert max(map(float, said[2:4])) < 0.1
    assert said[4] == "True"
    assert min(map(float, said[5:])) > 0.9


@pytest.mark.parametrize("name", allocator.ALLOCATOR_VARIABLES)
def test_an_allocator_that_the_environment_chooses_is_left_alone(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    monkeypatch.setattr(allocator.ctypes, "CDLL", None)
    assert allocator.keep_memory() is allocator.return_memory() is False


def test_nothing_is_done_without_glibc(monkeypatch):
    monkeypatch.setattr(allocator.platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(allocator.ctypes, "CDLL", None)
    assert allocator.keep_memory() is allocator.return_memory() is False


@pytest.mark.parametrize("command", [["train", "--resume"], ["distill", "--resume"], ["demo", "-o"]])
def test_commands_that_train_keep_memory(monkeypatch, tmp_path, command):
    asked = []
    monkeypatch.setattr(allocator, "keep_memory", lambda: asked.append(True))
    (tmp_path / "file").touch()
    assert CliRunner().invoke(main, [*command, str(tmp_path / "file")]).exit_code == 5
    assert asked == [True]


def test_the_allocator_to_preload_is_the_first_of_the_list_that_the_system_has(monkeypatch):
    there = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2"}
    monkeypatch.setattr(allocator, "find_library", there.get)
    assert allocator.allocator_to_preload() == "libjemalloc.so.2"
    monkeypatch.setattr(allocator, "find_library", {}.get)
    assert allocator.allocator_to_preload() is None


ASKED = "from metasearch.training.allocator import allocator_in_use; print(allocator_in_use())"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_a_preloaded_allocator_is_told_from_that_of_the_system():
    library = allocator.allocator_to_preload()
    variables = {name: value for name, value in os.environ.items() if name not in allocator.ALLOCATOR_VARIABLES}
    for preloaded, name in [({}, "glibc"), *([({"LD_PRELOAD": library}, library)] if library else [])]:
        said = subprocess.run(
            [sys.executable, "-c", ASKED], env=variables | preloaded, capture_output=True, text=True, check=True
        )
        assert said.stdout.startswith(name)  # of a library the whole version, too


@pytest.mark.parametrize(
    ("used", "there", "said"),
    [
        ("libjemalloc.so.2", None, "libjemalloc.so.2"),
        ("glibc", "libjemalloc.so.2", "LD_PRELOAD=libjemalloc.so.2 before a command"),
        ("glibc", None, "with tcmalloc or jemalloc"),
    ],
)
def test_doctor_says_which_allocator_is_used_and_which_would_be_faster(monkeypatch, used, there, said):
    monkeypatch.setattr(hardware, "allocator_in_use", lambda: used)
    monkeypatch.setattr(hardware, "allocator_to_preload", lambda: there)
    (found,) = (finding for finding in hardware.hardware() if finding.about == "allocator")
    assert said in found.found
    assert found.state == ("ok" if used != "glibc" else "note")
