"""Plain text."""

from collections.abc import Iterator
from pathlib import Path

from metasearch.data.formats.text_files import text_lines, with_line_feeds
from metasearch.search.documents.chunking import Settings, end_of_block
from metasearch.search.documents.passage import Notes, Section

SUFFIXES = (".txt",)
HOLDS = "page"

_SIZE = 2**18


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield a file's text in sections with bounded size."""
    rest, line = "", 1
    for part in lines(path):
        rest += part
        while len(rest) > _SIZE:
            end = end_of_block(rest, 0, _SIZE)
            yield Section(rest[:end], line)
            line += rest.count("\n", 0, end)
            rest = rest[end:]
    if rest:
        yield Section(rest, line)


def lines(path: Path) -> Iterator[str]:
    """Yield a file's lines with LF for every CR LF and CR; `DataError` if it is not UTF-8."""
    return (with_line_feeds(line) for _, line in text_lines(path))
