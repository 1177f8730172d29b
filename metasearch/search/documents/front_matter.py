"""Front matter before a page: keys in YAML, TOML or JSON, which are not part of the text.

| first line | ends with | format |
|---|---|---|
| `---`, or `---yaml`, `---toml`, `---json` | `---` or `...` | YAML, or as named |
| `+++` | `+++` | TOML |
| begins with `{` | the end of the object | JSON |

`lang` or `language` is the document's language, and `title` its title.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from metasearch.config import yaml
from metasearch.data.formats.text_files import parse_json
from metasearch.errors import ConfigError
from metasearch.search.documents.passage import Notes

_FENCED = (
    re.compile(r"---[ \t]*(?P<kind>|yaml|toml|json)[ \t]*\n(?P<body>.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S | re.M),
    re.compile(r"\+\+\+(?P<kind>)[ \t]*\n(?P<body>.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.S | re.M),
)
_BRACES = re.compile(r"(?P<kind>)(?P<body>\{.*?^\})[ \t]*(?:\n|\Z)", re.S | re.M)
"""An object that is not JSON, up to the line with its last brace."""
_NAME = r"""["']?[\w.-]+["']?[ \t]*"""
_BEGINS = {
    "YAML": re.compile(rf"(?:\s|#.*\n)*\{{?\s*{_NAME}:(?!//)"),
    "TOML": re.compile(rf"(?:\s|#.*\n)*(?:{_NAME}=|\[)"),
    "JSON": re.compile(r'\{\s*"[^"\n]*"\s*:'),
}
"""How a block of keys begins that cannot be read; another block is text."""
_LITERAL = re.compile(
    r"^(?P<indent>[ \t]*)[\"']?(?P<key>title|lang|language)[\"']?[ \t]*[:=][ \t]*(?P<value>.+?)[ \t,]*$", re.M
)
"""A line of a block that cannot be read, as plain text."""


class FrontMatter(NamedTuple):
    """What front matter says, and its length in characters, 0 without any."""

    length: int = 0
    language: str = ""
    title: str = ""


class _Damage(Exception):
    """A block is not in its format, at a line from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def read_front_matter(text: str, path: Path, notes: Notes) -> FrontMatter:
    """Return the front matter at the beginning of a text. A rule, also a line of dashes, does not begin any."""
    found = _find(text)
    if found is None:
        return FrontMatter()
    kind, body, first, length = found
    try:
        tree = _parse(kind, body)
    except _Damage as damage:
        if not _BEGINS[kind].match(body):
            return FrontMatter()
        place = f"{path}:{first + damage.line - 1}"
        notes.add("title and language read literally", f"{place}: {damage}; it is front matter, not text")
        tree = _read_literally(body, kind)
    if tree is None:
        return FrontMatter()
    language, title = "", tree.get("title") or ""
    for key in ("language", "lang"):
        if value := tree.get(key):
            language = notes.read_language(str(value), f"{path}:{first + _line_of(key, body)}: {key}") or language
    if isinstance(title, list | dict):
        place = f"{path}:{first + _line_of('title', body)}"
        notes.add("title ignored", f"{place}: title: expected a text, got {str(title)[:40]}")
        title = ""
    return FrontMatter(length, language, " ".join(str(title).split()))


def _read_literally(body: str, kind: str) -> dict[str, Any]:
    """Return title and language of a block that is not in its format."""
    found = (each for each in _LITERAL.finditer(body) if kind == "JSON" or not each["indent"])
    return {each["key"]: each["value"].strip("\"'}") for each in found}


def _find(text: str) -> tuple[str, str, int, int] | None:
    """Return the format of a block, its content, the line where that begins, and the length of all."""
    for form, usual in zip(_FENCED, ("YAML", "TOML"), strict=True):
        if match := form.match(text):
            return match["kind"].upper() or usual, match["body"], 2, match.end()
    if not text.startswith("{"):
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        match = _BRACES.match(text)
        return ("JSON", match["body"], 1, match.end()) if match else None
    after = re.compile(r"[ \t]*(?:\n|\Z)").match(text, end)
    return ("JSON", text[:end], 1, after.end()) if after else None


def _parse(kind: str, body: str) -> dict[str, Any] | None:
    """Return the keys of a block; None if it is text between rules; `_Damage` if it is not in its format."""
    try:
        if kind == "TOML":
            return tomllib.loads(body)
        if kind == "JSON":
            found = parse_json(body)
            return found if isinstance(found, dict) else None
    except (ValueError, RecursionError) as error:
        # TOML: "... (at line 2, column 3)" or "(at end of document)"; JSON: "... at line 2, column 3".
        place = re.search(r"line (\d+)", str(error))
        last = body.count("\n") if "end of document" in str(error) else 1
        message = re.sub(r" \(?at (?:line|column|end of document).*", "", str(error)).removeprefix("not JSON: ")
        raise _Damage(f"not {kind}: {message}", int(place[1]) if place else max(last, 1)) from None
    if not body.strip():
        return {}
    # After a rule and a blank line, a line with a colon is probably text.
    if body.lstrip(" \t").startswith("\n") and not _BEGINS[kind].match(body):
        return None
    try:
        return dict(yaml.parse_tree(body, "")[0])
    except ConfigError as error:
        line, message = str(error).removeprefix(":").split(": ", 1)
        raise _Damage(message, int(line)) from None


def _line_of(key: str, body: str) -> int:
    """Return how many lines of a block stand before a key."""
    found = re.search(rf"""^[ \t{{]*["']?{key}["']?[ \t]*[:=]""", body, re.M)
    return body.count("\n", 0, found.start()) if found else 0
