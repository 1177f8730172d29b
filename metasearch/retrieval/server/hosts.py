"""Names under which a server answers: a page elsewhere must not reach it by a name that it lets point here.

In DNS rebinding a browser is told another address for the attacker's own name, and sends that name as `Host`. So names
are checked; an address needs no check, since nobody but its owner can make one point elsewhere.
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

from metasearch.errors import ConfigError

_NAME = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\[\]:/@?#\s]+)(:[0-9]{1,5})?")


def is_address(host: str) -> bool:
    """Return whether a host is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine alone."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


@dataclass(frozen=True)
class Hosts:
    """The names that are allowed, in lower case; `*.example.org` stands for all below that name."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, bound: str, allowed: Sequence[str]) -> "Hosts":
        """Return `localhost`, the name that the server is bound to, and those that are allowed.

        Raises:
            ConfigError: one is no name, as with a port or a path.
        """
        for name in allowed:
            if not _NAME.fullmatch(name) and not is_address(name):
                raise ConfigError(f"--allow-host {name}: expected a name such as search.example.org or *.example.org")
        return cls(tuple(dict.fromkeys(name.lower().rstrip(".") for name in ("localhost", bound, *allowed))))

    def allow(self, header: str) -> bool:
        """Return whether a request with this `Host` is answered."""
        found = _HOST.fullmatch(header)
        if found is None:
            return False
        host = found[1].strip("[]").rstrip(".").lower()
        if is_address(host.partition("%")[0]):
            return True
        return any(host == name or (name[:1] == "*" and host.endswith(name[1:])) for name in self.names)
