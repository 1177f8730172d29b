"""Reads a parallel corpus and counts what it leaves out."""

from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from metasearch.data.normalise import normalise
from metasearch.data.parallel.corpus import Corpus, Part
from metasearch.data.parallel.files import Source, find
from metasearch.data.parallel.lines import Sides, sides
from metasearch.data.report import Tally
from metasearch.errors import DataError
from metasearch.spec.corpus import CorpusSettings

Lengths = Callable[[Sequence[str]], ArrayLike]
"""Texts → how many tokens each has."""


def read_corpus(paths: Sequence[Path], settings: CorpusSettings, lengths: Lengths | None = None) -> Corpus:
    """Read all pairs that the settings ask for.

    A damaged line, one side of which is missing, empty, no UTF-8 or holds a NUL character, is dropped and counted, and
    so is a pair that stood in the same file before. Texts are stripped of white space at both ends.

    Args:
        paths: files and folders; see `metasearch.data.parallel.names` for the names that are known.
        settings: which pairs to read; `balance` and `dev` are for training: `Corpus.groups`, `Corpus.hold_out`.
        lengths: counts tokens for `max_tokens`; without it, that is left to `Corpus.drop_long`.

    Raises:
        DataError: a file is missing, damaged, empty or holds no pair; nothing is there for a language or a corpus that
            is asked for; or no pair is short enough.
    """
    sources, ignored = find(paths, settings)
    reader = _Reader(settings)
    for source in sources:
        reader.read(source)
    corpus = reader.corpus(ignored)
    if settings.max_tokens and lengths is not None:
        return corpus.drop_long(lengths(corpus.texts), settings.max_tokens)
    return corpus


class _Reader:
    """Collects pairs file by file; a text that occurs often is held once."""

    def __init__(self, settings: CorpusSettings) -> None:
        self.settings = settings
        self.row: dict[str, int] = {}
        self.source, self.target, self.part = array("i"), array("i"), array("h")
        self.parts: list[Part] = []
        self.tally = Tally()

    def read(self, source: Source) -> None:
        """Read a file, or the two files of a Moses pair."""
        before = len(self.source)
        tally = Tally()
        seen: set[int] = set()
        for tally.read, line in enumerate(sides(source), 1):
            reason = self._add(line, seen)
            if reason:
                tally.drop(reason, f"{source.path}:{tally.read}")
            if len(seen) == self.settings.max_lines > 0:
                break
        pairs = len(self.source) - before
        if not pairs:
            why = ", ".join(f"{count} {reason}" for reason, count in tally.dropped.items())
            problem = f"no line of {tally.read} is a pair: {why}" if tally.read else "the file is empty"
            raise DataError(f"{source.path}: {problem}")
        self.tally.include(tally)
        self.part.extend([len(self.parts)] * pairs)
        self.parts.append(Part(source.path, source.corpus, source.language, self.settings.pivot, pairs))

    def corpus(self, ignored: tuple[str, ...]) -> Corpus:
        """Return what was collected."""
        source, target = np.array(self.source, np.int32), np.array(self.target, np.int32)
        part, report = np.array(self.part, np.int16), self.tally.report(ignored)
        return Corpus(list(self.row), source, target, part, tuple(self.parts), report)

    def _add(self, line: Sides | None, seen: set[int]) -> str:
        """Add a pair, or return why not."""
        if line is None:
            return "no tab"
        try:
            first, second = line[0].decode().strip(), line[1].decode().strip()
        except UnicodeDecodeError:
            return "not UTF-8"
        if self.settings.normalise:
            first, second = normalise(first), normalise(second)
        if "\0" in first or "\0" in second:
            return "NUL character"
        if not first or not second:
            return "empty side"
        if 0 < self.settings.max_chars < max(len(first), len(second)):
            return f"over {self.settings.max_chars} characters"
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
