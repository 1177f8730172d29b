"""Markdown, as it is written: headings, lists and code stay as they are marked.

A block of YAML before the text (front matter) is no text; its `lang` or `language` is the document's language, and its
`title` the title.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from metasearch.documents.content import texts
from metasearch.documents.cutting import Notes
from metasearch.documents.readers.text import parted
from metasearch.documents.section import Section
from metasearch.documents.settings import Settings
from metasearch.errors import ConfigError, DataError
from metasearch.spec import yaml
from metasearch.spec.languages import parse_tag

_MATTER = re.compile(r"---[ \t]*\n(?P<yaml>\s*(?:#|[\w-]+[ \t]*:).*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S | re.M)
_LANGUAGE = ("lang", "language")


@dataclass(frozen=True)
class _Matter:
    length: int = 0
    language: str = ""
    title: str = ""


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield the text of a file in sections of bounded size."""
    parts = texts(path)
    first = next(parts, "")
    matter = _matter(first, path)
    line = 1 + first.count("\n", 0, matter.length)
    for text, at in parted(chain([first[matter.length :]], parts)):
        yield Section(text, line + at - 1, matter.language, matter.title, markdown=True)


def _matter(text: str, path: Path) -> _Matter:
    """Return what front matter says; nothing of a text that begins with a rule, which is a line of dashes, too."""
    match = _MATTER.match(text)
    if match is None:
        return _Matter()
    try:
        # The line before it is the first of the file.
        tree, places = yaml.tree_of(f"\n{match['yaml']}", str(path))
    except ConfigError as error:
        raise DataError(f"{error}; it stands between lines of dashes at the start, as front matter") from None
    tags = {key: tree[key] for key in _LANGUAGE if tree.get(key)}
    for key, value in tags.items():
        try:
            tags[key] = parse_tag(str(value))
        except ValueError as error:
            raise DataError(f"{places[(key,)]}: {key}: {error}") from None
    title = tree.get("title")
    return _Matter(
        match.end(), next(iter(tags.values()), ""), " ".join(title.split()) if isinstance(title, str) else ""
    )
