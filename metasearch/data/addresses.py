"""Addresses of pages as texts: the spellings of one address have one canonical form.

Equal are `http` and `https`, a host with `www.`, percent-encoded letters, double slashes, composed and decomposed
letters (NFC), and parameters that only track visitors, in any order. A fragment such as `#/printing` is a route, which
a script of the page reads; any other one is a place in the page.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

_PARTS = re.compile(r"(?:(?:[a-z][a-z0-9+.-]*:)?//([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.I | re.S)
_HOST = re.compile(r"(?:[^/@]*@)?(?:www\.)?(.*?)\.?(?::(?:80|443)?)?")
_TRACKING = re.compile(
    r"(?:utm_\w*|mtm_\w*|pk_\w*|piwik_\w*|matomo_\w*|hsa_\w*|_hs\w*|mc_[ce]id|[a-z]*clid|gclsrc|[gw]braid|msclkid|_ga|_gl"
    r"|igshid|srsltid|ref|ref_src|referrer|from|source|campaign|spm|sid|phpsessid|jsessionid)(?:=|$)",
    re.I,
)
LONGEST = 2048
"""Characters of a path or an address."""


class Address(NamedTuple):
    """An address or a path in parts.

    Attributes:
        host: empty where the text is a path.
        query: parameters in alphabetic order, such as `page=2&sort=name`.
        route: the path in the fragment.
        folder: whether the path ends in a slash.
    """

    host: str
    path: str
    query: str = ""
    route: str = ""
    folder: bool = False

    def __str__(self) -> str:
        text = (f"https://{self.host}/" if self.host else "/") + self.path + "/" * (self.folder and bool(self.path))
        return text + f"?{self.query}" * bool(self.query) + f"#/{self.route}" * bool(self.route)


def tidy_path(path: str) -> str:
    """Return a path in NFC with single slashes, and none at its ends."""
    path = (path if path.isascii() else unicodedata.normalize("NFC", path)).replace("\\", "/")
    if "//" not in path and "./" not in path and not path.endswith("."):
        return path.strip("/")
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _tidy_host(host: str) -> str:
    found = _HOST.fullmatch(host.lower())
    return unquote(found[1]) if found else host


def parse_address(text: str) -> Address:
    """Return the parts of an address or a path.

    Example:
        >>> parse_address("http://www.example.org//help/#/print%20it?id=top")
        Address(host='example.org', path='help', query='', route='print it', folder=True)
    """
    match = _PARTS.fullmatch(text.strip())
    assert match is not None
    host, path, query, fragment = match.groups("")
    if host:
        host = _tidy_host(host)
    if query:
        own = _own_parameters(query)
        query = "&".join(sorted(unicodedata.normalize("NFC", unquote(part.replace("+", " "))) for part in own))
    route = tidy_path(unquote(fragment.lstrip("!").partition("?")[0])) if fragment[:1] in ("/", "!") else ""
    return Address(host, tidy_path(unquote(path)), query, route, path.endswith("/"))


def _own_parameters(query: str) -> list[str]:
    """Return the parameters that do more than track visitors."""
    return [part for part in query.split("&") if part and not _TRACKING.match(part)]


def canonical(text: str) -> str:
    """Return the canonical form of an address, or of a path that begins with a slash; any other text unchanged.

    Example:
        >>> canonical("http://www.example.org:80/a%20key.html?utm_source=mail#top"), canonical("/help?ref=menu")
        ('https://example.org/a key.html', '/help')
    """
    text = text.strip()
    if not (text.startswith("/") or "://" in text[:12]) or len(text) > LONGEST or "\n" in text:
        return text
    # Each row of a click log has a click id of its own, and few are of a page that no other row has.
    before, _, query = text.partition("?")
    return _canonical(text if "#" in query or _own_parameters(query) else before)


@lru_cache(2**17)
def _canonical(text: str) -> str:
    return str(parse_address(text))
