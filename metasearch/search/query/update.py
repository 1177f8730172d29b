"""Update an index to some documents: encode new ones, remove missing ones, keep the rest."""

import json
import logging
import os
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from metasearch.config.languages import is_known, primary_language
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.protocols import report_progress
from metasearch.encoders.unknown_languages import TEXTS, warn_of_unknown
from metasearch.errors import ConfigError, DataError
from metasearch.io import write_error
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.signals import interrupted
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.evidence import decide
from metasearch.search.documents.languages import are_translated, find_path_language, group_pages
from metasearch.search.documents.page_links import names_translations, read_page_links
from metasearch.search.documents.pages import Pages
from metasearch.search.documents.passage import Dropped, Notes, Passage
from metasearch.search.documents.read import (
    Source,
    add_page,
    is_page,
    log_notes,
    passages,
    sources,
)
from metasearch.search.index.base import CopyResult, FilePlaces, Kind, SourceFile, passage_keys
from metasearch.search.index.places import place_facts, shown
from metasearch.search.index.writer import IndexWriter, writing
from metasearch.search.query.estimate import check, renewed
from metasearch.search.query.passages import ROLE, cutting
from metasearch.search.query.roots import Root
from metasearch.search.settings import ALWAYS, IndexSettings

log = logging.getLogger(__name__)

Sample = dict[str, dict[bytes, Passage]]
"""Language → some passages in it, by key."""
_AT_ONCE = 1024
"""Passages that are read, or encoded and then written, at a time."""


@dataclass(frozen=True)
class UpdateResult:
    """An index's size and changes."""

    encoder: str
    documents: int
    passages: int
    """Passages in the index, each place counted."""
    languages: dict[str, int]
    """Texts by language, most first; one that several places have is counted once."""
    encoded: int
    """Texts that got a vector."""
    added: int
    changed: int
    dropped: int
    """Documents that are new, have other content than before, or are gone."""
    skipped: int
    """Documents and folders that cannot be read."""
    kept: int
    """Documents that stay as indexed before because they cannot be read."""
    skipped_rows: int
    """Rows that cannot be read, in documents that are new or changed."""
    neutral: tuple[str, ...] = ()
    """Languages of the projection; none without one."""
    precision: str = "float32"
    """What the texts were encoded in."""
    copied: CopyResult | None = None
    """What a copy to a database did."""


def update(
    folder: Path,
    paths: Sequence[str | Path],
    encoder: Encoder,
    settings: IndexSettings,
    name: str = "",
    drop: bool = False,
    strict: bool = False,
    callback: Callback = SILENT,
    ranking: Mapping[str, Any] | None = None,
    root: Path | None = None,
    site: str | None = None,
) -> UpdateResult:
    """Make a new or existing index contain exactly these documents.

    A killed process has saved what it encoded, and the next call encodes the rest. Readers see the old documents
    until all is done. With `drop`, existing documents that are not named leave the index; with `strict`, everything
    unreadable is an error. `name` is the name under which the index remembers the encoder, `ranking` how it is to be
    searched, `root` the folder to which paths of documents are relative (`Root.choose`), and `site` its address.
    """
    settings, cut = cutting(settings, encoder)
    stored = settings.model_dump(mode="json") | {"precision": encoder.precision}
    kind = Kind(name or encoder.name, encoder.fingerprint, encoder.dimension(), stored)
    unreadable: dict[str, str] = {}
    documents = sources(paths, settings.names, unreadable)
    if settings.column != "text" and not any(each.format.holds == "rows" for each in documents):
        log.warning("column '%s' has no effect: no document has rows, such as .jsonl and .csv", settings.column)
    if settings.detect and ALWAYS not in settings.detect and is_known(settings.language or ""):
        log.warning("detect has no effect: texts without a language get the language '%s'", settings.language)
    with writing(folder, kind) as store:
        store.verify()
        where = Root.choose(store, paths, documents, root, drop)
        documents, before = decide(where.rename(documents), cut), store.files
        unreadable = {where.name(Path(path)): message for path, message in unreadable.items()}
        found = Plan(store, cut, strict or store.outdated)
        found.fill(where, documents, unreadable, drop, strict, callback)
        if not any(len(each.keys) for each in found.files):
            raise DataError(f"{folder}: no document has text")
        check(encoder, settings.neutral, store.plan, found.languages + Counter(store.languages))
        unknown = _unknown(found, encoder)
        _encode(found, encoder, callback)
        new = renewed(store, found.files, encoder, settings.neutral)
        ranked: dict[str, Any] = {} if ranking is None else {"ranking": dict(ranking)}
        ranked["translated"] = found.are_translated()
        store.state = {**store.state, **place_facts(folder, where.folder, site, kind.encoder), **ranked}
        done = store.finish(found.files, new, unknown)
        assert done.quantised  # caches what goes through a projection
        passages, languages, neutral = done.places, done.languages, done.plan.languages
    files = {each.file.path: each.file.sha256 for each in found.files}
    return UpdateResult(
        encoder=kind.encoder,
        documents=len(files),
        passages=passages,
        languages=languages,
        encoded=len(found.new),
        added=len(files.keys() - before.keys()),
        changed=sum(before[path].sha256 != digest for path, digest in files.items() if path in before),
        dropped=len(before.keys() - files.keys()),
        skipped=found.skipped,
        kept=found.kept,
        skipped_rows=found.notes.rows,
        neutral=neutral,
        precision=encoder.precision,
    )


def _unknown(found: "Plan", encoder: Encoder) -> dict[str, str]:
    """Return the languages that the encoder hardly knows, with the reasons; new ones are told."""
    read = ((tag, passage.text) for tag, drawn in found.sample.items() for passage in drawn.values())
    reasons = {**found.store.unknown, **dict.fromkeys(found.sample, ""), **warn_of_unknown(encoder, read)}
    return {tag: reason for tag, reason in reasons.items() if reason}


def _encode(found: "Plan", encoder: Encoder, callback: Callback) -> None:
    done = 0

    def heard(now: int, _: int) -> None:
        callback.on_encode("passages", done + now, len(found.new))

    try:
        for some in found.portions():
            with report_progress(encoder, heard):
                vectors = encoder.encode([passage.text for passage in some], ROLE)
            encoder.forget()
            found.store.upsert(vectors, some, passage_keys(some))
            done += len(some)
    except KeyboardInterrupt:
        kept = f"{done:,} of {len(found.new):,} new texts are encoded and kept; run the same command again to continue"
        raise interrupted(f"stopped; {kept}") from None


# The plan: which documents are new, unchanged and missing.


@dataclass
class Plan:
    """Changes that give an index some documents; documents are read again where `again`, also unchanged ones."""

    store: IndexWriter
    settings: Settings
    again: bool
    files: list[FilePlaces] = field(default_factory=list)
    """The documents with the keys of their passages, in their order."""
    new: set[bytes] = field(default_factory=set)
    """Keys of all passages that have no vector."""
    sample: Sample = field(default_factory=dict)
    """Passages of each language of the changed files, to see whether the encoder knows it."""
    languages: Counter[str] = field(default_factory=Counter)
    """Passages of the changed files by language."""
    counts: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Note on dropped or changed content → its number in each file."""
    notes: Notes = field(default_factory=Notes)
    """Notes on changed files, and problems."""
    dropped: Counter[Dropped] = field(default_factory=Counter)
    """Block that a reader dropped → number of changed pages."""
    pages: Pages = field(default_factory=Pages)
    """Pages that are read, to be compared with all others."""
    skipped: int = 0
    """Documents, and folders, that cannot be read; `kept` ones stay as indexed before."""
    kept: int = 0

    def __post_init__(self) -> None:
        # Beside the index, which grows by as much.
        with self._writing():
            self._waiting = TemporaryFile(dir=self.store.folder)  # noqa: SIM115 - closed with the plan

    def fill(
        self, root: Root, documents: Sequence[Source], unreadable: Mapping[str, str], drop: bool, strict: bool,
        callback: Callback,
    ) -> None:  # fmt: skip
        """Compare documents with the index, and read new and changed ones; `unreadable` is folder → why."""
        indexed, named = self.store.files, {source.file for source in documents}
        hidden = {
            file: [path for path in indexed if path not in named and f"{path}/".startswith(f"{file}/")]
            for file in unreadable
        }
        if not drop:
            _require_named(self.store, root, named.union(*hidden.values()))
        files = self._compare(documents, callback)
        for path in (path for paths in hidden.values() for path in paths):
            self._keep_blocks(path)
        same = self._decide()
        errors: list[str] = []
        for source in documents:
            file = files[source.file]
            try:
                if isinstance(file, DataError):
                    raise file
                if file == indexed.get(source.file) and not self.again and source.file in same:
                    self.files.append(_linked(self.store.places_by_file[source.file], source))
                else:
                    self._read(source, file)
            except DataError as error:
                self._skip([source.file] if source.file in indexed else [], str(error))
                errors += [str(error)] * source.named
        for path, message in unreadable.items():
            self._skip(hidden[path], message)
        if strict:
            errors = [problem.message for problem in self.notes.problems]
        if errors:
            raise DataError("\n".join(errors))
        names = group_pages(*_page_groups(each.file for each in self.files), self.settings.translations)
        self.files = [
            replace(each, file=replace(each.file, group=names.get(each.file.path, ""))) for each in self.files
        ]
        # Hits show a text of several pages at the first one: originals come before untranslated copies.
        self.files.sort(key=lambda each: _is_elsewhere(each.file))
        log_notes(self.notes, self.counts, self.dropped, self.settings.detect_always)

    def are_translated(self) -> bool:
        """Return whether most pages are in several languages, which a line says if they were not before."""
        distinct = {each.keys.tobytes(): each.file for each in reversed(self.files) if len(each.keys)}
        translated = are_translated(*_page_groups(distinct.values()))
        if translated and not self.store.state.get("translated"):
            log.info("most pages are in several languages, so searches balance scores; --no-balance turns that off")
        return translated

    def _compare(self, documents: Sequence[Source], callback: Callback) -> dict[str, SourceFile | DataError]:
        """Add all pages without reading indexed ones, unless `again`; return the files, and errors of others."""
        files = dict[str, SourceFile | DataError]()
        for number, source in enumerate(documents, 1):
            try:
                replaced = json.dumps(source.replaced, sort_keys=True) if source.replaced else ""
                file = SourceFile(source.file, source.size, source.digest, source.language, replaced)
                if file == self.store.files.get(source.file) and not self.again:
                    self._keep_blocks(source.file)
                else:
                    add_page(self.pages, source, self.settings)
                files[source.file] = file
            except DataError as error:
                files[source.file] = error
                self._keep_blocks(source.file)
            callback.on_count("documents read", number, len(documents))
        return files

    def _keep_blocks(self, path: str) -> None:
        """Compare other pages with an indexed one that is not read."""
        if path in self.store.files and (blocks := self.store.places_by_file[path].blocks):
            self.pages.blocks[path] = blocks

    def _decide(self) -> Set[str]:
        """Compare all pages; return the indexed documents that share with others what they shared before."""
        self.pages.decide()
        for line in self.pages.describe_whole():
            log.warning("%s", line)
        before = Pages()
        before.blocks = {path: each.blocks for path, each in self.store.places_by_file.items() if each.blocks}
        before.decide()
        return {path for path in self.store.files if np.array_equal(before.repeated(path), self.pages.repeated(path))}

    def _skip(self, indexed: Sequence[str], message: str) -> None:
        """Skip an unreadable document or folder; its indexed documents stay unchanged."""
        self.files += [self.store.places_by_file[path] for path in indexed]
        self.kept += len(indexed)
        self.skipped += not indexed
        outcome = f"kept as indexed before, {len(indexed):,} documents" if indexed else "skipped"
        self.notes.add(outcome, message)

    def _read(self, source: Source, file: SourceFile) -> None:
        """Add a new or changed document; `DataError` if it cannot be read, with nothing added."""
        notes, languages, new, sample = Notes(), Counter[str](), set[bytes](), Sample()
        if source.file not in self.pages:  # an indexed page that shares other blocks than before
            add_page(self.pages, source, self.settings)
        parts, lines, headings = [passage_keys([])], list[int](), list[tuple[str, str]]()
        with self._writing():
            start = self._waiting.seek(0, os.SEEK_END)
        cut = passages(source, self.settings, notes, self.pages)
        try:
            while some := list(islice(cut, _AT_ONCE)):
                parts.append(passage_keys(some))
                lines += [passage.line for passage in some]
                headings += [(passage.heading, passage.anchor) for passage in some]
                languages.update(passage.language for passage in some)
                keys = [*map(bytes, parts[-1])]
                _draw(sample, zip(keys, some, strict=True))
                for key, known, passage in zip(keys, self.store.known(parts[-1]), some, strict=True):
                    if not known and key not in self.new and key not in new:
                        new.add(key)
                        self._wait(passage)
            places = np.concatenate(parts), np.array(lines, np.int32), _pack_headings(headings)
            self.files.append(_linked(FilePlaces(file, *places, self.pages.blocks.get(source.file)), source))
        except DataError:
            with self._writing():
                self._waiting.truncate(start)
            raise
        self.new |= new
        self.languages += languages
        _draw(self.sample, ((key, each) for drawn in sample.values() for key, each in drawn.items()))
        self.dropped.update(notes.dropped)
        notes.dropped = []  # which would grow with the number of pages
        self.notes.include(notes)
        for what, times in notes.counts.items():
            self.counts.setdefault(what, []).append((times, source.path.as_posix()))

    def _wait(self, passage: Passage) -> None:
        with self._writing():
            pickle.dump(passage, self._waiting)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Raise an error of the disk as `RunFolderError`."""
        try:
            yield
        except OSError as error:
            raise write_error(self.store.folder, error) from None

    def portions(self) -> Iterator[list[Passage]]:
        """Yield distinct passages without a vector, in their order, as many as are encoded at a time.

        The last bits of vectors depend on the portions in which they are encoded.
        """
        with self._writing():
            self._waiting.seek(0)
        new = (pickle.load(self._waiting) for _ in self.new)  # written above: the file has no name
        return iter(lambda: list(islice(new, _AT_ONCE)), [])


def _draw(sample: Sample, passages: Iterable[tuple[bytes, Passage]]) -> None:
    """Add passages by key to a sample, which keeps those with the smallest keys: their order does not count."""
    for key, passage in passages:
        sample.setdefault(passage.language, {})[key] = passage
    for language, drawn in sample.items():
        sample[language] = {key: drawn[key] for key in nsmallest(TEXTS, drawn)}


def _pack_headings(passages: Sequence[tuple[str, str]]) -> str:
    """Return headings and anchors of passages as JSON, `[number, heading, anchor]` where they change."""
    found: list[tuple[int, str, str]] = []
    for number, (heading, anchor) in enumerate(passages):
        if (heading, anchor) != (found[-1][1:] if found else ("", "")):
            found.append((number, heading, anchor))
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _page_groups(files: Iterable[SourceFile]) -> tuple[dict[str, str], dict[str, str]]:
    """Return language and group of each page among some documents, by path."""
    pages = [each for each in files if is_page(each.path)]
    return {each.path: each.language for each in pages}, {each.path: each.group for each in pages}


def _is_elsewhere(file: SourceFile) -> bool:
    """Return whether a document is in the folder of another language, such as an untranslated copy."""
    tag = find_path_language(file.path)
    return bool(tag and file.language) and primary_language(tag) != primary_language(file.language)


def _linked(places: FilePlaces, source: Source) -> FilePlaces:
    """Return a page with its group and address, unless it was indexed with them.

    A page that names its translations may have the group of its path, as long as they are not there.
    """
    if not is_page(source.file) or (places.file.group and not names_translations(source.path)):
        return places
    links = read_page_links(source.path, source.file)
    return replace(places, file=replace(places.file, group=links.group, url=links.url))


def _require_named(store: IndexWriter, root: Root, named: Set[str]) -> None:
    if forgotten := [name for name in store.files if name not in named and _has_content(root.folder / name)]:
        first = shown(root.folder / forgotten[0])
        raise ConfigError(
            f"{store.folder} has {len(forgotten):,} existing documents that were not named, such as '{first}': name "
            "them too, or pass --prune to remove them, or --root with their folder if they moved"
        )


def _has_content(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size > 0
    except OSError as error:
        raise DataError(f"{path}: cannot be checked: {error.strerror or error}") from None
