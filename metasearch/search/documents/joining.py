"""Joins labels to the pages that they mean: by path, address, id, or text.

A label of a help centre or of a click log names the page that answers a query, or quotes it. Its relevant documents
are then the passages of the page, as the index has them.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from metasearch.data.formats.documents import LONGEST, format_of, is_address, is_path
from metasearch.data.formats.text_files import EXAMPLES, unpacked
from metasearch.data.overlap import LEAST, key
from metasearch.search.documents.passage import Passage

How = Literal["path", "address", "id", "text", "words", ""]
_LEAST_WORDS = 5
"""Different words of a text from which having the same ones says something."""
_SAME = 0.9
"""Share of a text's words that a passage with the same words has at least."""
_MEANT = 0.5
"""Share of such a passage's words that the text has at least."""
_ALIKE = 0.75
"""How similar names of files have to be where their folders are not (0 to 1)."""
_RAREST = 8
"""Words by which texts with the same words are looked up."""
_WORD = re.compile(r"\w+")
_SHOWN = 60
_ID_FIELD = "id"
_INDEX = "index"
"""Name of the file that a server sends for a folder."""


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
        nearest: of the first labels that were not joined, the page with the most similar name or words; or empty.
    """

    place: str
    named: str
    files: tuple[str, ...] = ()
    passages: tuple[int, ...] = ()
    how: How = ""
    nearest: str = ""


def join(
    labels: Iterable[tuple[str, str]], passages: Sequence[Passage], folders: Sequence[str | Path] = ()
) -> list[Joined]:
    """Return what each label means, in their order.

    Args:
        labels: the place of each, and the path, address, id or text that it has.
        passages: all passages of the documents, in their order.
        folders: files and folders of the documents as they were named; paths may be relative to them.

    Example:
        >>> pages = [Passage("Print the label.", "site/returns.html", 1)]
        >>> join([("row 1", "https://example.org/returns")], pages, ["site"])[0].files
        ('site/returns.html',)
    """
    rows = list(labels)
    names = _PageNames(passages, folders)
    found: dict[str, tuple[Sequence[int], How]] = {}
    for named in dict.fromkeys(named for _, named in rows):
        if match := names.find(named):
            found[named] = match
    texts = [each for each in dict.fromkeys(named for _, named in rows) if each not in found and not _is_name(each)]
    found |= {named: (held, "text") for named, held in _find_texts(texts, passages).items()}
    words = _Words(passages if len(found) < len({named for _, named in rows}) else ())
    for named in texts:
        if named not in found and (same := words.find(named)):
            found[named] = same, "words"
    left = [named for named in dict.fromkeys(named for _, named in rows) if named not in found][:EXAMPLES]
    nearest = {each: _nearest_name(each, names) if _is_name(each) else words.nearest(each) for each in left}
    return [_joined(place, named, found, nearest, passages) for place, named in rows]


def _is_name(text: str) -> bool:
    return is_address(text) or is_path(text)


def _joined(
    place: str,
    named: str,
    found: Mapping[str, tuple[Sequence[int], How]],
    nearest: Mapping[str, str],
    passages: Sequence[Passage],
) -> Joined:
    if named not in found:
        return Joined(place, named, nearest=nearest.get(named, ""))
    held, how = found[named]
    return Joined(place, named, tuple(dict.fromkeys(passages[i].file for i in held)), tuple(held), how)


def describe(joined: Sequence[Joined]) -> str:
    """Return a line: how many labels were joined by what, and the first of those that were not.

    Example:
        >>> describe([Joined("row 1", "a.md", ("a.md",), (0,), "path"), Joined("row 2", "b.md", nearest="a.md")])
        "joined to pages: 1 of 2 labels (path 1); not joined: 1: row 2 'b.md' (nearest: a.md)"
    """
    counts = Counter(each.how for each in joined if each.how)
    by = ", ".join(f"{_NAMES.get(how, how)} {count}" for how, count in counts.most_common())
    line = f"joined to pages: {counts.total()} of {len(joined)} labels" + (f" ({by})" if by else "")
    if not (left := [each for each in joined if not each.how]):
        return line
    hints = (f" (nearest: {each.nearest})" if each.nearest else "" for each in left[:EXAMPLES])
    first = [f"{each.place} '{_shortened(each.named)}'{hint}" for each, hint in zip(left, hints, strict=False)]
    return f"{line}; not joined: {len(left)}: {', '.join(first)}" + ", ..." * (len(left) > EXAMPLES)


_NAMES: Mapping[str, str] = {"words": "the same words"}


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."


def _nearest_name(named: str, names: "_PageNames") -> str:
    """Return the path from its folder of the page with the most similar name."""
    tail = "/".join(named.rstrip("/").split("/")[-2:])
    known = {relative: None for relative, _ in names.short.values()}
    last = {Path(relative).name: relative for relative in known}
    close = get_close_matches(named, known, n=1) or get_close_matches(tail, known, n=1)
    return (close or [last[each] for each in get_close_matches(Path(named).name, last, 1, _ALIKE)] or [""])[0]


# Quoted texts.


def _find_texts(texts: Sequence[str], passages: Sequence[Passage]) -> dict[str, list[int]]:
    """Return the passages of each text that is in a page, also across passages, or that holds whole passages.

    Letters and digits alone are compared, without case. Short texts have to be a passage or its text below the title.
    """
    keys = {text: key(text) for text in texts}
    whole: dict[str, list[str]] = {}
    heads: dict[str, list[str]] = {}
    for text, short in keys.items():
        whole.setdefault(short, []).append(text)
        if len(short) >= LEAST:
            heads.setdefault(short[:LEAST], []).append(text)
    parts = {hash(short[i : i + LEAST]) for short in keys.values() for i in range(len(short) - LEAST + 1)}
    found: dict[str, set[int]] = {}
    for indices, bodies in _pages(passages):
        for i, body in zip(indices, bodies, strict=True):
            texts_of = [*whole.get(key(passages[i].text), ()), *whole.get(body, ())] if body else []
            if len(body) >= LEAST and hash(body[:LEAST]) in parts:
                texts_of += [text for text, short in keys.items() if body in short]
            for text in texts_of:
                found.setdefault(text, set()).add(i)
        page, ends = "".join(bodies), list(accumulate(map(len, bodies)))
        for at in range(len(page) - LEAST + 1) if heads else ():
            for text in heads.get(page[at : at + LEAST], ()):
                if page.startswith(keys[text], at):
                    inside = _overlapping(ends, at, at + len(keys[text]))
                    found.setdefault(text, set()).update(indices[i] for i in inside)
    return {text: sorted(held) for text, held in found.items()}


def _overlapping(ends: Sequence[int], start: int, end: int) -> list[int]:
    """Return the numbers of parts, given where each ends, that share a character with a range."""
    return [i for i, last in enumerate(ends) if last > start and (ends[i - 1] if i else 0) < end]


def _pages(passages: Sequence[Passage]) -> Iterable[tuple[list[int], list[str]]]:
    """Yield the indices of each file's passages, and their keys; a title that all begin with counts in the first."""
    files: dict[str, list[int]] = {}
    for i, passage in enumerate(passages):
        files.setdefault(passage.file, []).append(i)
    for indices in files.values():
        firsts = {passages[i].text.partition("\n")[0] for i in indices}
        titled = len(firsts) == 1 and len(indices) > 1
        texts = [passages[i].text.partition("\n")[2] if titled else passages[i].text for i in indices]
        yield indices, list(map(key, texts))


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


# What pages are called: paths, addresses, and ids of rows, each with the file and the passages that it means.


class _Match(NamedTuple):
    """The indices of the passages behind a name, and the kind of the name."""

    passages: tuple[int, ...]
    how: Literal["path", "address", "id"]


class _PageNames:
    """Finds pages by name.

    A path may be relative to one of the `folders`, begin with the folder's own name, or be absolute; a tail of it will
    do if one file alone ends so. The file's suffix may be missing. An address means the file whose path is the longest
    tail of its own; parameters count only where a file has them in its name. An id is the field `id` of a row.
    """

    def __init__(self, passages: Sequence[Passage], folders: Sequence[str | Path]) -> None:
        self._ids: dict[str, list[int]] = {}
        self.files: dict[str, list[int]] = {}
        """Path of a document that is no table → its passages."""
        for i, passage in enumerate(passages):
            if _ID_FIELD in passage.fields:
                self._ids.setdefault(str(passage.fields[_ID_FIELD]), []).append(i)
            if (found := format_of(passage.file)) is None or found.holds != "rows":
                self.files.setdefault(passage.file, []).append(i)
        self.short = {file: _relative(file, folders) for file in self.files}
        """Path of a document → its path from a folder that was named."""
        self._whole: dict[str, set[str]] = {}
        self._tails: dict[str, set[str]] = {}
        for file, (relative, folder) in self.short.items():
            for name in {*_spellings(relative), *_spellings(f"{folder}/{relative}"), *_spellings(file)}:
                self._whole.setdefault(name, set()).add(file)
            for spelling in _spellings(relative):
                parts = spelling.split("/")
                for i in range(1, len(parts)):
                    self._tails.setdefault("/".join(parts[i:]), set()).add(file)

    def find(self, name: str) -> _Match | None:
        """Return what a name means; None if nothing, or several files."""
        name = unicodedata.normalize("NFC", name.strip())
        if len(name) <= LONGEST and "\n" not in name:
            if is_address(name):
                file = next(filter(None, map(self._find_address, _paths_of(name))), None)
            else:
                file = self._find_path(name)
            if file:
                return _Match(tuple(self.files[file]), "address" if is_address(name) else "path")
        return _Match(tuple(self._ids[name]), "id") if name in self._ids else None

    def _find_path(self, name: str) -> str | None:
        path = name.replace("\\", "/").partition("#")[0].removeprefix("./").rstrip("/")
        found = _only(self._whole, path)
        # A text of one word may be the name of a page without being meant as one.
        return found or (_only(self._tails, path) if "/" in path or is_path(path) else None)

    def _find_address(self, path: str) -> str | None:
        parts = path.split("/")
        for i in range(len(parts)):
            if found := _only(self._whole, "/".join(parts[i:])):
                return found
        return _only(self._tails, "/".join(parts[1:]))


def _only(files: Mapping[str, set[str]], key: str) -> str | None:
    """Return the one file of a key."""
    found = files.get(key, ())
    return next(iter(found)) if len(found) == 1 else None


def _relative(file: str, folders: Sequence[str | Path]) -> tuple[str, str]:
    """Return a file's path from the deepest folder that holds it, and the folder's name."""
    for folder in sorted((Path(each).as_posix() for each in folders), key=len, reverse=True):
        if file.startswith(f"{folder}/"):
            return file[len(folder) + 1 :], Path(folder).absolute().name
    return Path(file).name, Path(file).absolute().parent.name


def _spellings(path: str) -> Iterator[str]:
    """Yield a path with and without its suffix, and for a folder's index the folder."""
    path = unicodedata.normalize("NFC", path)
    yield path
    if format_of(path):
        bare = unpacked(path).rpartition(".")[0]
        yield bare
        folder, _, name = bare.rpartition("/")
        if name == _INDEX and folder:
            yield folder


def _paths_of(address: str) -> Iterator[str]:
    """Yield the path of an address behind its host, with its parameters and without."""
    try:
        parts = urlsplit(address)
    except ValueError:  # such as a bracket in the host
        return
    path = unicodedata.normalize("NFC", f"{parts.netloc}{unquote(parts.path)}").rstrip("/")
    if parts.query:
        yield f"{path}?{parts.query}"
    yield path
