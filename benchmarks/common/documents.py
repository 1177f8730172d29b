"""The passages of documents without an index, for benchmarks and tests."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from metasearch.errors import DataError
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.evidence import decide
from metasearch.search.documents.pages import Pages
from metasearch.search.documents.passage import Dropped, Notes, Passage
from metasearch.search.documents.read import Source, add_page, log_notes, passages, sources

log = logging.getLogger("metasearch.search.documents.read")


def read(paths: Iterable[str | Path], settings: Settings | None = None) -> Iterator[Passage]:
    """Yield the passages in files and folders; see `sources` and `passages`.

    A document that is found in a folder and cannot be read is skipped, from its damage on, with a warning.

    """
    asked = settings or Settings()
    detected, shared = Counter[tuple[str, str]](), Counter[str]()
    pages, skipped, dropped = Pages(), set[str](), Counter[Dropped]()
    documents = decide(sources(paths, asked.names), asked)
    for source in documents:
        try:
            add_page(pages, source, asked)
        except DataError as error:
            _skip(source, error)
            skipped.add(source.file)
    pages.decide()
    for source in documents:
        notes = Notes()
        try:
            yield from passages(source, asked, notes, pages) if source.file not in skipped else ()
        except DataError as error:
            _skip(source, error)
            continue
        for problem in notes.problems:
            log.warning("%s", problem)
        for what, times in notes.counts.items():
            log.warning("%s: %s: %d", source.file, what, times)
        detected += notes.detected
        shared += notes.repeated
        dropped.update(notes.dropped)
    log_notes(Notes(detected=detected, repeated=shared), {}, dropped, asked.detect_always)


def _skip(source: Source, error: DataError) -> None:
    """Warn of a document that cannot be read, or raise the error if the user named it."""
    if source.named:
        raise error
    log.warning("document skipped: %s", error)
