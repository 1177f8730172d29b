"""Names of documents: the suffixes that formats read, and texts that are paths or addresses.

A format of documents is a plug-in (`metasearch.search.documents.readers`), which is not imported to know its suffixes.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from metasearch.config import registry
from metasearch.data.addresses import LONGEST
from metasearch.data.formats.text_files import suffix_of
from metasearch.errors import ConfigError

Holds = Literal["page", "parts", "rows"]
"""What a file is: one page; or a page or paragraph for each of its lines, as in a PDF; or a row of fields for each."""
_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//\S+", re.I)


class Format(NamedTuple):
    """A plug-in by name, and what its files hold."""

    name: str
    holds: Holds


@cache
def formats() -> Mapping[str, Format]:
    """Return the format of each suffix; `ConfigError` if two formats read the same one."""
    holds, found = registry.constants("documents", "HOLDS"), dict[str, Format]()
    for name, suffixes in registry.constants("documents", "SUFFIXES").items():
        for suffix in suffixes:
            if suffix in found:
                raise ConfigError(f"formats '{found[suffix].name}' and '{name}' both read {suffix}; uninstall one")
            found[suffix] = Format(name, holds[name][suffix] if isinstance(holds[name], dict) else holds[name])
    return found


def is_address(text: str) -> bool:
    """Whether a text is an address such as `https://example.org/help`.

    Example:
        >>> is_address("https://example.org/help"), is_address("See https://example.org")
        (True, False)
    """
    return len(text) <= LONGEST and bool(_ADDRESS.fullmatch(text.strip()))


def is_path(text: str) -> bool:
    """Whether a text is the path of a document, such as `help/a.html`: it ends as one, and has no white space.

    Example:
        >>> is_path("help/a.html"), is_path("Open a.html")
        (True, False)
    """
    path = text.strip()
    return len(path) <= LONGEST and not re.search(r"\s", path) and suffix_of(Path(path)) in formats()
