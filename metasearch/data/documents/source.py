"""Find documents in files and folders, in a stable order; log skipped files."""

import errno
import logging
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from metasearch import io
from metasearch.config.languages import is_known
from metasearch.data.documents.languages import Series, find_folder_language, find_language, find_series, find_untagged
from metasearch.data.formats.text_files import suffix_of
from metasearch.errors import DataError

SUFFIXES = {
    ".txt": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".jsonl": "rows",
    ".csv": "rows",
    ".tsv": "rows",
    ".parquet": "rows",
    ".arrow": "rows",
    ".pdf": "pdf",
    ".docx": "docx",
}
"""End of a document's name → module of `metasearch.data.documents.readers`; `.gz` may follow."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """A document that is there, not read yet.

    Attributes:
        file: path as the user named it, with forward slashes.
        size: in bytes.
        named: whether the user named it; else it was found in a folder.
        language: the tag in its name or its folders; empty or `und` without one.
    """

    file: str
    path: Path
    size: int
    language: str = ""
    named: bool = False

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its content in hexadecimal digits; `DataError` if unreadable."""
        try:
            return io.digest(self.path)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror or error}") from None

    @property
    def reader(self) -> str:
        """Module name of its reader."""
        return SUFFIXES[suffix_of(self.path)]


def sources(paths: Iterable[str | Path], names: bool = True, unreadable: dict[str, str] | None = None) -> list[Source]:
    """Return the documents among files and, at any depth, in folders, in the order named and then by name.

    One warning counts hidden files and other kinds of files in folders, which are skipped. Each skipped pipe, device
    and empty file has its own warning.
    """
    search = _Search()
    named = [Path(path) for path in paths]
    for path in named:
        search.add(path)
    search.report(names)
    if not search.found:
        where = ", ".join(map(str, named[:3])) + ", ..." * (len(named) > 3)
        says = f"{where or 'no path was named'}: no documents; their names end in {', '.join(SUFFIXES)}"
        raise DataError("\n".join([*search.unreadable.values(), says]))
    if unreadable is None:
        for message in search.unreadable.values():
            log.warning("skipped: %s", message)
    else:
        unreadable.update(search.unreadable)
    return list(search.found.values())


@dataclass
class _Search:
    """Documents found so far, by absolute path, and what was passed over."""

    found: dict[str, Source] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)
    unreadable: dict[str, str] = field(default_factory=dict)
    parents: dict[Path, tuple[str, Series]] = field(default_factory=dict)
    """Folder of a named file → its language, and its names that differ only in their tag."""
    untagged: dict[Path, Set[str]] = field(default_factory=dict)
    """Parent of a named folder → its folders that have siblings with the same name and a tag."""

    def add(self, path: Path) -> None:
        """Add a file or a folder that was named."""
        try:
            mode = path.stat().st_mode
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) == errno.ENAMETOOLONG:
                raise
            raise DataError(
                f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}{io.near(path)}"
            ) from None
        if stat.S_ISDIR(mode):
            self._add_folder(path, self._told_by(Path(os.path.abspath(path))), (os.path.realpath(path),))
            return
        if _kind(path.name) not in SUFFIXES:
            raise DataError(f"{path}: no document of a known kind; their names end in {', '.join(SUFFIXES)}")
        parent = Path(os.path.abspath(path)).parent
        if parent not in self.parents:
            self.parents[parent] = self._told_by(parent), find_series(map(_stem, _names_in(parent)))
        self._add_file(path, *self.parents[parent], named=True)

    def _told_by(self, folder: Path) -> str:
        """Return the language in a folder's own name."""
        if folder.parent not in self.untagged:
            self.untagged[folder.parent] = _untagged_in(folder.parent, _names_in(folder.parent))
        return find_folder_language(folder.name, self.untagged[folder.parent], "")

    def _add_folder(self, folder: Path, told: str, above: tuple[str, ...]) -> None:
        """Add a folder's content, with the folder's language; `above` are the real paths of parent folders."""
        entries = list(_entries(folder))
        names = [entry.name for entry in entries]
        series, untagged = find_series(map(_stem, names)), _untagged_in(folder, names)
        for entry in entries:
            path = folder / entry.name
            try:
                if entry.name.startswith("."):
                    self.others["hidden"] += 1
                elif entry.is_dir():
                    self._add_subfolder(path, find_folder_language(entry.name, untagged, told), above)
                elif _kind(entry.name) in SUFFIXES:
                    self._add_file(path, told, series)
                else:
                    self.others[_kind(entry.name) or "no suffix"] += 1
            except DataError as error:
                self.unreadable[path.as_posix()] = str(error)
            except OSError as error:  # of a link to itself
                self.unreadable[path.as_posix()] = f"{path}: cannot be read: {error.strerror or error}"

    def _add_subfolder(self, path: Path, told: str, above: tuple[str, ...]) -> None:
        if (real := os.path.realpath(path)) in above:
            log.warning("%s: skipped: a symbolic link to a parent folder", path)
        else:
            self._add_folder(path, told, (*above, real))

    def _add_file(self, path: Path, told: str, series: Series, named: bool = False) -> None:
        try:
            path.as_posix().encode()
            found = path.stat()
            io.require_file(path)
        except UnicodeEncodeError:
            raise DataError(f"{os.fsencode(path)!r}: the file name is not UTF-8; rename the file") from None
        except OSError as error:
            if (reason := str(error.strerror)).startswith("it is a"):
                log.warning("%s: skipped: %s", path, reason)
                return
            raise DataError(f"{path}: cannot be read: {reason}") from None
        if not found.st_size:
            log.warning("%s: skipped: the file is empty", path)
        elif (key := os.path.abspath(path)) in self.found:
            if named:
                self.found[key] = replace(self.found[key], named=True)
        else:
            language = find_language(_stem(path.name), told, series)
            self.found[key] = Source(path.as_posix(), path, found.st_size, language, named)

    def report(self, names: bool) -> None:
        """Log skipped files, and languages found in names, with counts."""
        if self.others:
            counts = ", ".join(f"{count:,} {what}" for what, count in sorted(self.others.items()))
            log.warning("skipped, no document format: %s", counts)
        told: dict[str, list[str]] = {}
        for source in self.found.values():
            if is_known(source.language):
                told.setdefault(source.language, []).append(source.file)
        # With its folder, since one of both has the language.
        ends = {language: "/".join(own[0].split("/")[-2:]) for language, own in told.items()}
        shown = [f"{language} {len(own):,} ({ends[language]})" for language, own in sorted(told.items())]
        if shown and names:
            log.info("languages from file names: %s", ", ".join(shown))


def _untagged_in(folder: Path, names: Iterable[str]) -> Set[str]:
    """Return the folders that have siblings with the same name and a tag."""
    return find_untagged(name for name in names if "." in name and os.path.isdir(folder / name))


def _names_in(folder: Path) -> list[str]:
    """Return the names in a named file's folder; empty if it may not be read."""
    return os.listdir(folder) if os.access(folder, os.R_OK | os.X_OK) else []


def _stem(name: str) -> str:
    """Return a file's name without its suffix, and without `.gz`."""
    return name.removesuffix(".gz").rpartition(".")[0]


def _kind(name: str) -> str:
    """Return what a file's name ends in, without `.gz`."""
    return Path(name.removesuffix(".gz")).suffix.lower()


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as inside:
            yield from sorted(inside, key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {error.strerror or error}") from None
