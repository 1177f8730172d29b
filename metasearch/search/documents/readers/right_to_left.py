"""Text of PDF pages in right-to-left scripts, in the order in which it is read.

PDFium turns ligatures and some words round, and mirrors brackets. So the characters of a line are put in the order of
their places, and words and numbers from left to right within them in theirs (UAX 9, simplified).
"""

import re
from collections.abc import Iterator, Sequence
from ctypes import c_double
from itertools import groupby
from math import hypot
from typing import Any, NamedTuple
from unicodedata import bidirectional, combining, normalize

from metasearch.config.extras import import_extra
from metasearch.errors import DataError

RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_FORMS = re.compile("[\ufb1d-\ufdff\ufe70-\ufefc]")
"""Letters in the form in which they are shown; one may stand for two."""
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
_BRACKETS = "()[]{}"
_PAIRS = {")": "(", "]": "[", "}": "{"}
_GAP = 0.2
"""Gap between two words at least, by the size of the font."""
_LETTERS, _NUMBERS = ("L",), ("EN", "AN")
_INSIDE = {"R": ("ES", "CS", "ET"), "AL": ("CS",)}
"""Classes of marks within numbers, in Hebrew and in Arabic."""
_JOINERS = "\u200c\u200d"


class _Glyph(NamedTuple):
    text: str
    left: float
    right: float
    start: float
    """Where it begins on the line, which characters of one sign share."""
    size: float

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2


def read_right_to_left(page: Any) -> str:
    """Return the text of a text page of pypdfium2 line by line."""
    lines = [_with_pairs(_read_line(_place_marks(line))) for line in _lines(page)]
    text = "\n".join("".join(part for part, _ in line) for line in lines)
    # Which of a pair is written depends on the program: an opening one comes first.
    turned = "\n".join("".join(part.translate(_MIRRORED) if turns else part for part, turns in line) for line in lines)
    return turned if _count_pairs(turned) > _count_pairs(text) else text


def _with_pairs(line: Sequence[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Return a line whose two equal brackets, of which PDFium turned one, are a pair."""
    found = list(line)
    for closing, opening in _PAIRS.items():
        places = [i for i, (text, _) in enumerate(found) if text in (opening, closing)]
        if len(places) % 2 == 0 and len({found[i][0] for i in places}) == 1:
            for number, i in enumerate(places):
                found[i] = (opening, closing)[number % 2], False
    return found


def _lines(page: Any) -> Iterator[list[_Glyph]]:
    """Yield the characters of each line, without spaces that have no width."""
    raw = import_extra("pypdfium2", "documents", "a PDF", DataError).raw
    box, matrix, x, y = raw.FS_RECTF(), raw.FS_MATRIX(), c_double(), c_double()
    line, base = list[_Glyph](), 0.0
    for i in range(page.count_chars()):
        text = chr(raw.FPDFText_GetUnicode(page.raw, i))
        raw.FPDFText_GetLooseCharBox(page.raw, i, box)
        if not (text.isprintable() or text in _JOINERS) or (text.isspace() and box.right <= box.left):
            continue
        raw.FPDFText_GetCharOrigin(page.raw, i, x, y)
        raw.FPDFText_GetMatrix(page.raw, i, matrix)
        size = raw.FPDFText_GetFontSize(page.raw, i) * hypot(matrix.c, matrix.d)
        # A sign is above or below its line, and may be the first on it.
        if line and abs(y.value - base) > (size if combining(text) else size / 2):
            yield line
            line = []
        base = base if line and combining(text) else y.value
        text = normalize("NFKC", text) if _FORMS.match(text) else text
        line.append(_Glyph(text, box.left, box.right, x.value, size))
    yield line


def _place_marks(line: Sequence[_Glyph]) -> list[_Glyph]:
    """Return the characters of a line from left to right, each with the signs above or below it."""
    letters, marks = list[_Glyph](), list[_Glyph]()
    for each in line:
        (marks if combining(each.text[0]) else letters).append(each)
    letters.sort(key=lambda each: each.middle)
    shown = [i for i, each in enumerate(letters) if not each.text.isspace()]
    for mark in marks if shown else ():
        near = min(shown, key=lambda i: (letters[i].start != mark.start, abs(letters[i].middle - mark.middle)))
        letters[near] = letters[near]._replace(text=letters[near].text + mark.text)
    # The box of a letter with a sign of its own is around the sign.
    signed = {mark.start: mark for mark in marks}
    for i, each in enumerate(letters):
        if sign := signed.get(each.start):
            right = max(each.right, sign.right, each.start + 0.8 * each.size)
            letters[i] = each._replace(left=min(each.left, sign.left), right=right)
    return letters


def _read_line(glyphs: Sequence[_Glyph]) -> list[tuple[str, bool]]:
    """Return the characters of a line in the order of reading, and whether each is read from right to left."""
    shown: list[str] = []
    for i, each in enumerate(glyphs):
        if (
            i
            and min(each.left, each.start) - glyphs[i - 1].right > _GAP * each.size
            and not {" "} & {*shown[-1], *each.text}
        ):
            shown.append(" ")
        shown.append(each.text)
    letters = [_class(each) for each in shown]
    if sum(kind in _LETTERS for kind in letters) > sum(kind in ("R", "AL") for kind in letters):
        return _from_left(shown)
    return _from_right(shown[::-1])


def _class(text: str) -> str:
    return bidirectional(text[0])


def _from_left(shown: Sequence[str]) -> list[tuple[str, bool]]:
    """Read a line that begins on its left, with words in the other direction."""
    found: list[tuple[str, bool]] = []
    for other, part in groupby(_parts(shown, ("R", "AL"), _LETTERS), key=lambda each: each[1]):
        texts = [text for text, _ in part]
        found += _from_right(texts[::-1]) if other else [(text, False) for text in texts]
    return found


def _from_right(shown: Sequence[str]) -> list[tuple[str, bool]]:
    """Read a line that begins on its right; `shown` is from right to left."""
    found: list[tuple[str, bool]] = []
    marks = _INSIDE["AL" if "AL" in map(_class, shown) else "R"]
    for other, part in groupby(_parts(shown, (*_LETTERS, *_NUMBERS), ("R", "AL")), key=lambda each: each[1]):
        texts = [text for text, _ in part]
        if not other:
            found += ((text, True) for text in texts)
        elif any(_class(text) in _LETTERS for text in texts):
            if found and sum(map(texts.count, _BRACKETS)) % 2 and found[-1][0] in _BRACKETS:
                texts.insert(0, found.pop()[0])
            texts.reverse()
            turned = [text.translate(_MIRRORED) for text in texts]
            right = max(texts, turned, key=lambda each: _count_pairs("".join(each)))
            found += ((text, False) for text in right)
        else:  # numbers, from the right one on
            for number, own in groupby(texts, key=lambda text: _class(text) in (*_NUMBERS, *marks)):
                inner = list(own)
                found += ((text, not number) for text in (reversed(inner) if number else inner))
    return found


def _parts(shown: Sequence[str], inside: Sequence[str], outside: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield characters, and whether each is in a run that begins and ends with the classes `inside`."""
    flags, begun = [False] * len(shown), -1
    for i, text in enumerate(shown):
        if _class(text) in inside:
            begun = i if begun < 0 else begun
            flags[begun : i + 1] = [True] * (i + 1 - begun)
        elif _class(text) in outside:
            begun = -1
    return zip(shown, flags, strict=True)


def _count_pairs(text: str) -> int:
    opened, count = list[str](), 0
    for bracket in filter(_BRACKETS.__contains__, text):
        if bracket not in _PAIRS:
            opened.append(bracket)
        elif opened and opened[-1] == _PAIRS[bracket]:
            opened.pop()
            count += 1
    return count
