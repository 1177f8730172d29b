"""Compare documents with an index: new, unchanged and missing ones; nothing is encoded or written."""

import logging
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heapreplace
from itertools import islice
from pathlib import Path
from types import MappingProxyType

import numpy as np

from metasearch.data.documents.chunking import Settings
from metasearch.data.documents.passage import Notes, Passage, Problem
from metasearch.data.documents.read import passages
from metasearch.data.documents.source import Source
from metasearch.errors import ConfigError, DataError
from metasearch.retrieval.index.base import FilePlaces, SourceFile, passage_keys
from metasearch.retrieval.index.writer import IndexWriter

log = logging.getLogger(__name__)

Drawn = list[tuple[int, str]]
"""A heap of passages: number of the key, text."""
Sample = dict[str, Drawn]
"""Language → some passages in it."""

_AT_ONCE = 1024


@dataclass
class Plan:
    """Planned changes.

    Attributes:
        files: the documents with the keys of their passages, in their order.
        changed: new and changed documents, and their keys without a vector.
        new: keys of all passages that have no vector.
        sample: passages of each language for the estimate of the projection; empty without one.
        languages: passages of the changed files by language.
        counts: note on dropped or changed content → its number in each file.
        problems: what cannot be read.
        skipped: how many documents, and folders, cannot be read.
        kept: how many documents of the index stay in it because they cannot be read.
        rows: how many rows cannot be read.
    """

    files: list[FilePlaces] = field(default_factory=list)
    changed: list[tuple[Source, frozenset[bytes]]] = field(default_factory=list)
    new: set[bytes] = field(default_factory=set)
    sample: Sample = field(default_factory=dict)
    languages: Counter[str] = field(default_factory=Counter)
    counts: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    skipped: int = 0
    kept: int = 0
    rows: int = 0


def plan(
    store: IndexWriter,
    sources: Sequence[Source],
    settings: Settings,
    *,
    unreadable: Mapping[str, str] = MappingProxyType({}),
    sampled: int = 0,
    drop: bool = False,
    strict: bool = False,
    heard: Callable[[int, int], None] = lambda done, total: None,
) -> Plan:
    """Return the changes that give an index these documents.

    A document that cannot be read is skipped, with a warning. If the index has it, it stays there: it may be
    readable again soon.
    """
    found = Plan()
    named = {source.file for source in sources}
    hidden = {
        file: [path for path in store.files if path not in named and f"{path}/".startswith(f"{file}/")]
        for file in unreadable
    }
    if not drop:
        _require_named(store, sources, [path for paths in hidden.values() for path in paths])
    errors: list[str] = []
    for number, source in enumerate(sources, 1):
        try:
            before = store.files.get(source.file)
            told = source.language if settings.names else ""
            if before and not strict and (before.sha256, before.language) == (source.digest, told):
                found.files.append(store.places_by_file[source.file])
            else:
                _read(found, store, source, settings, sampled)
        except DataError as error:
            _skip(found, store, [source.file] if source.file in store.files else [], str(error))
            errors += [str(error)] * source.named
        heard(number, len(sources))
    for file, message in unreadable.items():
        _skip(found, store, hidden[file], message)
    if strict:
        errors = [problem.message for problem in found.problems]
    if errors:
        raise DataError("\n".join(errors))
    _say(found)
    return found


def _say(found: Plan) -> None:
    for problem in found.problems:
        log.warning("%s", problem)
    for what, places in found.counts.items():
        times, (_, first) = sum(count for count, _ in places), places[0]
        log.warning("%s: %s, the first in '%s'", what, f"{times:,}", first)


def _skip(found: Plan, store: IndexWriter, indexed: Sequence[str], message: str) -> None:
    """Skip an unreadable document or folder; its indexed documents stay unchanged."""
    found.files += [store.places_by_file[path] for path in indexed]
    found.kept += len(indexed)
    found.skipped += not indexed
    outcome = f"kept as indexed before, {len(indexed):,} documents" if indexed else "skipped"
    found.problems.append(Problem(outcome, message))


def _read(found: Plan, store: IndexWriter, source: Source, settings: Settings, sampled: int) -> None:
    """Add a new or changed document; `DataError` if it cannot be read, with nothing added."""
    file = SourceFile(source.file, source.size, source.digest, source.language if settings.names else "")
    notes, languages, sample = Notes(), Counter[str](), Sample()
    parts, lines, cut = [passage_keys([])], [], passages(source, settings, notes)
    while some := list(islice(cut, _AT_ONCE)):
        keys = passage_keys(some)
        parts.append(keys)
        lines += [passage.line for passage in some]
        languages.update(passage.language for passage in some)
        for passage, key in zip(some, keys, strict=True):
            _draw(sample.setdefault(passage.language, []), (-int.from_bytes(key.tobytes()), passage.text), sampled)
    keys = np.concatenate(parts)
    found.files.append(FilePlaces(file, keys, np.array(lines, np.int32)))
    lacking = {key.tobytes() for key in keys[~store.known(keys)]}
    found.changed.append((source, frozenset(lacking - found.new)))
    found.new |= lacking
    found.languages += languages
    for language, drawn in sample.items():
        for entry in drawn:
            _draw(found.sample.setdefault(language, []), entry, sampled)
    found.problems += notes.problems
    found.rows += notes.rows
    for what, times in notes.counts.items():
        found.counts.setdefault(what, []).append((times, source.file))


def _draw(drawn: Drawn, entry: tuple[int, str], count: int) -> None:
    """Keep distinct texts with the smallest keys: a sample independent of document order."""
    # The first of a heap is its smallest, and an entry has the negative of its key.
    if len(drawn) < count:
        if entry not in drawn:
            heappush(drawn, entry)
    elif count and entry > drawn[0] and entry not in drawn:
        heapreplace(drawn, entry)


def new_passages(changed: Iterable[tuple[Source, frozenset[bytes]]], settings: Settings) -> Iterator[Passage]:
    """Yield distinct passages without a vector; `DataError` if a document changes meanwhile."""
    for source, keys in changed:
        left, cut = set(keys), passages(source, settings, Notes())
        while left and (some := list(islice(cut, _AT_ONCE))):
            for passage, key in zip(some, map(bytes, passage_keys(some)), strict=True):
                if key in left:
                    left.remove(key)
                    yield passage
        if left:
            raise DataError(f"{source.file}: it changed while it was read; run metasearch index again")


def _require_named(store: IndexWriter, sources: Sequence[Source], hidden: Iterable[str]) -> None:
    named = {*hidden, *(source.file for source in sources)}
    others = [path for path in store.files if path not in named]
    if forgotten := [path for path in others if _has_content(path)]:
        raise ConfigError(
            f"{store.folder} has {len(forgotten):,} existing documents that were not named, such as "
            f"'{forgotten[0]}': name them too, or pass --prune to remove them"
        )
    # Names are as they were given: from another folder, documents that are there seem to be gone.
    if others and len(others) == len(store.files) and not any(map(os.path.isabs, others)):
        known = {file.sha256 for file in store.files.values()}
        if not any(_digest(source) in known for source in sources):
            raise ConfigError(
                f"of the {len(others):,} documents of {store.folder}, such as '{others[0]}', none was named, under "
                f"this name or another, and none is there as seen from {Path.cwd()}: call this in the folder that "
                "their names begin in, or allow to --prune them"
            )


def _digest(source: Source) -> str:
    """Return a document's hash; empty if it cannot be read."""
    try:
        return source.digest
    except DataError:
        return ""


def _has_content(path: str) -> bool:
    """Return whether a document exists and is not empty."""
    try:
        found = Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise DataError(f"{path}: cannot be checked: {error.strerror or error}") from None
    return stat.S_ISREG(found.st_mode) and found.st_size > 0
