"""Documents become passages, one after the other: memory does not grow with their number or length."""

import logging
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import tee
from pathlib import Path

from metasearch.config.languages import UNKNOWN, is_known
from metasearch.data.documents.chunking import Chunker, Settings
from metasearch.data.documents.passage import Notes, Passage, Section
from metasearch.data.documents.source import Source, sources
from metasearch.errors import DataError

NO_TEXT = "documents without text"

log = logging.getLogger(__name__)


def read(paths: Iterable[str | Path], settings: Settings | None = None) -> Iterator[Passage]:
    """Yield the passages in files and folders; see `sources` and `passages`.

    A document that is found in a folder and cannot be read is skipped, from its damage on, with a warning.

    Example:
        >>> from metasearch.data.documents.read import read
        >>> passages = list(read(["docs"]))
    """
    asked = settings or Settings()
    for source in sources(paths, asked.names):
        try:
            yield from passages(source, asked)
        except DataError as error:
            if source.named:
                raise
            log.warning("document skipped: %s", error)


def passages(source: Source, settings: Settings, notes: Notes | None = None) -> Iterator[Passage]:
    """Yield a document's passages in order."""
    found = Notes() if notes is None else notes
    cutter = Chunker(settings)
    count = 0
    # When it is used: each reader needs a library of its own.
    reader = import_module(f"metasearch.data.documents.readers.{source.reader}")
    for section in reader.sections(source.path, settings, found):
        pieces, places = tee(cutter.cut(section, found))
        lines = section.lines(offset for offset, _ in places)
        for (_, text), line in zip(pieces, lines, strict=True):
            count += 1
            yield Passage(text, source.file, line, _language(section, text, source, settings), section.fields)
    if not count:
        found.counts[NO_TEXT] += 1
    found.close(source.file)
    if notes is None:
        for problem in found.problems:
            log.warning("%s", problem)
        for what, times in found.counts.items():
            log.warning("%s: %s: %d", source.file, what, times)


def _language(section: Section, text: str, source: Source, settings: Settings) -> str:
    told = (section.language, source.language if settings.names else "", settings.language or "")
    tag = next(filter(is_known, told), "")
    return tag or (settings.detect(text) if settings.detect else UNKNOWN)
