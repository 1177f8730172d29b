"""How a process that trains holds memory."""

import platform
import subprocess
import sys

import pytest
from click.testing import CliRunner

from metasearch.cli import main
from metasearch.training import machine

PAGES = """
import resource
from concurrent.futures import ThreadPoolExecutor
from metasearch.training.machine import keep_memory, return_memory

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
    for name in machine._ALLOCATORS:
        monkeypatch.delenv(name, raising=False)
    said = subprocess.run([sys.executable, "-c", PAGES], capture_output=True, text=True, check=True).stdout.split()
    assert said[1] == "True"
    assert float(said[0]) > 0.4
    assert max(map(float, said[2:4])) < 0.1
    assert said[4] == "True"
    assert min(map(float, said[5:])) > 0.9


@pytest.mark.parametrize("name", machine._ALLOCATORS)
def test_an_allocator_that_the_environment_chooses_is_left_alone(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    monkeypatch.setattr(machine.ctypes, "CDLL", None)
    assert machine.keep_memory() is machine.return_memory() is False


def test_nothing_is_done_without_glibc(monkeypatch):
    monkeypatch.setattr(machine.platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(machine.ctypes, "CDLL", None)
    assert machine.keep_memory() is machine.return_memory() is False


@pytest.mark.parametrize("command", [["train", "--resume"], ["distill", "--resume"], ["demo", "-o"]])
def test_commands_that_train_keep_memory(monkeypatch, tmp_path, command):
    asked = []
    monkeypatch.setattr(machine, "keep_memory", lambda: asked.append(True))
    (tmp_path / "file").touch()
    assert CliRunner().invoke(main, [*command, str(tmp_path / "file")]).exit_code == 5
    assert asked == [True]
