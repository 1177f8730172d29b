"""Manuals in HTML, by DocBook or Sphinx, split into pages: a page is a section without its subsections.

A chapter of these manuals has dozens of sections. The anchors of sections are the same in all languages.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.pages.page import Page, plain

_HEADING = re.compile(r"<h([1-6])\b[^>]*>(.*?)</h\1>(?:\s*</div>)*", re.DOTALL)
_ANCHOR = re.compile(r'<a (?:id="|class="headerlink" href="#)([^"]+)"')
_LINK = re.compile(r'<a class="headerlink".*?</a>', re.DOTALL)
"""Sphinx puts a link to itself after each heading."""
_NUMBER = re.compile(r"(?:[0-9A-Z]+\.)+\s+")
_FOOTER = re.compile(r'<div class="(?:navfooter|sphinxsidebar|clearer|related)"')
_PARAGRAPH = re.compile(r"<p\b[^>]*>(.*?)</p>", re.DOTALL)
_NO_NAME = re.compile(r"[^a-z0-9]+")
_LEAST = 100
"""Characters of the paragraphs of a page; shorter sections only introduce their subsections."""


def sections(source: str, language: str, titles: bool = True) -> Iterator[tuple[str, Page]]:
    """Yield name and page of each section of a chapter that has some text.

    Args:
        source: HTML of the chapter.
        language: its language.
        titles: whether the pages contain their titles; questions are asked of pages without them.
    """
    headings = list(_HEADING.finditer(source))
    ends = [heading.start() for heading in headings[1:]] + [len(source)]
    for heading, end in zip(headings, ends, strict=True):
        anchor = _ANCHOR.search(heading[2])
        body = _FOOTER.split(source[heading.end() : end])[0]
        paragraphs = tuple(filter(None, map(plain, _PARAGRAPH.findall(body))))
        if anchor and int(heading[1]) > 1 and sum(map(len, paragraphs)) >= _LEAST:
            title = plain(_LINK.sub("", heading[2]))
            document = _document(title if titles else "", body, language)
            name = _NO_NAME.sub("-", anchor[1].lower()).strip("-")
            yield name, Page(_NUMBER.sub("", title, count=1), document, paragraphs)


def _document(title: str, body: str, language: str) -> str:
    """Return a page of its own for a section."""
    head = f"<title>{html.escape(title)}</title>" if title else ""
    top = f"<h1>{html.escape(title)}</h1>\n" if title else ""
    return f'<!DOCTYPE html>\n<html lang="{language}">\n<head>{head}</head>\n<body>\n{top}{body}\n</body>\n</html>\n'


def read_manual(chapters: dict[str, list[Path]], titles: bool = True) -> dict[str, dict[str, Page]]:
    """Return the pages of a manual by name and language, from each language's chapters."""
    pages: dict[str, dict[str, Page]] = {}
    for language, paths in chapters.items():
        for path in paths:
            chapter = path.name.partition(".")[0]
            for name, page in sections(path.read_text(encoding="utf-8"), language, titles):
                pages.setdefault(f"{chapter}-{name}", {})[language] = page
    return pages
