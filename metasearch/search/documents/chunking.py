"""Cuts text into passages: few, even ones of whole sentences, as TeX breaks lines (Knuth and Plass 1981).

A last passage of a few words would be near to any short query. Longer sentences are cut between words by
semantic-text-splitter: as Unicode parts them (UAX 29) and, in Thai, Khmer, Lao and Burmese, by a dictionary.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple

from semantic_text_splitter import TextSplitter

from metasearch.data.formats.blank import blank
from metasearch.errors import ConfigError
from metasearch.search.documents.passage import Notes, Section

LONG_TITLE = "titles longer than half a passage, in the first passage alone"

_BLOCK = 8192
"""Characters of a sentence that are cut at a time: the splitter's time grows with their square."""
# A semicolon asks in Greek, and a space ends a phrase in Thai, Lao, Burmese and Khmer.
_STOPS = r".!?…։؟۔।॥።။។៕。！？｡;\u037e "
"""Before one of these, a sentence may end: only there the pattern looks closer, which is three times as fast."""
_SENTENCE = re.compile(
    rf"[^\n][^\n{_STOPS}]*(?:[{_STOPS}][^\n{_STOPS}]*)*?"
    r"(?:(?P<end>[.!?…։؟۔।॥።။។៕][\"'”’»)\]]*(?=\s)(?!\s+[a-z])|[。！？｡][」』”）]*"
    r"|(?<=[\u0370-\u03ff\u1f00-\u1fff])[;\u037e](?=\s)|(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])(?= \S))|$)",
    re.M,
)
_BETWEEN = (0.2, 0.1, 0.0)
"""Cost of a cut in a line, at the end of a line and at the end of a paragraph."""
_UNENDED = 0.3
"""Cost of a cut after a line that ends no sentence, such as a heading."""
_HALF, _CODE, _INSIDE, _GLUED = 1.0, 1.0, 2.0, 1.0
"""Cost of a passage below half the limit, of a cut in a block of code, in a sentence, and there without a space."""
_WORDS = 2**16
_LONGEST = 32
"""Characters of a word that is remembered."""
_BLANKS = re.compile(r"(?:\s*\n)?")
_WORD = re.compile(r"[^\W_]+")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_LINE = 200
"""Characters of a text's beginning in which a title is searched, besides twice its own."""

OTHER_COLUMNS = ("title", "language")
"""Columns of a row that belong to its text; all others are further fields."""


@dataclass(frozen=True)
class Settings:
    """How documents become passages; see also `metasearch.search.settings.IndexSettings`."""

    limit: int = 1000
    """Length of the longest passage, with its title."""
    lengths: Callable[[Sequence[str]], Sequence[int]] | None = None
    """Count the tokens of texts; None takes characters in place of tokens."""
    overlap: int = 0
    column: str = "text"
    titles: bool = True
    names: bool = True
    language: str | None = None
    detect: Callable[[str], str] | None = None
    detectable: frozenset[str] = frozenset()
    """Languages that `detect` chooses from; a text labelled with another language keeps its label."""
    keep_repeated: bool = False
    """Whether menus, footers and other text that most pages share is kept."""
    translations: str | None = None
    """Tell translations by `path`, by `hreflang` or by nothing, `none`; None takes both."""
    detect_always: bool = False
    """Whether the detected language overrides labels and names."""

    def length(self, text: str) -> int:
        """Return the length of a text."""
        return self.lengths([text])[0] if self.lengths else len(text)

    @cached_property
    def estimate(self) -> Callable[[str], int]:
        """Count a text word by word, and added special tokens once: that is faster, and may differ from `length`."""
        lengths = self.lengths or (lambda texts: list(map(len, texts)))
        (added,) = lengths([""])
        known = dict[str, int]()

        def estimate(text: str) -> int:
            words = text.split()
            if new := list(dict.fromkeys(word for word in words if word not in known)):
                known.update(zip(new, lengths(new), strict=True))
            found = added + sum(known[word] - added for word in words)
            for word in new:
                if len(word) > _LONGEST:
                    del known[word]
            if len(known) > _WORDS:
                known.clear()
            return found

        return estimate


class _Unit(NamedTuple):
    """A sentence, or a part of a longer one."""

    start: int
    end: int
    low: int
    """Length of the text before it."""
    high: int
    """Length of the text up to its end."""
    cost: float
    """Cost of a cut before it."""


class Chunker:
    """Cuts sections into passages."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.size = max(_BLOCK, 8 * settings.limit)
        self._characters = settings.lengths is None
        self._length = len if self._characters else settings.estimate

    def cut(self, section: Section, notes: Notes) -> Iterator[tuple[int, str]]:
        """Yield the passages in a section in order, each with its offset.

        The title stands before each; before the first only if the text does not begin with it.
        """
        title = f"{section.title}\n" if section.title and self.settings.titles else ""
        first = "" if _begins_with_title(section) else title
        text, shift = section.text, 0
        if title and 2 * self._length(title) > self.settings.limit:
            notes.counts[LONG_TITLE] += 1
            text, shift, first, title = first + text, len(first), "", ""
        heads = {offset + shift for offset in section.heading_offsets}
        units = list(self._units(text, heads, section.markdown, self._room(title)))
        below = bisect_left(units, shift, key=lambda unit: unit.start)
        if 0 < below < len(units):  # No passage is a title alone.
            units[below] = units[below]._replace(cost=_INSIDE)
        for number, (start, end) in enumerate(self._spans(units, self._room(first), self._room(title))):
            before = title if number else first
            for inner, part in self._fitting(text[start:end], before):
                blanks = _BLANKS.match(part).end()  # type: ignore[union-attr]
                shown = part[blanks:].rstrip()
                # A fence or a rule of Markdown alone shows nothing.
                if any(map(str.isalnum, shown)) if section.markdown else not blank(shown):
                    yield max(0, start + inner + blanks - shift), before + shown

    def _room(self, title: str) -> int:
        return max(1, self.settings.limit - self._length(title))

    def _units(self, text: str, heads: Collection[int], markdown: bool, room: int) -> Iterator[_Unit]:
        high, last, ended, heading, code = 0, 0, True, False, False
        for start, end, length, ends in self._parts(text, markdown, max(1, room // 4)):
            breaks = text.count("\n", last, start)
            cost = 0.0 if ended else _UNENDED if breaks else _INSIDE + _GLUED * (start == last)
            cost = _CODE if code else cost + _BETWEEN[min(2, breaks)]
            code ^= markdown and bool(_FENCE.match(text, start))
            low = start if self._characters else high
            heading = start in heads or (heading and not breaks)
            last, high, ended = end, low + length, ends and not heading
            yield _Unit(start, end, low, high, cost)

    def _parts(self, text: str, markdown: bool, most: int) -> Iterator[tuple[int, int, int, bool]]:
        """Yield offsets and length of each sentence, or of its parts, and whether the sentence ends there."""
        added, split = self._length(""), None
        sentences = list(_SENTENCE.finditer(text))
        if not self._characters:  # all their words in one call of the tokenizer
            self._length(" ".join(sentence[0] for sentence in sentences))
        for sentence in sentences:
            (start, _), written, ends = sentence.span(), sentence[0], sentence["end"] is not None
            end = start + len(written.rstrip())
            # The indentation of a line counts in Markdown.
            if not (markdown and text[start - 1 : start] in ("", "\n")):
                start += len(written) - len(written.lstrip())
            length = end - start if self._characters else self._length(text[start:end]) - added
            if length <= most:
                if start < end:
                    yield start, end, length, ends
                continue
            split = split or self._splitter(most, added)
            while start < end:
                block = text[start : min(end, end_of_block(text, start, self.size))]
                for at, part in split.chunk_indices(block):
                    last = start + at + len(part)
                    yield start + at, last, self._length(part) - added, ends and last == end
                start += len(block)

    def _splitter(self, most: int, added: int) -> TextSplitter:
        # It counts characters ten times as fast itself.
        return TextSplitter(most) if self._characters else TextSplitter.from_callback(self._length, most + added)

    def _spans(self, units: Sequence[_Unit], first: int, room: int) -> list[tuple[int, int]]:
        """Return first and last offsets of the passages, with the least sum of squared gaps and costs of cuts.

        Args:
            units: sentences and their parts.
            first: length of the longest first passage.
            room: length of the longest other passage.
        """
        starts = self._starts(units)
        lows = [unit.low for unit in starts]
        best, begins = [0.0], list[int]()
        for end, unit in enumerate(units):
            least, chosen, high = inf, end, unit.high
            for begin in range(end, -1, -1):
                size, most = high - lows[begin], room if begin else first
                if begin < end and size > first:
                    break
                cost = best[begin] + (1 - size / most) ** 2 + (_HALF if 2 * size < most else 0)
                if cost < least and (begin == end or size <= most):
                    least, chosen = cost, begin
            best.append(least + (units[end + 1].cost if end + 1 < len(units) else 0))
            begins.append(chosen)
        spans, end = [], len(units)
        while end:
            begin = begins[end - 1]
            spans.append((starts[begin].start, units[end - 1].end))
            end = begin
        return spans[::-1]

    def _starts(self, units: Sequence[_Unit]) -> Sequence[_Unit]:
        """Return where a passage starts that continues with a unit: with the sentences before it that may overlap."""
        if not self.settings.overlap:
            return units
        starts = list(units[:1])
        for number in range(1, len(units)):
            start = number
            for before in range(number - 1, -1, -1):
                if units[number - 1].high - units[before].low > self.settings.overlap:
                    break
                if units[before].cost < _INSIDE:
                    start = before
            starts.append(units[start])
        return starts

    def _fitting(self, piece: str, title: str) -> Iterator[tuple[int, str]]:
        """Yield a piece, or its halves if it is too long: its length was an estimate."""
        if (length := self.settings.length(title + piece)) <= self.settings.limit:
            yield 0, piece
            return
        if len(piece) == 1:
            raise ConfigError(
                f"passages: limit: {self.settings.limit} is below the length of '{piece}', {length}; raise it"
            )
        middle = len(piece) // 2
        space = max(piece.rfind(" ", 0, middle), piece.rfind("\n", 0, middle)) + 1
        for start, end in ((0, space or middle), (space or middle, len(piece))):
            for inner, part in self._fitting(piece[start:end], title):
                yield start + inner, part


def _begins_with_title(section: Section) -> bool:
    """Return whether a text begins with its title: in its first line, or as a heading that the title contains.

    A number may stand before the heading, and the name of the site around it in the title.
    """
    text = section.text[: 2 * len(section.title) + _LINE].lstrip()
    line, title, *heading = (
        " ".join(_WORD.findall(each.casefold()))
        for each in (text.partition("\n")[0], section.title, *section.heading(0).path[-1:])
    )
    starts = f"{line} ".startswith(f"{title} ") or line.endswith(title)
    return bool(title) and (starts or (line in heading and f" {line} " in f" {title} "))


# Parts a long text where it is least felt, so that neither memory nor time grows with a document's length.

_LAST_SENTENCE = re.compile(r".*(?:[.!?…؟।](?=\s)|[。！？])", re.S)
_LAST_SPACE = re.compile(r".*(?=\s)", re.S)


def end_of_block(text: str, start: int, size: int) -> int:
    """Return where a block that begins at `start` ends, at most `size` characters on.

    That is after the last paragraph of the second half, else after its last line, sentence or word, else anywhere.
    """
    if len(text) - start <= size:
        return len(text)
    middle, last = start + size // 2, start + size
    for mark in ("\n\n", "\n"):
        found = text.rfind(mark, middle, last)
        if found >= 0:
            return found + len(mark)
    for pattern in (_LAST_SENTENCE, _LAST_SPACE):
        if match := pattern.match(text, middle, last):
            return match.end()
    return last
