"""Pages by path, address and id. An address means the page at its path below the base, and no other page.

The base is an address that stands for a folder, such as "https://example.org/help/ is help/": the one below which most
pages have an address, or the one that the user gives. `a.md` is `a`, `a.html` and `a/`. A folder is its `index.md`,
`_index.md` or `README.md`. A language (`/de/a`, `de.example.org/a`, `a?lang=de`) means the translation, `a.de.md` or
`de/a.md`. A route in the fragment (`help/#/a`) or in a parameter whose values are mostly pages is a part of the path.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote

from metasearch.config.languages import parse_name, primary_language
from metasearch.data.addresses import LONGEST, Address, parse_address, tidy_path
from metasearch.data.formats.documents import formats, is_address, is_path
from metasearch.data.formats.text_files import some, unpacked
from metasearch.errors import ConfigError
from metasearch.search.documents.languages import find_path_language, path_without_language
from metasearch.search.documents.passage import Passage

_INDEXES = ("index", "_index", "readme")
"""Names of a folder's page, in lower case; the first that exists is the page."""
_BUILT = re.compile(r"\.(?:x?html|htm|php|md|markdown|mdx)$", re.I)
"""Suffixes that one page may have in its file and in its address."""
_LANGUAGE = ("hl", "lang", "language", "locale")
"""Parameters with a language."""
_SAMPLE, _TRIED = 500, 20
"""Addresses from which a base is found, and bases that are compared."""
_ALIKE = 8
"""Files whose paths end alike, above which the end says nothing about a base."""


class Base(NamedTuple):
    """An address without scheme, and the folder that it stands for, with the name of the documents' folder first."""

    address: str
    folder: str

    def __str__(self) -> str:
        return f"{self.shown} is {self.folder or '.'}/"

    @property
    def shown(self) -> str:
        """The address with its scheme."""
        return f"https://{self.address}/" if self.address[:1] not in ("", "/") else f"{self.address}/"


class Match(NamedTuple):
    """The indices of the passages behind a name, the kind of the name and its base, or a reason to have no page."""

    passages: tuple[int, ...] = ()
    how: Literal["path", "address", "id", ""] = ""
    base: str = ""
    reason: str = ""


class _File(NamedTuple):
    """A document: its path, the path from the name of the documents' folder on, and this in canonical form."""

    path: str
    key: str
    name: str


class PageNames:
    """Finds pages by name.

    A path may be relative to one of the `folders`, begin with the folder's own name, or be absolute. A tail of it will
    do if one file alone ends so. The file's suffix may be missing. An id is the field `id` of a row.

    Args:
        passages: of all documents.
        folders: files and folders of the documents as they were named.
        names: all names, from which bases are found: one for addresses, and one for paths that begin with a slash.
        bases: instead of the base for addresses; each is `ADDRESS` or `ADDRESS=FOLDER`.

    Raises:
        ConfigError: the folder of a base has no document.
    """

    def __init__(
        self, passages: Sequence[Passage], folders: Sequence[str | Path], names: Iterable[str], bases: Sequence[str]
    ) -> None:
        self._passages, self._tags = passages, dict[str, str]()
        self._ids, self._files = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
        self._ends = defaultdict[str, list[_File]](list)
        """End of a path in canonical form → the files whose paths end so."""
        self._translations = defaultdict[tuple[str, str], list[_File]](list)
        """Path in canonical form without its language, and the language → files."""
        for i, passage in enumerate(passages):
            if "id" in passage.fields:
                self._ids[str(passage.fields["id"])].append(i)
            self._files[passage.file].append(i)
        rows = tuple(suffix for suffix, each in formats().items() if each.holds == "rows")
        for file in [file for file in self._files if unpacked(file.lower()).endswith(rows)]:
            del self._files[file]
        named = {Path(each).as_posix(): Path(each).absolute().name for each in folders}
        roots = sorted(named.items(), key=lambda item: len(item[0]), reverse=True)
        self.short = {path: _relative(path, roots) for path in self._files}
        """Path of a document → its path from the folder that was named, and the name of this folder."""
        for path, (relative, root) in self.short.items():
            key = tidy_path(f"{root}/{relative}")
            # A mirror may have percent-encoded names.
            self._add(_File(path, key, _plain(tidy_path(unquote(key)))), passages[self._files[path][0]].language)
        self._languages = {tag for _, tag in self._translations}
        rooted = list(dict.fromkeys(parse_address(name) for name in names if _is_rooted(name)))
        parts = {kind: [each for each in rooted if bool(each.host) == kind] for kind in (True, False)}
        samples = {kind: own[:: max(1, len(own) // _SAMPLE)] for kind, own in parts.items()}
        self._routes = self._find_routes([*samples[True], *samples[False]])
        self._bases = {kind: self._find_base(sample) for kind, sample in samples.items()}
        if bases:
            self._bases[True] = [self._read_base(base, samples[True]) for base in bases]

    def _add(self, file: _File, language: str) -> None:
        stem, dot, suffix = unpacked(file.name).rpartition(".")
        for end in {*_ends(file.name), *_ends(stem if dot + suffix.lower() in formats() else file.name)}:
            self._ends[end].append(file)
        tag = find_path_language(file.key) or language
        for each in {tag, primary_language(tag)}:
            self._translations[_bare(file.key), each].append(file)

    def find(self, name: str) -> Match:
        """Return what a name means."""
        name = name.strip()
        if not name or len(name) > LONGEST or "\n" in name:
            return Match()
        if name in self._files:
            return Match(tuple(self._files[name]), "path")
        if _is_rooted(name):
            return self._find_address(parse_address(name))
        rows, files = tuple(self._ids.get(name, ())), self._find_path(name)
        if len(files) + len({path_without_language(self._passages[i].file) for i in rows}) > 1:
            places = (f"{self._passages[i].file}:{self._passages[i].line}" for i in rows)
            return Match(reason=_several([*(file.key for file in files), *places]))
        return Match(tuple(self._files[files[0].path]), "path") if files else Match(rows, "id" if rows else "")

    def _find_path(self, name: str) -> list[_File]:
        """Return the files that a path means; one word has to be the whole path of a page without its suffix."""
        written = name.partition("#")[0]
        for path in map(tidy_path, dict.fromkeys((written, written.partition("?")[0], unquote(written)))):
            plain = _plain(path)
            found, levels = self._ends.get(plain, []), plain.count("/")
            whole = [file for file in found if file.name.count("/") - levels in (0, 1)]
            if files := whole or (found if "/" in path or is_path(path) else []):
                return _closest(files, path)
        return []

    # Addresses.

    def _find_address(self, address: Address) -> Match:
        bases = self._bases[bool(address.host)]
        reason = f"outside {some([base.shown for base in bases])}" if bases else "addresses without a base"
        for full, language in self._readings(address):
            above = [base for base in bases if _is_below(full, base)]
            longest = max((len(base.address) for base in above), default=0)
            found = {
                file: base for base in above if len(base.address) == longest for file in self._at(base, full, language)
            }
            files = _closest(list(found), full + "/" * address.folder)
            if len(files) == 1:
                return Match(tuple(self._files[files[0].path]), "address", str(found[files[0]]))
            if above:
                reason = _several([file.key for file in files]) if files else "no such page"
        return Match(reason=reason)

    def _readings(self, address: Address) -> Iterator[tuple[str, str]]:
        """Yield the host and the path that an address may mean, with a language that is in neither."""
        label, _, host = address.host.partition(".")
        parameters = dict(part.partition("=")[::2] for part in address.query.split("&"))
        tag = next((self._tag(parameters[name]) for name in _LANGUAGE if name in parameters), "")
        routes = [address.route, *(tidy_path(value) for name, value in parameters.items() if name in self._routes)]
        path = "/".join(filter(None, (_plain(address.path), *routes))) if any(routes) else address.path
        if address.query:
            yield f"{address.host}/{address.path}?{address.query}", ""
        if "." in host and self._tag(label):
            yield f"{host}/{path}".rstrip("/"), self._tag(label)
        yield f"{address.host}/{path}".rstrip("/"), tag

    def _at(self, base: Base, full: str, language: str) -> list[_File]:
        """Return the files at a path below a base, or their translations in the language of the address."""
        parts = [base.folder, *full[len(base.address) :].split("/")]
        key = _key(parts)
        if language:
            return self._translations.get((_bare(key), language), [])
        found = [file for file in self._ends.get(key, ()) if file.name.count("/") == key.count("/")]
        i = next((i for i, part in enumerate(parts) if i and self._tag(part)), 0)
        if found or not i:
            return found
        return self._translations.get((_bare(_key(parts[:i] + parts[i + 1 :])), self._tag(parts[i])), [])

    def _tag(self, text: str) -> str:
        """Return a language of the documents that a text is the tag of, or nothing."""
        if text not in self._tags:
            tag = parse_name(text, common=True)
            self._tags[text] = next((each for each in (tag, primary_language(tag)) if each in self._languages), "")
        return self._tags[text]

    # Bases.

    def _find_routes(self, sample: Sequence[Address]) -> set[str]:
        counts, pages = Counter[str](), Counter[str]()
        for name, _, value in (part.partition("=") for address in sample for part in address.query.split("&")):
            if name not in _LANGUAGE and (plain := _plain(tidy_path(value))):
                counts[name] += 1
                pages[name] += plain in self._ends
        return {name for name, count in counts.items() if 2 * pages[name] > count}

    def _find_base(self, sample: Sequence[Address], address: str = "") -> list[Base]:
        """Return the base with which addresses reach most pages, the shortest of several; with all of its folders."""
        counts = Counter(base for each in sample for base in self._candidates(each) if address in ("", base.address))
        ranks = {base: self._rank(base, sample) for base, _ in counts.most_common(_TRIED)}
        best = [base for base, rank in ranks.items() if rank == max(ranks.values())]
        return [base for base in best if base.address == best[0].address]

    def _candidates(self, address: Address) -> dict[Base, None]:
        found = dict[Base, None]()
        for full, _ in self._readings(address):
            parts = full.split("/")
            for i in range(1, len(parts)):
                end = _key(parts[i:])
                files = self._ends.get(end, ()) if end else ()
                for file in files if len(files) <= _ALIKE else ():
                    folder = "/".join(file.name.split("/")[: -1 - end.count("/")])
                    # A language is no part of a base.
                    before = i - (i > 1 and bool(self._tag(parts[i - 1])))
                    found[Base("/".join(parts[:before]), folder)] = None
        return found

    def _rank(self, base: Base, sample: Sequence[Address]) -> tuple[int, bool, int]:
        readings = [each for address in sample for each in self._readings(address) if _is_below(each[0], base)]
        pages = {file for full, language in readings for file in self._at(base, full, language)[:1]}
        return len(pages), bool(base.folder), -base.address.count("/") - base.folder.count("/")

    def _read_base(self, text: str, sample: Sequence[Address]) -> Base:
        """Return the base of the user; without a folder, it has the one with most pages."""
        written, _, folder = text.partition("=")
        address = parse_address(written if "//" in written else f"//{written}")
        own = f"{address.host}/{address.path}".rstrip("/")
        roots = dict.fromkeys(root for _, root in self.short.values())
        if not folder:
            return next(iter(self._find_base(sample, own)), Base(own, next(iter(roots)) if len(roots) == 1 else ""))
        keys = [f"{root}/{relative}" for relative, root in self.short.values()]
        for known in (tidy_path(folder), *(tidy_path(f"{root}/{folder}") for root in roots)):
            if any(key.startswith(f"{known}/") for key in keys):
                return Base(own, known)
        raise ConfigError(f"--base {text}: no document is below '{folder}'")


def _is_rooted(name: str) -> bool:
    return is_address(name) or name.startswith("/")


def _is_below(full: str, base: Base) -> bool:
    return f"{full}/".startswith(f"{base.address}/")


def _closest(files: Sequence[_File], path: str) -> list[_File]:
    """Return the files closest to a path: with its suffix, or the page of a folder."""
    left, last = list(dict.fromkeys(files)), path.rpartition("/")[2]
    if len(left) > 1:
        stems = {file: _stem(file.key).lower() for file in left}
        named = [file for file in left if file.key.rpartition("/")[2] == last]
        left = named or [file for file in left if not last and stems[file] in _INDEXES] or left
        for index in _INDEXES:
            if all(stems[file] in _INDEXES for file in left) and (own := [f for f in left if stems[f] == index]):
                return own
    return left


def _relative(file: str, folders: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return a file's path from the first folder that holds it, and the folder's name."""
    for folder, name in folders:
        if file.startswith(f"{folder}/"):
            return file[len(folder) + 1 :], name
    return (Path(file).name, Path(file).absolute().parent.name) if folders else (file, "")


def _ends(path: str) -> list[str]:
    """Return a path and its ends; the page of the documents' folder also has the empty end."""
    parts = path.split("/")
    return ["/".join(parts[i:]) for i in range(len(parts))] + [""] * (len(parts) == 1)


def _stem(path: str) -> str:
    """Return the name of a file or a page without a suffix of pages."""
    return _BUILT.sub("", unpacked(path).rpartition("/")[2])


def _plain(path: str) -> str:
    """Return the canonical form of a path: without the suffix of a page, and the folder for the page of a folder."""
    folder, stem = path.rpartition("/")[0], _stem(path)
    return folder if stem.lower() in _INDEXES else f"{folder}/{stem}".lstrip("/")


def _key(parts: Iterable[str]) -> str:
    return _plain("/".join(filter(None, parts)))


def _bare(path: str) -> str:
    """Return the canonical form of a path without its language."""
    bare = path_without_language(f"{_plain(path)}.x").removesuffix(".x")
    return _plain("/".join(part for part in bare.split("/") if part != "*"))


def _several(names: Sequence[str]) -> str:
    return f"several pages: {some(names)}"
