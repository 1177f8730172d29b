"""What most pages of a folder share is no content: menus, banners, footers, debug lines, the site's name in titles.

A block is a line of HTML as shown, or a paragraph of another format. Successive blocks are repeated if four in five
pages of a folder have them, and there are at least ten different pages. They are left out at the beginning and the end
of a page, and elsewhere if they are three or more: a heading such as `Note` and a warning below it stay. Subfolders,
formats and languages count for themselves, as sites in one folder and translations have menus of their own.
"""

import os
import pickle
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import chain, groupby, pairwise
from pathlib import PurePosixPath
from tempfile import SpooledTemporaryFile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metasearch.data.formats.blank import blank
from metasearch.data.records import grouped
from metasearch.search.documents.passage import HeadingMark, Notes, Section

LEAST = 10
"""Different pages of a folder below which nothing is known to be repeated."""
SHARE = 0.8
"""Share of the pages: with a half, content in common was lost in folders of 10 to 20 pages of a program's help."""
_IN_MEMORY = 2**25
"""Bytes of sections above which all of them wait on the disk."""
LONG = 3
"""Repeated blocks in the middle of a page that are no content."""
_WHOLE, _HELD = 3, 0.5
"""Pages that a whole manual in one page holds, at least; share of a page's own block pairs that it then has, as the
pairs with the beginning and the end of a page differ."""
_LINE = re.compile(r"[^\n]+")
_PARAGRAPH = re.compile(r"[^\n]+(?:\n[ \t]*[^\s\n][^\n]*)*")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.M)
_BETWEEN = re.compile(r"(\s+[-–—|·•»›:]+\s+)")
"""What stands between a page's title and its site's."""
_ENDS, _QUOTES = tuple(".!?…。！？؟।"), "\"'”’»)]」"
"""Last characters of a sentence."""
_NUMBER = re.compile(r"\d+")
_SAID = np.uint64(0x5851F42D4C957F2D)
"""Marks a pair with a sentence, which has to be on one page."""
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
    kind: str
    """`link` or `footer`: the same block may have another link, or another number."""


class Pages:
    """Pages that wait until all are there: then it is known what most of them share."""

    def __init__(self) -> None:
        self.blocks: dict[str, Blocks] = {}
        self._offsets: dict[str, int] = {}
        """Page → where its text is in the file."""
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._repeated: Mapping[str, Hashes] = {}

    def __contains__(self, file: str) -> bool:
        """Return whether a page waits with its text."""
        return file in self._offsets

    def add(self, file: str, language: str, sections: Sequence[Section], notes: Notes) -> None:
        """Add a page with its text and what was noted about it."""
        stated = next((each.language for each in sections if each.language), language)
        self.blocks[file] = Blocks(stated, _hashes(sections))
        self._offsets[file] = self._file.seek(0, os.SEEK_END)
        pickle.dump((sections, notes), self._file)

    def decide(self) -> None:
        """Compare all pages."""
        self._repeated = _find_repeated(self.blocks)

    def repeated(self, file: str) -> Hashes:
        """Return what a page shares with most others."""
        return self._repeated.get(file, np.zeros(0, np.uint64))

    def describe_whole(self) -> Iterator[str]:
        """Yield a line for each page that holds nearly all of most other pages of its folder in its language."""
        folders = grouped(self.blocks, lambda file: (file.rpartition("/")[0], self.blocks[file].language))
        for files in (files for files in folders.values() if len(files) > _WHOLE):
            sizes = {file: len(self.blocks[file].hashes) - len(self.repeated(file)) for file in files}
            largest = max(files, key=sizes.__getitem__)
            if sizes[largest] < _WHOLE * np.median([*sizes.values()]):
                continue
            held = 0
            for file in {*files} - {largest}:
                own = np.setdiff1d(self.blocks[file].hashes, self.repeated(file), assume_unique=True)
                held += np.isin(own, self.blocks[largest].hashes).sum() > _HELD * len(own)
            if held >= max(_WHOLE, len(files) / 2):
                yield f"'{largest}' has the text of {held:,} pages beside it, which is found twice: index one of both"

    def sections(self, file: str, notes: Notes) -> Iterator[Section]:
        """Yield a page's sections without repeated blocks and parts of the title; the notes count blocks by text."""
        self._file.seek(self._offsets[file])
        sections, own = pickle.load(self._file)  # written above, by this process alone: the file has no name
        notes.include(own)
        if not len(shared := self.repeated(file)):
            yield from sections
            return
        dropped = [each for each in _repeated(_blocks(sections), shared) if not each.fixed]
        texts = {each.text for each in dropped}
        notes.repeated.update(texts)
        spans = {number: list(blocks) for number, blocks in groupby(dropped, key=lambda each: each.section)}
        for number, section in enumerate(sections):
            own_blocks = spans.get(number, [])
            notes.drop("repeated", ((each.text, section.line_at(each.start)) for each in own_blocks))
            left = _cut(section, own_blocks, texts)
            yield replace(left, title=_own_title(left.title, set(shared.tolist())))


def _find_repeated(pages: Mapping[str, Blocks]) -> dict[str, Hashes]:
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
    # Copies of a page, such as in folders of languages that lack it, lose the same blocks.
    copies = grouped(pages, lambda file: (pages[file].language, pages[file].hashes.tobytes())).values()
    parts = ([np.zeros(0, np.uint64), *chain.from_iterable(found.get(file, ()) for file in own)] for own in copies)
    shared = {min(own): np.unique(np.concatenate(each)) for own, each in zip(copies, parts, strict=True)}
    _keep_once(shared)
    return {file: hashes for own in copies if len(hashes := shared[min(own)]) for file in own}


def _keep_once(shared: dict[str, Hashes]) -> None:
    """Remove each sentence from what the first page that has it shares, so that it is found there."""
    done = np.zeros(0, np.uint64)
    for file in sorted(shared):
        own = shared[file]
        said = np.setdiff1d(own[np.isin(own ^ _SAID, own)], done, assume_unique=True)
        shared[file] = np.setdiff1d(own, said, assume_unique=True)
        done = np.union1d(done, said)


def _hashes(sections: Sequence[Section]) -> Hashes:
    titles = [_hash_of_title(part) for each in sections[:1] for part in _BETWEEN.split(each.title)[::2] if part]
    blocks = _blocks(sections)
    pairs = _pairs(blocks)
    ends = [False, *(is_sentence(each.text) for each in blocks), False]
    said = np.array([before or after for before, after in pairwise(ends)], np.bool_)
    alike = _pairs(blocks, alike=True) if any(each.kind for each in blocks) else pairs[:0]
    found = {*pairs.tolist(), *alike.tolist(), *(pairs[said] ^ _SAID).tolist(), *titles}
    return np.array(sorted(found), np.uint64)


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
            text, kind = " ".join(match[0].split()), section.heading(match.start()).kind
            found.append(_Block(number, match.start(), match.end(), text, fixed, kind))
    return found


def _pairs(blocks: Sequence[_Block], alike: bool = False) -> Hashes:
    """Return the hash of each block with the next one, the page's beginning and end included, `(n + 1,)`.

    If `alike`, all links are alike, and so are footers but for their numbers.
    """
    texts = (_alike(each) if alike else each.text for each in blocks)
    hashes = np.array([0, *map(_hash, texts), 0], np.uint64)
    return hashes[:-1] * _FACTOR + hashes[1:]


def is_sentence(text: str) -> bool:
    """Return whether a text ends as a sentence does and has at least five words, or ten characters without spaces."""
    return text.rstrip(_QUOTES).endswith(_ENDS) and (text.count(" ") >= 4 or (len(text) > 10 and " " not in text))


def blocks_of(section: Section) -> list[tuple[str, int]]:
    """Return the text and the line of each block of a section."""
    return [(each.text, section.line_at(each.start)) for each in _blocks([section])]


def _alike(block: _Block) -> str:
    return {"link": "\0link", "footer": _NUMBER.sub("0", block.text)}.get(block.kind, block.text)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def _hash_of_title(part: str) -> int:
    return _hash(f"\0{part}")


def _repeated(blocks: Sequence[_Block], shared: Hashes) -> list[_Block]:
    """Return repeated blocks, in their order; links and footers of parts only beside other repeated blocks."""
    same = np.isin(_pairs(blocks), shared)
    found = dict.fromkeys(chain.from_iterable(_runs(blocks, same.tolist())))
    alike = same | np.isin(_pairs(blocks, alike=True), shared) if any(each.kind for each in blocks) else same
    if (alike != same).any():
        mixed = (run for run in _runs(blocks, alike.tolist()) if any(not each.kind for each in run))
        found |= dict.fromkeys(chain.from_iterable(mixed))
    return sorted(found)


def _runs(blocks: Sequence[_Block], pairs: Sequence[bool]) -> Iterator[Sequence[_Block]]:
    """Yield runs of repeated blocks; `pairs` tells of each block and the one before it whether they are repeated."""
    start = 0
    for end in range(1, len(blocks) + 1):
        if end == len(blocks) or not pairs[end]:
            first, last = start == 0 and pairs[0], end == len(blocks) and pairs[end]
            if first or last or end - start >= LONG:
                yield blocks[start:end]
            start = end


def _own_title(title: str, shared: Collection[int]) -> str:
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
        offsets = [start, *(offset for offset, _ in section.line_marks if start < offset < end)]
        marks += ((size + offset - start, section.line_at(offset)) for offset in offsets)
        for mark in [section.heading(start), *(each for each in section.headings if start < each.offset < end)]:
            path = tuple(each for each in mark.path if each not in texts)
            headings.append(HeadingMark(size + max(mark.offset, start) - start, path, mark.anchor))
        parts.append(section.text[start:end])
        size += end - start
    return replace(section, text="".join(parts), marks=marks, headings=headings if section.headings else ())
