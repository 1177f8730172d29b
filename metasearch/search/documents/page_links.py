"""Addresses in the head of an HTML page: its own address, and the addresses of its translations.

The head may have `<link rel="canonical" href=...>` (RFC 6596) and, for each language, `<link rel="alternate"
hreflang=... href=...>` as in sitemaps of search engines. Relative addresses are ignored.
"""

import codecs
import hashlib
import re
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urldefrag, urlsplit

from metasearch.data.formats.text_files import opened, suffix_of
from metasearch.search.documents.languages import path_without_language
from metasearch.search.documents.readers.html_page import ENDLESS, prepare_html

_HEAD = 2**16
"""Bytes of a page that are read."""
_DEFAULT = "x-default"
"""Value of `hreflang` of a page that serves all other languages."""
_IN_HEAD = frozenset({"html", "head", "title", "base", "link", "meta", "style", "script", "noscript", "template"})
"""Elements of a head: the start tag of any other one ends it (HTML, 13.2.6.4.4)."""
_SKIPPED = ("title", "template")
"""Elements of a head with text, or with elements that a page does not have."""
_FRONT = re.compile(r"\A(---|\+\+\+)\n.*?^\1\s*$", re.S | re.M)
_KEY = re.compile(r"^(?:slug|translation_?key|i18n_key|page_id|lang-ref)\s*[:=]\s*[\"']?([^\"'\n#]+)", re.I | re.M)
"""A key of front matter that translations share: of Docusaurus, Hugo and Jekyll."""
_MARKDOWN = (".md", ".markdown", ".mdx")
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")


class PageLinks(NamedTuple):
    """The group of a page, which its translations share, and its canonical address or the empty text."""

    group: str
    url: str


def names_translations(path: Path) -> bool:
    """Return whether a page may name its translations: a Markdown page, or HTML with `hreflang`."""
    if suffix_of(path) in _MARKDOWN:
        return True
    if suffix_of(path) not in (".html", ".htm"):
        return False
    with opened(path, lambda: "the beginning") as content:
        return b"hreflang" in content.read(_HEAD).replace(b"\0", b"").lower()


def read_page_links(path: Path, file: str) -> PageLinks:
    """Return the group and the address of a page.

    The group is made from the addresses of all translations, where the head names two languages or more, or from the
    key that the front matter of translations shares; else it is the path without the language.

    Args:
        path: where the page is.
        file: its path in the index.

    Raises:
        DataError: the file cannot be read.
    """
    found = _Head()
    if suffix_of(path) in (".html", ".htm"):
        with opened(path, lambda: "the beginning") as content:
            found.read(content.read(_HEAD))
    elif suffix_of(path) in _MARKDOWN:
        with opened(path, lambda: "the beginning") as content:
            front = _FRONT.match(content.read(_HEAD).decode("utf-8-sig", "ignore").replace("\r\n", "\n"))
        if front and (key := _KEY.search(front[0])):
            return PageLinks("slug " + path_without_language(f"{key[1].strip('/')}.md").replace("*/", ""), "")
    addresses = found.translations()
    if len(addresses) < 2:
        return PageLinks(path_without_language(file), found.canonical)
    digest = hashlib.sha256("\n".join(sorted(addresses)).encode()).hexdigest()[:32]
    return PageLinks(f"alternates {digest}", found.canonical)


class _HeadEnd(Exception):
    """The head has ended."""


class _Head(HTMLParser):
    """Collects the links of a head: `alternates` is language → address."""

    def __init__(self) -> None:
        super().__init__()
        self.canonical = ""
        self.alternates: dict[str, str] = {}
        self._skipped = ""
        """The open element whose tags do not count."""

    def read(self, content: bytes) -> None:
        """Read the beginning of a page, which may end anywhere."""
        encoding = "utf-16" if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
        with suppress(_HeadEnd):
            # Never closed: a tag or comment that is cut stays unread.
            self.feed(prepare_html(content.decode(encoding, "ignore")))

    def translations(self) -> set[str]:
        """Return the addresses of all translations; a page may name its own as canonical alone."""
        found = {*self.alternates.values()}
        known = {_spelling(each) for each in found}
        return found | ({self.canonical} if known and _spelling(self.canonical) not in known else set()) - {""}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipped:
            return
        if tag not in _IN_HEAD:
            raise _HeadEnd
        self._skipped = tag if tag in _SKIPPED else ""
        attributes = {name: value or "" for name, value in reversed(attrs)}  # the first of a name counts
        kinds, address = attributes.get("rel", "").lower().split(), _address(attributes.get("href", ""))
        if tag != "link" or not address:
            return
        language = attributes.get("hreflang", "").strip().lower()
        if "canonical" in kinds:
            self.canonical = self.canonical or address
        elif "alternate" in kinds and language not in ("", _DEFAULT):
            self.alternates.setdefault(language, address)

    def handle_comment(self, data: str) -> None:
        if data.startswith(ENDLESS):
            raise _HeadEnd

    def handle_endtag(self, tag: str) -> None:
        if tag == self._skipped:
            self._skipped = ""
        elif tag == "head" and not self._skipped:
            raise _HeadEnd


def _spelling(address: str) -> str:
    return address.partition("://")[2].rstrip("/").lower()


def _address(written: str) -> str:
    """Return an absolute http or https address without its fragment; the empty text for any other."""
    try:
        address = urldefrag(written.strip())[0]
        parts = urlsplit(address)
    except ValueError:  # such as http://[
        return ""
    return address if parts.scheme in ("http", "https") and parts.hostname and not _BLANK.search(address) else ""
