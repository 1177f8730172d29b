"""What pages are called: paths, addresses, and ids of rows, each with the file and the passages that it means."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from metasearch.data.formats.documents import LONGEST, format_of, is_address, is_path
from metasearch.data.formats.text_files import unpacked
from metasearch.search.documents.passage import Passage

_ID = "id"
_INDEX = "index"
"""Name of the file that a server sends for a folder."""


class Match(NamedTuple):
    """The indices of the passages behind a name, and the kind of the name."""

    passages: tuple[int, ...]
    how: Literal["path", "address", "id"]


class PageNames:
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
            if _ID in passage.fields:
                self._ids.setdefault(str(passage.fields[_ID]), []).append(i)
            if (found := format_of(passage.file)) is None or found.holds != "rows":
                self.files.setdefault(passage.file, []).append(i)
        self.short = {file: _relative(file, folders) for file in self.files}
        """Path of a document → its path from a folder that was named."""
        self._whole: dict[str, set[str]] = {}
        self._tails: dict[str, set[str]] = {}
        for file, (relative, folder) in self.short.items():
            for key in {*_spellings(relative), *_spellings(f"{folder}/{relative}"), *_spellings(file)}:
                self._whole.setdefault(key, set()).add(file)
            for spelling in _spellings(relative):
                parts = spelling.split("/")
                for i in range(1, len(parts)):
                    self._tails.setdefault("/".join(parts[i:]), set()).add(file)

    def find(self, name: str) -> Match | None:
        """Return what a name means; None if nothing, or several files."""
        name = unicodedata.normalize("NFC", name.strip())
        if len(name) <= LONGEST and "\n" not in name:
            if is_address(name):
                file = next(filter(None, map(self._find_address, _paths_of(name))), None)
            else:
                file = self._find_path(name)
            if file:
                return Match(tuple(self.files[file]), "address" if is_address(name) else "path")
        return Match(tuple(self._ids[name]), "id") if name in self._ids else None

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
