"""Documents for tests, and the passages that are read of them."""

from collections.abc import Callable
from pathlib import Path

from benchmarks.common.documents import read
from helpers.files import write
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.passage import Passage


def passages_of(path: Path, content: str | bytes, **settings: object) -> list[Passage]:
    """Write a document and return its passages."""
    return list(read([write(path, content)], Settings(**settings)))


def shown(
    path: Path, content: str | bytes, length: Callable[[str], int] = len, **settings: object
) -> list[tuple[int, str]]:
    """Write a document and return line and text of its passages; `length` measures them."""
    if length is not len:
        settings["lengths"] = lambda texts: list(map(length, texts))
    return [(passage.line, passage.text) for passage in passages_of(path, content, **settings)]
