"""What most pages of a folder share is no content: menus, banners, footers, debug lines, the site's name in titles.

A block is a line of HTML as shown, or a paragraph of another format. Successive blocks are repeated if four in five
pages of a folder have them, and there are at least ten different pages. They are left out at the beginning and the end
of a page, and elsewhere if they are three or more: a heading such as `Note` and a warning below it stay. Subfolders,
formats and languages count for themselves, as sites in one folder and translations have menus of their own.
"""

import pickle
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import groupby
from pathlib import PurePosixPath
from tempfile import SpooledTemporaryFile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metasearch.data.formats.blank import blank
from metasearch.search.documents.passage import HeadingMark, Notes, Section

LEAST = 10
"""Different pages of a folder below which nothing is known to be repeated."""
SHARE = 0.8
"""Share of the pages: with a half, content in common was lost in folders of 10 to 20 pages of a program's help."""
_IN_MEMORY = 2**26
"""Bytes of sections above which they wait on the disk."""
LONG = 3
"""Repeated blocks in the middle of a page that are no content."""
_LINE = re.compile(r"[^\n]+")
_PARAGRAPH = re.compile(r"[^\n]+(?:\n[ \t]*[^\s\n][^\n]*)*")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.M)
_BETWEEN = re.compile(r"(\s+[-–—|·•»›:]+\s+)")
"""What stands between a page's title and its site's."""
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that no pair of hashes is lost."""

Hashes = NDArray[np.uint64]


class Blocks(NamedTuple):
    """Language of a page, and ascending hashes of its block pairs and title parts."""

    language: str
    hashes: Hashes


class _Block(NamedTuple):
    section: int
    start: int
    end: int
    text: str
    fixed: bool
    """Whether it is code or a row of a table in Markdown, which falls apart without it."""


class Pages:
    """Pages that wait until all are there: then it is known what most of them share."""

    def __init__(self) -> None:
        self.blocks: dict[str, Blocks] = {}
        self._stored: dict[str, int] = {}
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._repeated: Mapping[str, Hashes] = {}

    def __contains__(self, file: str) -> bool:
        """Return whether a page waits with its text."""
        return file in self._stored

    def add(self, file: str, language: str, sections: Sequence[Section], notes: Notes) -> None:
        """Add a page with its text and what was noted about it."""
        stated = next((each.language for each in sections if each.language), language)
        parts = [part for each in sections[:1] for part in _BETWEEN.split(each.title)[::2] if part]
        titles = np.array(list(map(_hash_of_title, parts)), np.uint64)
        self.blocks[file] = Blocks(stated, np.unique(np.concatenate([_pairs(_blocks(sections)), titles])))
        self._stored[file] = self._file.seek(0, 2)
        pickle.dump((sections, notes), self._file)

    def decide(self) -> None:
        """Compare all pages."""
        self._repeated = repeated(self.blocks)

    def repeated(self, file: str) -> Hashes:
        """Return what a page shares with most others."""
        return self._repeated.get(file, np.zeros(0, np.uint64))

    def sections(self, file: str, notes: Notes) -> Iterator[Section]:
        """Yield a page's sections without repeated blocks, which the notes count by text."""
        # Written above, by this process alone: the file has no name.
        self._file.seek(self._stored[file])
        sections, own = pickle.load(self._file)
        notes.include(own)
        yield from _without(sections, self.repeated(file), notes)


def repeated(pages: Mapping[str, Blocks]) -> dict[str, Hashes]:
    """Return what each page, by its path, shares with most pages of a folder; without the pages that share nothing."""
    groups: dict[tuple[PurePosixPath, str, str], list[str]] = {}
    for file, page in pages.items():
        path = PurePosixPath(file)
        for folder in path.parents:
            for language in {"", page.language}:
                groups.setdefault((folder, path.suffix, language), []).append(file)
    found: dict[str, list[Hashes]] = {}
    for files in {tuple(files): None for files in groups.values() if len(files) >= LEAST}:
        different = list({pages[file].hashes.tobytes(): pages[file].hashes for file in files}.values())
        if len(different) < LEAST:
            continue
        hashes, counts = np.unique(np.concatenate(different), return_counts=True)
        frequent = hashes[counts >= SHARE * len(different)]
        for file in files if len(frequent) else ():
            found.setdefault(file, []).append(np.intersect1d(pages[file].hashes, frequent, assume_unique=True))
    whole = {file: np.unique(np.concatenate(parts)) for file, parts in found.items()}
    return {file: hashes for file, hashes in whole.items() if len(hashes)}


def _blocks(sections: Sequence[Section]) -> list[_Block]:
    found = []
    for number, section in enumerate(sections):
        code = False
        for match in (_LINE if section.headings and not section.markdown else _PARAGRAPH).finditer(section.text):
            if blank(match[0]):
                continue
            fences = len(_FENCE.findall(match[0])) if section.markdown else 0
            fixed = code or fences > 0 or (section.markdown and match[0].lstrip().startswith("|"))
            code ^= fences % 2 == 1
            found.append(_Block(number, match.start(), match.end(), " ".join(match[0].split()), fixed))
    return found


def _pairs(blocks: Sequence[_Block]) -> Hashes:
    """Return the hash of each block with the next one, the page's beginning and end included, `(n + 1,)`."""
    hashes = np.array([0, *(_hash(each.text) for each in blocks), 0], np.uint64)
    return hashes[:-1] * _FACTOR + hashes[1:]


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def _hash_of_title(part: str) -> int:
    return _hash(f"\0{part}")


def _without(sections: Sequence[Section], shared: Hashes, notes: Notes) -> Iterator[Section]:
    """Yield sections without the blocks and the parts of the title that are repeated."""
    if not len(shared):
        yield from sections
        return
    blocks = _blocks(sections)
    dropped = [each for each in _repeated(blocks, np.isin(_pairs(blocks), shared).tolist()) if not each.fixed]
    texts = {each.text for each in dropped}
    notes.repeated.update(texts)
    spans = {number: list(own) for number, own in groupby(dropped, key=lambda each: each.section)}
    for number, section in enumerate(sections):
        left = _cut(section, spans.get(number, ()), texts)
        yield replace(left, title=_own_title(left.title, set(shared.tolist())))


def _repeated(blocks: Sequence[_Block], pairs: Sequence[bool]) -> Iterator[_Block]:
    """Yield repeated blocks; `pairs` tells of each block and the one before it whether they are repeated."""
    start = 0
    for end in range(1, len(blocks) + 1):
        if end == len(blocks) or not pairs[end]:
            first, last = start == 0 and pairs[0], end == len(blocks) and pairs[end]
            if first or last or end - start >= LONG:
                yield from blocks[start:end]
            start = end


def _own_title(title: str, shared: Collection[int]) -> str:
    """Return a title without repeated parts at its end and its beginning."""
    parts = _BETWEEN.split(title)
    for last in (-1, 0):
        while parts and parts[last] and _hash_of_title(parts[last]) in shared:
            parts = parts[:-2] if last else parts[2:]
    return "".join(parts)


def _cut(section: Section, dropped: Sequence[_Block], texts: Collection[str]) -> Section:
    """Return a section without some blocks, with the same lines and without the blocks as headings."""
    if not dropped:
        return section
    parts, marks, headings, size, at = [], list[tuple[int, int]](), list[HeadingMark](), 0, 0
    kept = []
    for start, end in [*((each.start, each.end + 1) for each in dropped), (len(section.text), 0)]:
        if start > at:
            kept.append((at, start))
        at = max(at, end)
    for start, end in kept:
        offsets = [start, *(offset for offset in _offsets(section) if start < offset < end)]
        marks += zip((size + offset - start for offset in offsets), section.lines(offsets), strict=True)
        for mark in [section.heading(start), *(each for each in section.headings if start < each.offset < end)]:
            path = tuple(each for each in mark.path if each not in texts)
            headings.append(HeadingMark(size + max(mark.offset, start) - start, path, mark.anchor))
        parts.append(section.text[start:end])
        size += end - start
    return replace(section, text="".join(parts), marks=marks, headings=headings if section.headings else ())


def _offsets(section: Section) -> list[int]:
    """Return the offsets at which a line of the file begins in a section."""
    if section.marks is None:
        return [match.end() for match in re.finditer("\n", section.text)]
    return [offset for offset, _ in section.marks]
