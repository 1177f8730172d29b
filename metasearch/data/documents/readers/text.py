"""Plain text and Markdown source: headings, lists and code keep their marks.

A block of YAML before Markdown (front matter) is no text; its `lang` or `language` is the document's language, and its
`title` the title.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from metasearch.config import yaml
from metasearch.data.documents.chunking import Settings, end_of_block
from metasearch.data.documents.passage import Notes, Section
from metasearch.data.formats.text_files import suffix_of, text_lines, with_line_feeds
from metasearch.errors import ConfigError

_SIZE = 2**18
_MATTER = re.compile(r"---[ \t]*\n(?P<yaml>\s*(?:#|[\w-]+[ \t]*:).*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S | re.M)
_LITERAL = re.compile(
    r"^(?P<key>title|lang|language)[ \t]*:[ \t]*(?P<quote>[\"']?)(?P<value>.+?)(?P=quote)[ \t]*$", re.M
)
"""A line of front matter that is no YAML, as plain text."""


class _Matter(NamedTuple):
    length: int = 0
    language: str = ""
    title: str = ""


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield a file's text in sections with bounded size."""
    markdown, matter = suffix_of(path) != ".txt", _Matter()
    for text, line in _blocks(path):
        if markdown and line == 1:
            matter = _read_matter(text, path, notes)
            line += text.count("\n", 0, matter.length)
            text = text[matter.length :]
        yield Section(text, line, matter.language, matter.title, markdown=markdown)


def lines(path: Path) -> Iterator[str]:
    """Yield a file's lines with LF for every CR LF and CR; `DataError` if it is not UTF-8."""
    return (with_line_feeds(line) for _, line in text_lines(path))


def _blocks(path: Path) -> Iterator[tuple[str, int]]:
    """Yield running text in blocks of bounded size, each with its first line."""
    rest, first = "", 1
    for part in lines(path):
        rest += part
        while len(rest) > _SIZE:
            end = end_of_block(rest, 0, _SIZE)
            yield rest[:end], first
            first += rest.count("\n", 0, end)
            rest = rest[end:]
    if rest:
        yield rest, first


def _read_matter(text: str, path: Path, notes: Notes) -> _Matter:
    """Return the front matter; empty for a text that only starts with a rule, which is also a line of dashes."""
    match = _MATTER.match(text)
    if match is None:
        return _Matter()
    tree, places = _read_keys(match, path, notes)
    language, title = "", tree.get("title") or ""
    for key in ("language", "lang"):
        if value := tree.get(key):
            language = notes.read_language(str(value), f"{places[key]}: {key}") or language
    if isinstance(title, list | dict):
        notes.add("title ignored", f"{places['title']}: title: expected a text, got {str(title)[:40]}")
        title = ""
    return _Matter(match.end(), language, " ".join(str(title).split()))


def _read_keys(match: re.Match[str], path: Path, notes: Notes) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the keys in front matter and their lines; bad YAML is read literally."""
    try:
        # The line before it is the first of the file.
        tree, places = yaml.parse_tree(f"\n{match['yaml']}", str(path))
    except ConfigError as error:
        notes.add("title and language read literally", f"{error}; it is front matter, between lines of dashes")
        found = list(_LITERAL.finditer(match["yaml"]))
        lines = {each["key"]: f"{path}:{2 + match['yaml'].count(chr(10), 0, each.start())}" for each in found}
        return {each["key"]: each["value"] for each in found}, lines
    return dict(tree), {str(at[0]): place for at, place in places.items() if len(at) == 1}
