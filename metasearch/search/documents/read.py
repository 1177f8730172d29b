"""Finds documents in files and folders, in a stable order, and reads them into passages, one after the other.

Skipped files are logged. Memory does not grow with the number or length of documents.
"""

import logging
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from operator import itemgetter
from pathlib import Path

from metasearch import io
from metasearch.config import registry
from metasearch.config.languages import UNKNOWN, is_known, primary_language
from metasearch.data.formats.documents import Format, formats
from metasearch.data.formats.text_files import suffix_of, unpacked
from metasearch.data.languages import detectable, detector
from metasearch.errors import DataError
from metasearch.search.documents.chunking import Chunker, Settings
from metasearch.search.documents.evidence import decide
from metasearch.search.documents.languages import (
    disagreements,
    find_folder_language,
    find_language,
    path_without_language,
)
from metasearch.search.documents.own_output import folder_kind, is_run
from metasearch.search.documents.pages import Pages, blocks_of
from metasearch.search.documents.passage import BELOW, Dropped, Notes, Passage, Section

GROUP = "group"
"""Field of rows that a page and its translations share."""
NO_TEXT = "documents without text"
NO_CONTENT = "pages without content, whose whole text most pages share"
_LEAST = 30
"""Letters of a part of a page, at least, whose `lang` is compared with its text."""
_OTHER_LANG = "passages that look like the language of their page, not of their lang attribute"
_SOURCES = "_sources"
_MENUS = ("summary.md", "_summary.md", "_sidebar.md", "_navbar.md")
"""Names of the menus of mdBook, GitBook and docsify."""
_NO_LINK = re.compile(r"^(?!\s*(?:(?:[-*+]|\d+\.)\s+)?!?\[|\s*#|\s*-*\s*$).", re.M)
"""Start of a line of Markdown that is no link, heading or rule."""
_LARGEST_PAGE = 2**20
"""Bytes of a file above which it is no page."""
_NAMED = 5
"""Files or blocks that a warning names."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """A document that is there, not read yet, of `size` bytes."""

    file: str
    """Path as the user named it, with forward slashes."""
    path: Path
    size: int
    language: str = ""
    """The tag in its name or its folders."""
    named: bool = False
    """Whether the user named it; else it was found in a folder."""
    replaced: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Language that it states → the language that its texts are in."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its content in hexadecimal digits; `DataError` if unreadable."""
        try:
            return io.digest(self.path)
        except OSError as error:
            raise _unreadable(self.path, error) from None

    @cached_property
    def format(self) -> Format:
        """Its format."""
        return formats()[suffix_of(self.path)]


def sources(paths: Iterable[str | Path], names: bool = True, unreadable: dict[str, str] | None = None) -> list[Source]:
    """Return the documents among files and, at any depth, in folders, in the order named and then by name.

    With `names`, file and folder names tell languages. One warning counts hidden files and other kinds of files in
    folders, which are skipped, and one names output of metasearch, such as indexes, runs and rankings. Each skipped
    pipe, device and empty file has its own warning.
    """
    search = _Search(names)
    named = [Path(path) for path in paths]
    for path in named:
        search.add(path)
    search.report()
    if not search.found:
        where = ", ".join(map(str, named[:3])) + ", ..." * (len(named) > 3)
        ends = f"no documents; their names end in {', '.join(formats())}"
        says = f"{where or 'no path was named'}: " + (
            f"all {search.empty:,} documents are empty" if search.empty else ends
        )
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

    names: bool
    found: dict[str, Source] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)
    own: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    empty: int = 0

    def add(self, path: Path) -> None:
        """Add a file or a folder that was named."""
        try:
            mode = path.stat().st_mode
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise DataError(f"{path}: cannot be read: {reason}{io.near(path)}") from None
        absolute = Path(os.path.abspath(path))
        if stat.S_ISDIR(mode):
            self._add_folder(path, find_folder_language(absolute.name, ""), (os.path.realpath(path),))
        elif suffix_of(path) in formats():
            self._add_file(path, find_folder_language(absolute.parent.name, ""), named=True)
        else:
            raise DataError(f"{path}: no document of a known kind; their names end in {', '.join(formats())}")

    def _add_folder(self, folder: Path, language: str, above: tuple[str, ...]) -> None:
        """Add a folder's content, with the folder's language; `above` are the real paths of parent folders."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            raise _unreadable(folder, error) from None
        if self._is_output(folder, {entry.name for entry in entries}):
            return
        for entry in entries:
            path = folder / entry.name
            try:
                if entry.name.startswith("."):
                    self.others["hidden"] += 1
                elif entry.is_dir():
                    if (real := os.path.realpath(path)) in above:
                        log.warning("%s: skipped: a symbolic link to a parent folder", path)
                    else:
                        self._add_folder(path, find_folder_language(entry.name, language), (*above, real))
                elif suffix_of(path) in formats():
                    self._add_file(path, language)
                else:
                    self.others[suffix_of(path) or "no suffix"] += 1
            except DataError as error:
                self.unreadable[path.as_posix()] = str(error)
            except OSError as error:  # of a link to itself
                self.unreadable[path.as_posix()] = str(_unreadable(path, error))

    def _is_output(self, folder: Path, names: Collection[str]) -> bool:
        """Return whether a program wrote a folder with these files, and note it."""
        if kind := folder_kind(folder, names):
            self.own.append(f"{folder.as_posix()} ({kind})")
        elif folder.name == _SOURCES and any(folder.parent.glob("*.html")):
            log.warning("%s: skipped: copies of the sources of the pages beside it, written by Sphinx", folder)
            return True
        return bool(kind)

    def _add_file(self, path: Path, folder_language: str, named: bool = False) -> None:
        try:
            path.as_posix().encode()
            size = path.stat().st_size
            io.require_file(path)
        except UnicodeEncodeError:
            raise DataError(f"{os.fsencode(path)!r}: the file name is not UTF-8; rename the file") from None
        except OSError as error:
            if str(error.strerror).startswith("it is a"):
                log.warning("%s: skipped: %s", path, error.strerror)
                return
            raise _unreadable(path, error) from None
        if not size:
            self.empty += 1
            log.warning("%s: skipped: the file is empty", path)
        elif not named and _is_menu(path, size):
            self.others["menus of links"] += 1
        elif is_run(path):
            self.own.append(f"{path.as_posix()} (a TREC run)")
        elif (key := os.path.abspath(path)) not in self.found:
            language = find_language(unpacked(path.name).rpartition(".")[0], folder_language)
            self.found[key] = Source(path.as_posix(), path, size, language if self.names else "", named)
        elif named:
            self.found[key] = replace(self.found[key], named=True)

    def report(self) -> None:
        """Log skipped files, and languages found in names, with counts."""
        if self.others:
            counts = ", ".join(f"{count:,} {what}" for what, count in sorted(self.others.items()))
            log.warning("skipped, no document format: %s", counts)
        if self.own:
            log.warning("skipped, written by metasearch: %s", _list_some(self.own))
        named: dict[str, list[str]] = {}
        for source in self.found.values():
            if is_known(source.language):
                named.setdefault(source.language, []).append("/".join(source.file.split("/")[-2:]))
        if named:
            shown = (f"{language} {len(files):,} ({files[0]})" for language, files in sorted(named.items()))
            log.info("languages from file names: %s", ", ".join(shown))


def _is_menu(path: Path, size: int) -> bool:
    if path.name.lower() not in _MENUS or size > _LARGEST_PAGE:
        return False
    with suppress(OSError):  # its reader says why it cannot be read
        return not _NO_LINK.search(path.read_text("utf-8", "ignore"))
    return False


def _list_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path}: cannot be read: {error.strerror or error}")


def is_page(file: str) -> bool:
    """Return whether a file is one page, by its name."""
    return unpacked(file.lower()).endswith(_page_suffixes())


@cache
def _page_suffixes() -> tuple[str, ...]:
    return tuple(suffix for suffix, each in formats().items() if each.holds == "page")


def page_of(passage: Passage) -> tuple[str, int]:
    """Return what tells a passage's page: its file, and its line where a line of the file is a page."""
    return passage.file, 0 if is_page(passage.file) else passage.line


def group_of(passage: Passage) -> str:
    """Return what a passage's page shares with its translations: the field `group`, or its path without the language.

    A line of a file is a page without translations unless it has the field.
    """
    if GROUP in passage.fields:
        return f"group {passage.fields[GROUP]}"
    file, line = page_of(passage)
    return f"{file}:{line}" if line else path_without_language(file)


def add_page(pages: Pages, source: Source, settings: Settings) -> None:
    """Add a document to the pages, unless it has rows or is too large for a page, or all text is kept."""
    if source.format.holds != "rows" and source.size <= _LARGEST_PAGE and not settings.keep_repeated:
        notes = Notes()
        pages.add(source.file, source.language, list(_sections(source, settings, notes)), notes)


def log_notes(
    notes: Notes, counts: Mapping[str, Sequence[tuple[int, str]]], dropped: Mapping[Dropped, int], detect_always: bool
) -> None:
    """Log what was noted about documents; `counts` is note → its number in each file, `dropped` block → pages."""
    for problem in notes.problems:
        log.warning("%s", problem)
    for what, places in counts.items():
        if what == NO_CONTENT:
            log.warning("%s: %s", what, _list_some([file for _, file in places]))
        else:
            log.warning("%s: %s, the first in '%s'", what, f"{sum(count for count, _ in places):,}", places[0][1])
    for line in (*disagreements(notes.detected, detect_always), *_describe_repeated(notes.repeated)):
        log.warning("%s", line)
    found: dict[str, dict[str, None]] = {}
    for each in dropped:
        if each.reason != "repeated":
            found.setdefault(each.reason, {})[each.text] = None
    shown = (f"{reason} {len(texts):,} ('{max(texts, key=len)[:40]}')" for reason, texts in sorted(found.items()))
    if found:
        log.info("dropped blocks: %s; --explain FILE shows all of a document", ", ".join(shown))


def _describe_repeated(shared: Mapping[str, int]) -> Iterator[str]:
    """Yield a line about dropped blocks, the most frequent first, if there are any."""
    if shared:
        shown = ", ".join(f"'{text[:40]}'" for text in sorted(shared, key=lambda text: (-shared[text], text))[:_NAMED])
        count = f"{len(shared):,} block{'s' * (len(shared) > 1)}, {sum(shared.values()):,} times"
        yield f"not indexed, as most pages of a folder have them: {count}, such as {shown}; --keep-repeated keeps them"


def explain(paths: Sequence[str | Path], file: str | Path, settings: Settings | None = None) -> Iterator[str]:
    """Yield a line for each block of a document: its line, whether it is kept or why not, and its text.

    Args:
        paths: files and folders of the documents, which tell what most pages share.
        file: the document.
        settings: how documents are read.
    """
    asked, pages = settings or Settings(), Pages()
    documents = decide(sources([*paths, file]), asked)
    for source in documents:
        add_page(pages, source, asked)
    pages.decide()
    source = next(each for each in documents if os.path.samefile(each.path, file))
    notes, blocks = Notes(), list[tuple[int, str, str]]()
    for section in _sections(source, asked, notes, pages):
        blocks += ((line, "kept", text) for text, line in blocks_of(section))
    blocks += ((each.line, f"dropped ({each.reason})", each.text) for each in notes.dropped)
    yield from (f"{source.file}:{line}: {verdict}: {text}" for line, verdict, text in sorted(blocks, key=itemgetter(0)))
    yield from map(str, notes.problems)
    yield from (f"{source.file}: {what}: {times:,}" for what, times in notes.counts.items())


def _sections(source: Source, settings: Settings, notes: Notes, pages: Pages | None = None) -> Iterator[Section]:
    if pages and source.file in pages:
        return pages.sections(source.file, notes)
    # When it is used: each format needs a library of its own.
    found: Iterator[Section] = registry.load("documents", source.format.name).sections(source.path, settings, notes)
    return found


def passages(source: Source, settings: Settings, notes: Notes, pages: Pages | None = None) -> Iterator[Passage]:
    """Yield a document's passages in order; `pages` may hold its text."""
    chunker = Chunker(settings)
    count = 0
    for section in _sections(source, settings, notes, pages):
        for offset, text in chunker.cut(section, notes):
            count += 1
            language, mark = _language(section, text, source, settings, notes), section.heading(offset)
            line, heading = section.line_at(offset), BELOW.join(mark.path)
            yield Passage(text, source.file, line, language, section.fields, heading, mark.anchor)
    if not count and Notes.NO_PAGE not in notes.counts:
        notes.counts[NO_CONTENT if notes.repeated else NO_TEXT] += 1
    notes.close(source.path.as_posix())


def _language(section: Section, text: str, source: Source, settings: Settings, notes: Notes) -> str:
    own, *others = (source.replaced.get(tag, tag) for tag in (section.language, source.language, section.around))
    others = [*filter(is_known, (*others, settings.language or ""))]
    rest = text.removeprefix(f"{section.title}\n")  # the title is in the language of the page
    if source.format.name == "html" and is_known(own) and others and _looks_like(others[0], own, rest):
        notes.counts[_OTHER_LANG] += 1
        own = others[0]
    stated = own if is_known(own) else next(iter(others), "")
    language = primary_language(stated) if stated else ""
    found = UNKNOWN
    if settings.detect and (not stated or language in settings.detectable):
        found = settings.detect(text)
    if not stated:
        return found
    if is_known(found):
        notes.detected[stated, found] += 1
        if settings.detect_always and found != language:
            return found
    return stated


def _looks_like(language: str, own: str, text: str) -> bool:
    """Return whether a text looks like a language rather than its own, which word processors state by mistake."""
    tags = primary_language(language), primary_language(own)
    if tags[0] == tags[1] or sum(map(str.isalpha, text)) < _LEAST or re.search("-[A-Z][a-z]{3}", own):
        return False  # detection knows no other scripts, such as Latin letters for Greek
    return {*tags} <= detectable() and _between(*sorted(tags))(text) == tags[0]


@cache
def _between(*tags: str) -> Callable[[str], str]:
    return detector(tags)
