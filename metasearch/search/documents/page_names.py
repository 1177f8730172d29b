"""Texts that name a page: addresses and paths."""

import re
from pathlib import Path

from metasearch.data.formats.text_files import suffix_of
from metasearch.search.documents.read import SUFFIXES

_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//\S+", re.I)
_LONGEST = 2048
"""Characters of a path or an address."""


def is_address(text: str) -> bool:
    """Whether a text is an address such as `https://example.org/help`.

    Example:
        >>> is_address("https://example.org/help"), is_address("See https://example.org")
        (True, False)
    """
    return len(text) <= _LONGEST and bool(_ADDRESS.fullmatch(text.strip()))


def is_path(text: str) -> bool:
    """Whether a text is the path of a document, such as `help/a.html`: it ends as one, and has no white space.

    Example:
        >>> is_path("help/a.html"), is_path("Open a.html")
        (True, False)
    """
    path = text.strip()
    return len(path) <= _LONGEST and not re.search(r"\s", path) and suffix_of(Path(path)) in SUFFIXES
