"""Addresses in the head of an HTML page: its own address, and the addresses of its translations.

The head may have `<link rel="canonical" href=...>` (RFC 6596) and, for each language, `<link rel="alternate"
hreflang=... href=...>` as in sitemaps of search engines. Relative addresses are ignored.
"""

import codecs
import hashlib
import re
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urldefrag, urlsplit

from metasearch.data.formats.text_files import opened, suffix_of
from metasearch.search.documents.languages import path_without_language

_HEAD = 2**16
"""Bytes of a page that are read."""
_DEFAULT = "x-default"
"""Value of `hreflang` of a page that serves all other languages."""
_IN_HEAD = frozenset({"html", "head", "title", "base", "link", "meta", "style", "script", "noscript", "template"})
"""Elements of a head: the start tag of any other one ends it (HTML, 13.2.6.4.4)."""
_SKIPPED = re.compile(r"<!--.*?(?:-->|\Z)|<(title|template|script|style)\b.*?(?:</\1\s*>|\Z)", re.S | re.I)
"""Comments, and elements of a head with text, or with elements that a page does not have."""
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]*)((?:[^>\"']|\"[^\"]*\"|'[^']*')*+)>", re.I)
_ATTRIBUTE = re.compile(r"([^\s=/>]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))")
_FRONT = re.compile(r"\A(---|\+\+\+)\n.*?^\1\s*$", re.S | re.M)
_KEY = re.compile(r"^(?:slug|translation_?key|i18n_key|page_id|lang-ref)\s*[:=]\s*[\"']?([^\"'\n#]+)", re.I | re.M)
"""A key of front matter that translations share: of Docusaurus, Hugo and Jekyll."""
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")


class PageLinks(NamedTuple):
    """The group of a page, which its translations share, and its canonical address or the empty text."""

    group: str
    url: str


def names_translations(path: Path) -> bool:
    """Return whether a page may name its translations: a Markdown page, or HTML with `hreflang`."""
    if suffix_of(path) in (".md", ".markdown"):
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
    canonical, alternates = "", dict[str, str]()
    if suffix_of(path) in (".html", ".htm"):
        with opened(path, lambda: "the beginning") as content:
            canonical, alternates = _read_head(content.read(_HEAD))
    elif suffix_of(path) in (".md", ".markdown"):
        with opened(path, lambda: "the beginning") as content:
            front = _FRONT.match(content.read(_HEAD).decode("utf-8-sig", "ignore").replace("\r\n", "\n"))
        if front and (key := _KEY.search(front[0])):
            return PageLinks("slug " + path_without_language(f"{key[1].strip('/')}.md").replace("*/", ""), "")
    addresses = {*alternates.values()}
    # A page may name its own address as canonical alone.
    if canonical and addresses and _spelling(canonical) not in map(_spelling, addresses):
        addresses.add(canonical)
    if len(addresses) < 2:
        return PageLinks(path_without_language(file), canonical)
    digest = hashlib.sha256("\n".join(sorted(addresses)).encode()).hexdigest()[:32]
    return PageLinks(f"alternates {digest}", canonical)


def _read_head(content: bytes) -> tuple[str, dict[str, str]]:
    """Return the canonical address of a page, and language → address; its beginning may end anywhere."""
    encoding = "utf-16" if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    canonical, alternates = "", dict[str, str]()
    for closing, tag, written in _TAG.findall(_SKIPPED.sub(" ", content.decode(encoding, "ignore"))):
        if (tag.lower() == "head") if closing else (tag.lower() not in _IN_HEAD):
            break
        if tag.lower() != "link":
            continue
        attributes: dict[str, str] = {}
        for name, *value in _ATTRIBUTE.findall(written):  # the first of a name counts
            attributes.setdefault(name.lower(), unescape("".join(value)))
        kinds, address = attributes.get("rel", "").lower().split(), _address(attributes.get("href", ""))
        language = attributes.get("hreflang", "").strip().lower()
        if "canonical" in kinds:
            canonical = canonical or address
        elif address and "alternate" in kinds and language not in ("", _DEFAULT):
            alternates.setdefault(language, address)
    return canonical, alternates


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
