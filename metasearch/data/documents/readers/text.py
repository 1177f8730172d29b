"""Plain text, without interpretation."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from metasearch.data.documents.chunking import end_of_block
from metasearch.data.documents.content import texts
from metasearch.data.documents.passage import Section
from metasearch.data.documents.problems import Notes
from metasearch.data.documents.settings import Settings

_SIZE = 2**18


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield a file's text in sections with bounded size."""
    for text, line in parted(texts(path)):
        yield Section(text, line)


def parted(parts: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield running text in sections with bounded size, each with its first line."""
    rest, line = "", 1
    for part in parts:
        rest += part
        while len(rest) > _SIZE:
            end = end_of_block(rest, 0, _SIZE)
            yield rest[:end], line
            line += rest.count("\n", 0, end)
            rest = rest[end:]
    if rest:
        yield rest, line
