"""What has its files here asks no network: tests have none, and neither have the processes that they start."""

import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

from metasearch.cli import main

REFUSED = "tests have no network"
FLAGS = ["--max-steps=1", "--device=cpu", "--set=budget.meta_train=8", "--set=budget.meta_valid=0"]


def test_tests_have_no_network_but_this_machine():
    with pytest.raises(OSError, match=REFUSED):
        socket.create_connection(("example.org", 80), timeout=1)
    with pytest.raises(OSError, match=REFUSED):
        socket.getaddrinfo("example.org", 80)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()


def test_neither_do_the_processes_that_they_start():
    code = "import socket; socket.create_connection(('example.org', 80))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert REFUSED in ended.stderr


def test_a_folder_is_trained_saved_and_opened_again_without_a_network(tmp_path):
    def metasearch(*args):
        ended = CliRunner().invoke(main, [str(arg) for arg in args])
        assert ended.exit_code == 0, ended.output

    for encoder, folder in (("tiny", tmp_path / "first"), (tmp_path / "first" / "model", tmp_path / "second")):
        metasearch("train", "--task=demo-sts", "--mode=mono-bi", f"--encoder={encoder}", *FLAGS, "-o", folder)
    metasearch("evaluate", "--task=demo-sts", f"--encoder={tmp_path / 'second' / 'model'}", "--device=cpu")
