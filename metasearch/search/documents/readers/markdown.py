"""Markdown source: headings, lists and code keep their marks.

Front matter before the page is keys in YAML, TOML or JSON:

| first line | ends with | format |
|---|---|---|
| `---`, or `---yaml`, `---toml`, `---json` | `---` or `...` | YAML, or as named |
| `+++` | `+++` | TOML |
| begins with `{` | the end of the object | JSON |

`lang` or `language` is the page's language, and `title` its title.

Text that a rendered page hides is removed: front matter, comments, scripts, styles, data in addresses such as
`data:image/png;base64,`, and in MDX the paragraphs that import or export names. Code is shown as written.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from markdown_it import MarkdownIt

from metasearch.config import yaml
from metasearch.data.formats.text_files import parse_json, suffix_of
from metasearch.errors import ConfigError
from metasearch.search.documents.chunking import Settings, end_of_block
from metasearch.search.documents.passage import HeadingMark, Notes, Section
from metasearch.search.documents.readers.html_page import ENDLESS_COMMENT
from metasearch.search.documents.readers.text import lines

SUFFIXES = (".md", ".markdown", ".mdx")
HOLDS = "page"

_SIZE = 2**18
"""Characters of a section, unless a block of Markdown is longer."""
_MOST = 2**22
_NOWHERE = re.compile(r"""^[ \t>*+-]*(\[[^\]\n]+\]:[ \t]*(?:\#|<>)[ \t]*(?:\([^)]*\)|"[^"]*"|'[^']*')[ \t]*)$""", re.M)
"""A comment that is written as a link to nowhere: `[//]: # (a comment)`."""
_SUSPECT = re.compile(r"<[!?]|<(?:script|style|template)\b|\{/\*|data:|\]:[ \t]*(?:#|<>)", re.I)
_MODULE = re.compile(r"^(?:import|export)\s", re.M)
_HIDDEN = re.compile(
    r"(?P<escape>\\.)|(?P<ticks>`+)|(?P<empty><!--?-?>)|(?P<comment><!--)|(?P<note>\{/\*)|(?P<cdata><!\[CDATA\[)|(?P<declared><![a-z])"
    r"|(?P<told><\?)|<(?P<element>script|style|template)\b"
    r"|(?P<before>\]\(\s*<?|\]:[ \t]*\n?[ \t>]*<?|=\s*[\"']?|url\(\s*[\"']?)(?=data:(?:[\w.+-]+/[\w.+-]+)?[;,])",
    re.I | re.S,
)
"""Beginnings of hidden text, and of code."""
_ENDS = {"comment": "-->", "note": r"\*/\}", "cdata": r"\]\]>", "declared": ">", "told": r"\?>"}
_DATA_ENDS = {"<": "(?=>)", '"': '(?=")', "'": "(?=')"}

_HEADING = re.compile(r"^ {0,3}(?:#|=+[ \t]*$|-+[ \t]*$)", re.M)
_ATTRIBUTES = re.compile(r"\s*\{[#.:][^}]*\}\s*$")
"""Attributes of a heading, such as `{#margins}`."""
_MARKS = re.compile(r"!?\[(?P<text>[^\]]*)\]\([^)]*\)|[*`]|<[^>]+>")
"""Marks of Markdown and HTML in a heading, apart from the text of a link."""

Span = tuple[int, int]


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield a file's text in sections with bounded size."""
    source, first = lines(path), ""
    for part in source:
        first += part
        if len(first) > _SIZE:
            break
    matter = read_front_matter(first, path, notes)
    line = 1 + first.count("\n", 0, matter.length)
    above: list[tuple[int, str]] = []
    is_mdx = suffix_of(path) == ".mdx"
    for text in _blocks(first[matter.length :], source):
        module = is_mdx and _MODULE.search(text)
        spans = sorted(_hidden(text, bool(module))) if module or _SUSPECT.search(text) else []
        shown, marks = _visible(text, spans, line) if spans else (text, None)
        headings = _headings(shown, above)
        yield Section(shown, line, matter.language, matter.title, marks, markdown=True, headings=headings)
        closed = text.rfind("-->")
        for start, _ in spans:
            if start > closed and text.startswith("<!--", start):
                notes.add("not shown", f"{path}:{line + text.count(chr(10), 0, start)}: {ENDLESS_COMMENT}")
        line += text.count("\n")


@cache
def _parser() -> MarkdownIt:
    """Return a parser of blocks; they distinguish code from text."""
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _headings(text: str, above: list[tuple[int, str]]) -> list[HeadingMark]:
    """Return the headings in a text; `above` has level and text of those before it, and then of those before its end.

    A link or emphasis in a heading is its text alone.
    """
    found = [HeadingMark(0, tuple(each for _, each in above))]
    if not _HEADING.search(text):
        return found
    tokens, starts = _parser().parse(text), [0, *(match.end() for match in re.finditer("\n", text))]
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and not opening.level and opening.map:
            level, written = int(opening.tag[1]), _ATTRIBUTES.sub("", inline.content)
            above[:] = [each for each in above if each[0] < level]
            above.append((level, " ".join(_MARKS.sub(r"\g<text>", written).split())))
            found.append(HeadingMark(starts[opening.map[0]], tuple(each for _, each in above)))
    return found


def _blocks(text: str, source: Iterator[str]) -> Iterator[str]:
    """Yield a text and the rest of its source in parts that end between two blocks of Markdown."""
    size = _SIZE
    while True:
        if len(text) > size:
            end = _start_of_last(text) if size < _MOST else end_of_block(text, 0, _SIZE)
            yield from [text[:end]] if end else []
            text = text[end:]
            size = max(_SIZE, 2 * len(text))
        part = next(source, None)
        if part is None:
            break
        text += part
    if text:
        yield text


def _start_of_last(text: str) -> int:
    starts = [token.map[0] for token in _parser().parse(text) if token.map and not token.level]
    return sum(map(len, text.split("\n")[: starts[-1]])) + starts[-1] if starts else 0


def _visible(text: str, spans: Sequence[Span], first: int) -> tuple[str, list[Span]]:
    """Return a text without spans and lines that become blank, and the offsets of its lines with their numbers."""
    masked, at = "", 0
    # A text has no NUL characters, so that they can stand for what is hidden.
    for start, end in spans:
        if end > at:
            start = max(start, at)
            masked += text[at:start] + re.sub(".", "\0", text[start:end])
            at = end
    shown, marks, size = [], [], 0
    for number, line in enumerate(re.findall(".*\n|.+", masked + text[at:]), first):
        kept = line.replace("\0", "")
        if kept.strip() or len(kept) == len(line):
            marks.append((size, number))
            shown.append(kept)
            size += len(kept)
    return "".join(shown), marks


def _hidden(text: str, module: bool) -> Iterator[Span]:
    """Yield the hidden spans of a text, which are outside code; in a `module`, also imports and exports."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    at, missing = 0, set[str]()
    for token in _parser().parse(text):
        if token.map and token.type in ("inline", "html_block", "fence", "code_block"):
            start, end = (min(starts[line], len(text)) for line in token.map)
            if start < at:  # another cell of a row
                continue
            yield from _hidden_between(text, at, start)
            if token.type == "html_block":
                yield from _hidden_in(text, start, end, missing, html=True)
            elif module and token.type == "inline" and _MODULE.match(text, start):
                yield start, end
            elif token.type == "inline":
                yield from _hidden_in(text, start, end, set())
            at = end
    yield from _hidden_between(text, at, len(text))


def _hidden_between(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the hidden spans between blocks, where definitions of links stand."""
    yield from (match.span(1) for match in _NOWHERE.finditer(text, start, end))
    yield from _hidden_in(text, start, end, set())


def _hidden_in(text: str, start: int, end: int, missing: set[str], html: bool = False) -> Iterator[Span]:
    """Yield the hidden spans of a part of a text.

    In running text, code and comments without an end are shown. A blank line ends an HTML block, but no comment or
    script in it. `missing` collects end patterns that do not occur in the rest of the text.
    """
    while match := _HIDDEN.search(text, start, end):
        start, code = match.end(), match.lastgroup in ("escape", "ticks")
        if html and code:
            continue
        closing = _closing(match)
        last = len(text) if match["note"] or (html and not match["before"]) else end
        found = None if closing in missing else re.compile(closing, re.I).search(text, start, last)
        if found is None:
            missing.add(closing)
            if not html:
                continue
        start = found.end() if found else end
        if not code:
            # Of an address with data, only the data are hidden.
            yield (match.end() if match["before"] else match.start()), start


def _closing(match: re.Match[str]) -> str:
    kind = str(match.lastgroup)
    if kind == "ticks":
        return f"(?<!`){match['ticks']}(?!`)"
    if kind == "element":
        return f"</{match['element'].lower()}\\s*>"
    if kind == "before":
        return _DATA_ENDS.get(match["before"][-1], r"(?=[\s)>])|\Z")
    return _ENDS.get(kind, "")


# Front matter.

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
