"""Lets no process of the tests reach beyond this machine.

`conftest.py` runs it, and puts its folder on `PYTHONPATH`, where every Python process that a test starts finds it.
"""

import os
import socket

OWN = "METASEARCH_TESTS_OWN_ADDRESS"
"""Variable with an address of this machine beside these, for programs that know it by no other."""
_HERE = ("127.0.0.1", "0.0.0.0", "::1", "localhost", "", None)


class Blocked(OSError):
    """Something asked for the network."""


def _require_here(host):
    name = host.decode() if isinstance(host, bytes) else host
    if name not in _HERE and name != os.environ.get(OWN):
        raise Blocked(f"tests have no network: {name}")


def _address(address):
    # Those of local sockets are paths.
    if isinstance(address, tuple):
        _require_here(address[0])


def block():
    """Refuse connections and names of other machines from now on, in this process."""

    class Local(socket.socket):
        def connect(self, address):
            _address(address)
            super().connect(address)

        def connect_ex(self, address):
            _address(address)
            return super().connect_ex(address)

        def sendto(self, data, *rest):
            _address(rest[-1])
            return super().sendto(data, *rest)

    found = socket.getaddrinfo

    def getaddrinfo(host, *args, **keys):
        _require_here(host)
        return found(host, *args, **keys)

    socket.socket, socket.getaddrinfo = Local, getaddrinfo


if socket.socket.__module__ != __name__:
    block()
