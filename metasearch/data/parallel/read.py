"""Reads a parallel corpus and counts what it leaves out."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from metasearch.data.normalise import normalise
from metasearch.data.parallel.corpus import Corpus
from metasearch.data.parallel.files import Part, find
from metasearch.data.report import Report
from metasearch.errors import DataError
from metasearch.formats.blank import blank
from metasearch.formats.parquet import text_pairs
from metasearch.formats.text_files import byte_lines
from metasearch.spec.corpus import CorpusSettings

Sides = tuple[bytes, bytes]
"""The pivot side and the translation of a line, as bytes."""
Lengths = Callable[[Sequence[str]], ArrayLike]
"""Texts → how many tokens each has."""


def read_corpus(paths: Sequence[Path], settings: CorpusSettings, lengths: Lengths | None = None) -> Corpus:
    """Read all pairs that the settings ask for.

    A damaged line, one side of which is missing, blank, no UTF-8 or holds a NUL character, is dropped and counted, and
    so is a pair that stood in the same file before. Texts are stripped of white space at both ends.

    Args:
        paths: files and folders; see `metasearch.data.parallel.names` for the names that are known.
        settings: which pairs to read; `balance` and `dev` are for training: `Corpus.groups`, `Corpus.hold_out`.
        lengths: counts tokens for `max_tokens`; without it, that is left to `Corpus.drop_long`.

    Raises:
        DataError: a file is missing, damaged, empty or holds no pair; nothing is there for a language or a corpus that
            is asked for; or no pair is short enough.
    """
    parts, ignored = find(paths, settings)
    reader = _Reader(settings, Report(ignored=ignored))
    read = [reader.read(part) for part in parts]
    source, target = np.array(reader.source, np.int32), np.array(reader.target, np.int32)
    part = np.repeat(np.arange(len(read), dtype=np.int16), [part.pairs for part in read])
    corpus = Corpus(list(reader.row), source, target, part, tuple(read), reader.report)
    if settings.max_tokens and lengths is not None:
        return corpus.drop_long(lengths(corpus.texts), settings.max_tokens)
    return corpus


class _Reader:
    """Collects pairs file by file; a text that occurs often is held once."""

    def __init__(self, settings: CorpusSettings, report: Report) -> None:
        self.settings, self.report = settings, report
        self.row: dict[str, int] = {}
        self.source, self.target = array("i"), array("i")

    def read(self, part: Part) -> Part:
        """Read a file, or the two files of a Moses pair, and return it with the number of its pairs."""
        report = Report()
        seen: set[int] = set()
        # The loop counts in the report itself, so that it is right wherever the loop ends.
        for report.read, line in enumerate(sides_of(part), 1):
            reason = self._add(line, seen)
            if reason:
                report.drop(reason, f"{part.path}:{report.read}")
            if len(seen) == self.settings.max_lines > 0:
                break
        if not seen:
            why = ", ".join(f"{count} {reason}" for reason, count in report.dropped.items())
            problem = f"no line of {report.read} is a pair: {why}" if report.read else "the file is empty"
            raise DataError(f"{part.path}: {problem}")
        self.report.include(report)
        return replace(part, pairs=len(seen))

    def _add(self, line: Sides | None, seen: set[int]) -> str:
        """Add a pair, or return why not."""
        found = cleaned(line, self.settings)
        if isinstance(found, str):
            return found
        first, second = found
        # After all checks: a line that is dropped leaves no text in the corpus.
        source = self.row.setdefault(first, len(self.row))
        target = self.row.setdefault(second, len(self.row))
        # One number takes a third of the memory of a tuple of two.
        pair = source << 32 | target
        if pair in seen:
            return "duplicate"
        seen.add(pair)
        self.source.append(source)
        self.target.append(target)
        return ""


def cleaned(line: Sides | None, settings: CorpusSettings) -> tuple[str, str] | str:
    """Return both texts of a line, or in a text why it is left out; duplicates and tokens are not looked at."""
    if line is None:
        return "no tab"
    try:
        first, second = line[0].decode().strip(), line[1].decode().strip()
    except UnicodeDecodeError:
        return "not UTF-8"
    if settings.normalise:
        first, second = normalise(first), normalise(second)
    if "\0" in first or "\0" in second:
        return "NUL character"
    if blank(first) or blank(second):
        return "empty side"
    if 0 < settings.max_chars < max(len(first), len(second)):
        return f"over {settings.max_chars} characters"
    return first, second


def sides_of(part: Part) -> Iterator[Sides | None]:
    """Yield the pivot side and the translation of each line, as bytes; None for a line that has no two columns."""
    if len(part.paths) == 2:
        yield from _aligned(*part.paths)
        return
    if part.columns:
        yield from text_pairs(part.path, *part.columns)
        return
    # Bytes are split: a line that is no UTF-8 is dropped and counted later, and does not end the reading.
    for line in byte_lines(part.path):
        columns = line.split(b"\t", 2)
        if len(columns) < 2:
            yield None
        else:
            yield (columns[0], columns[1]) if part.pivot_first else (columns[1], columns[0])


def _aligned(pivot: Path, other: Path) -> Iterator[Sides]:
    left, right = byte_lines(pivot), byte_lines(other)
    for number, (source, target) in enumerate(zip_longest(left, right)):
        if source is None or target is None:
            # `zip_longest` has taken one line of the longer side.
            longer = number + 1 + sum(1 for _ in (right if source is None else left))
            counts = (number, longer) if source is None else (longer, number)
            raise DataError(
                f"{pivot} has {counts[0]} lines, {other} has {counts[1]};"
                " line n of one must be the translation of line n of the other"
            )
        yield source, target
