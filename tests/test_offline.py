"""What has its files here asks no network: tests have none, and neither have the processes that they start."""

import socket
import subprocess
import sys

import pytest

REFUSED = "tests have no network"


def test_tests_and_the_processes_that_they_start_have_no_network_but_this_machine():
    with pytest.raises(OSError, match=REFUSED):
        socket.create_connection(("example.org", 80), timeout=1)
    with pytest.raises(OSError, match=REFUSED):
        socket.getaddrinfo("example.org", 80)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()
    code = "import socket; socket.create_connection(('example.org', 80))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert REFUSED in ended.stderr
