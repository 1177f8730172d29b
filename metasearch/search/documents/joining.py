"""Joins labels to the pages that they mean: by path, address, id, or text.

A label of a help centre or of a click log names the page that answers a query, or quotes it. Its relevant documents
are then the passages of the page, as the index has them.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from heapq import nlargest
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal

from metasearch.data.formats.blank import comparison_key
from metasearch.data.formats.documents import is_path
from metasearch.data.formats.text_files import EXAMPLES
from metasearch.data.records import grouped
from metasearch.search.documents.addresses import Match, PageNames
from metasearch.search.documents.passage import Passage

How = Literal["path", "address", "id", "text", "words", ""]
_LEAST = 25
"""Characters of a comparison key from which being a part of another one says something."""
_LEAST_WORDS = 5
"""Different words of a text from which having the same ones says something."""
_SAME = 0.9
"""Share of a text's words that a passage with the same words has at least."""
_MEANT = 0.5
"""Share of such a passage's words that the text has at least."""
_ALIKE = 0.75
"""How similar names of files have to be where their folders are not (0 to 1)."""
_COMPARED = 1000
"""Names of files that are compared letter by letter: the ones with most pairs of letters of a name at their end."""
_RAREST = 8
"""Words by which texts with the same words are looked up."""
_WORD = re.compile(r"\w+")
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Joined:
    """A label, and the page that it means.

    Attributes:
        place: where the label stands, such as `labels.csv:3`.
        named: what it says: a path, an address, an id or a text.
        files: the files that it means, as the passages name them; several where a text is in several; none if it
            is not joined.
        passages: indices of the passages that it means, ascending: all of a page that is named, and those that a
            quoted text is in, or that are in it.
        how: by what it was joined; empty if it was not.
        base: of an address, such as `https://example.org/help/ is help/`.
        reason: why a name means no page.
        nearest: of the first labels that were not joined, the page with the most similar name or words; or empty.
    """

    place: str
    named: str
    files: tuple[str, ...] = ()
    passages: tuple[int, ...] = ()
    how: How = ""
    base: str = ""
    reason: str = ""
    nearest: str = ""


def join(
    labels: Iterable[tuple[str, str]], passages: Sequence[Passage], folders: Sequence[str | Path] = (),
    bases: Sequence[str] = (),
) -> list[Joined]:  # fmt: skip
    """Return what each label means, in their order.

    Args:
        labels: the place of each, and the path, address, id or text that it has.
        passages: all passages of the documents, in their order.
        folders: files and folders of the documents as they were named; paths may be relative to them.
        bases: addresses that stand for a folder; see `PageNames`.

    Example:
        >>> pages = [Passage("Print the label.", "site/returns.html", 1)]
        >>> join([("row 1", "https://example.org/returns")], pages, ["site"])[0].files
        ('site/returns.html',)
    """
    rows = list(labels)
    distinct = dict.fromkeys(named for _, named in rows)
    names = PageNames(passages, folders, distinct, bases)
    found = {named: names.find(named) for named in distinct}
    texts = [named for named, match in found.items() if not match.how and not match.reason and not is_path(named)]
    held: dict[str, tuple[Sequence[int], How]] = {}
    held |= {text: (own, "text") for text, own in _find_texts(texts, passages if texts else ()).items()}
    words = _Words(passages if len(held) < len(texts) else ())
    held |= {text: (same, "words") for text in texts if text not in held and (same := words.find(text))}
    lost = [named for named, match in found.items() if not match.how and named not in held][:EXAMPLES]
    nearest = {each: words.nearest(each) if each in texts else _nearest_name(each, names) for each in lost}
    return [_joined(place, named, found[named], held.get(named), nearest, passages) for place, named in rows]


def _joined(
    place: str, named: str, match: Match, held: tuple[Sequence[int], How] | None, nearest: Mapping[str, str],
    passages: Sequence[Passage],
) -> Joined:  # fmt: skip
    own, how = held or (match.passages, match.how)
    files = tuple(dict.fromkeys(passages[i].file for i in own))
    reason = "" if how else match.reason or "no such page" * is_path(named)
    return Joined(place, named, files, tuple(own), how, match.base, reason, nearest.get(named, ""))


def describe(joined: Sequence[Joined]) -> str:
    """Return a line: how many labels were joined by what, their bases, and the first labels that were not joined.

    Example:
        >>> describe([Joined("row 1", "a.md", ("a.md",), (0,), "path"), Joined("row 2", "b.md", nearest="a.md")])
        "joined to pages: 1 of 2 labels (path 1); not joined: 1: row 2 'b.md' (nearest: a.md)"
    """
    counts = Counter(each.how for each in joined if each.how)
    by = ", ".join(f"{_NAMES.get(how, how)} {count}" for how, count in counts.most_common())
    line = f"joined to pages: {counts.total()} of {len(joined)} labels" + (f" ({by})" if by else "")
    line += "".join(f"; {base}" for base in dict.fromkeys(each.base for each in joined if each.base))
    if not (left := [each for each in joined if not each.how]):
        return line
    first = [f"{each.place} '{shortened(each.named)}'" + _hint(each) for each in left[:EXAMPLES]]
    return f"{line}; not joined: {len(left)}: {', '.join(first)}" + ", ..." * (len(left) > EXAMPLES)


_NAMES: Mapping[str, str] = {"words": "the same words"}


def _hint(label: Joined) -> str:
    said = [label.reason, f"nearest: {label.nearest}" * bool(label.nearest)]
    return f" ({'; '.join(filter(None, said))})" if any(said) else ""


def shortened(text: str) -> str:
    """Return the beginning of a text, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."


def _nearest_name(named: str, names: PageNames) -> str:
    tail = "/".join(named.rstrip("/").split("/")[-2:])
    known = {relative: None for relative, _ in names.short.values()}
    if len(known) > _COMPARED:
        pairs = set(pairwise(tail.casefold()))
        known = dict.fromkeys(nlargest(_COMPARED, known, key=lambda each: len(pairs & {*pairwise(each[-len(tail) :])})))
    last = {Path(relative).name: relative for relative in known}
    close = get_close_matches(named, known, n=1) or get_close_matches(tail, known, n=1)
    return (close or [last[each] for each in get_close_matches(Path(named).name, last, 1, _ALIKE)] or [""])[0]


# Quoted texts.


def _find_texts(texts: Sequence[str], passages: Sequence[Passage]) -> dict[str, list[int]]:
    """Return the passages of each text that is in a page, also across passages, or that holds whole passages.

    Letters and digits alone are compared, without case. Short texts have to be a passage or its text below the title.
    """
    keys = {text: comparison_key(text) for text in texts}
    whole: dict[str, list[str]] = {}
    heads: dict[str, list[str]] = {}
    for text, short in keys.items():
        whole.setdefault(short, []).append(text)
        if len(short) >= _LEAST:
            heads.setdefault(short[:_LEAST], []).append(text)
    parts = {hash(short[i : i + _LEAST]) for short in keys.values() for i in range(len(short) - _LEAST + 1)}
    found: dict[str, set[int]] = {}
    for indices, bodies in _pages(passages):
        for i, body in zip(indices, bodies, strict=True):
            texts_of = [*whole.get(comparison_key(passages[i].text), ()), *whole.get(body, ())] if body else []
            if len(body) >= _LEAST and hash(body[:_LEAST]) in parts:
                texts_of += [text for text, short in keys.items() if body in short]
            for text in texts_of:
                found.setdefault(text, set()).add(i)
        page, ends = "".join(bodies), list(accumulate(map(len, bodies)))
        for at in range(len(page) - _LEAST + 1) if heads else ():
            for text in heads.get(page[at : at + _LEAST], ()):
                if page.startswith(keys[text], at):
                    inside = _overlapping(ends, at, at + len(keys[text]))
                    found.setdefault(text, set()).update(indices[i] for i in inside)
    return {text: sorted(held) for text, held in found.items()}


def _overlapping(ends: Sequence[int], start: int, end: int) -> list[int]:
    """Return the numbers of parts, given where each ends, that share a character with a range."""
    return [i for i, last in enumerate(ends) if last > start and (ends[i - 1] if i else 0) < end]


def _pages(passages: Sequence[Passage]) -> Iterable[tuple[Sequence[int], list[str]]]:
    """Yield the indices of each file's passages, and their keys; a title that all begin with counts in the first."""
    for indices in grouped(range(len(passages)), lambda i: passages[i].file).values():
        firsts = {passages[i].text.partition("\n")[0] for i in indices}
        titled = len(firsts) == 1 and len(indices) > 1
        texts = [passages[i].text.partition("\n")[2] if titled else passages[i].text for i in indices]
        yield indices, list(map(comparison_key, texts))


def _words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


class _Words:
    """Finds passages by their words."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._words = [_words_of(passage.text) for passage in passages]
        self._holders: dict[str, list[int]] = {}
        for i, words in enumerate(self._words):
            for word in words:
                self._holders.setdefault(word, []).append(i)

    def find(self, text: str) -> list[int]:
        """Return the passages that have nearly all words of a text, and not twice as many, if it has enough."""
        words = _words_of(text)
        if len(words) < _LEAST_WORDS:
            return []
        near = ((i, self._words[i]) for i in sorted(self._near(words)))
        return [i for i, own in near if len(words & own) >= max(_SAME * len(words), _MEANT * len(own))]

    def nearest(self, text: str) -> str:
        """Return the file and the line of the passage with the most of a text's rarest words; or nothing."""
        counts = self._near(_words_of(text)).most_common(1)
        return "".join(f"{self._passages[i].file}:{self._passages[i].line}" for i, _ in counts)

    def _near(self, words: frozenset[str]) -> Counter[int]:
        known = sorted(words & self._holders.keys(), key=lambda word: (len(self._holders[word]), word))
        return Counter(i for word in known[:_RAREST] for i in self._holders[word])
