"""A page in one language, and which pages a benchmark takes: translated ones whose titles are unique."""

import hashlib
import html
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

ENGLISH = "en"
_TRANSLATED = 0.9
"""Share of a translation's characters that must be in translated paragraphs."""
_ENGLISH = 0.7
"""Share of a paragraph's characters in words of the English page from which it counts as English."""
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^>]*>")

Translations = Mapping[str, "Page"]
"""Language → the page in it."""


@dataclass(frozen=True)
class Page:
    """A page in one language.

    Attributes:
        title: the query that asks for the page.
        source: the HTML that is searched.
        paragraphs: text of its paragraphs, which shows whether it is translated.
    """

    title: str
    source: str
    paragraphs: tuple[str, ...]


def plain(source: str) -> str:
    """Return the text of a piece of HTML on one line.

    Example:
        >>> plain("<b>Files</b> &amp;\\n folders")
        'Files & folders'
    """
    return " ".join(html.unescape(_TAG.sub("", source)).split())


def is_translated(page: Page, english: Page) -> bool:
    """Return whether title and paragraphs are translated: translators leave some pages, or some of a page, as it is.

    An English paragraph may have a translated word, such as the title of a page that it links to.
    """
    known = {word for text in english.paragraphs for word in _words(text)}
    new = sum(len(text) for text in page.paragraphs if _share(_words(text), known) < _ENGLISH)
    return page.title != english.title and new > 0 and new >= _TRANSLATED * sum(map(len, page.paragraphs))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _share(words: Sequence[str], known: Collection[str]) -> float:
    """Return the share of the characters of words that is in known words."""
    return sum(len(word) for word in words if word in known) / max(sum(map(len, words)), 1)


def translated(pages: Mapping[str, Translations], languages: Collection[str]) -> dict[str, dict[str, Page]]:
    """Return each page with its complete translations; pages without English or without a translation are left out.

    Pages that share a title in some language are left out, too: the title does not say which one is meant.
    """
    kept: dict[str, dict[str, Page]] = {}
    for name, found in pages.items():
        english = found.get(ENGLISH)
        if english and english.paragraphs:
            inside = {tag: page for tag, page in found.items() if tag in languages and is_translated(page, english)}
            kept[name] = {ENGLISH: english, **inside}
    titles = Counter((tag, page.title.casefold()) for found in kept.values() for tag, page in found.items())
    return {
        name: found
        for name, found in sorted(kept.items())
        if len(found) > 1 and all(titles[tag, page.title.casefold()] == 1 for tag, page in found.items())
    }


def sample(pages: Mapping[str, dict[str, Page]], languages: Sequence[str], count: int) -> dict[str, dict[str, Page]]:
    """Return `count` pages that are in all languages, drawn by the hash of their names."""
    full = [name for name, found in pages.items() if set(languages) <= set(found)]
    drawn = sorted(full, key=lambda name: hashlib.sha256(name.encode()).digest())[:count]
    return {name: {tag: pages[name][tag] for tag in languages} for name in sorted(drawn)}
