"""Parallel pairs, stored compactly enough for tens of millions."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metasearch.config.corpus import Balance, CorpusSettings
from metasearch.config.seeding import seed_of
from metasearch.data.formats.blank import blank
from metasearch.data.formats.parquet import text_pairs
from metasearch.data.formats.text_files import byte_lines
from metasearch.data.normalise import normalise
from metasearch.data.parallel.files import Part, find
from metasearch.data.report import Report
from metasearch.data.translation import Translation
from metasearch.errors import DataError
from metasearch.io import fingerprint_of

Rows = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Corpus(Sequence[Translation]):
    """Sentence pairs in a fixed order: files, then lines.

    A part of a corpus shares `texts` with it, so that a row is the same text in all of them.

    Attributes:
        texts: distinct texts, of both sides and all languages; N of them.
        source: rows of `texts` in the pivot language, one for each pair `(P,)`.
        target: rows of their translations `(P,)`.
        part: number of the file in `parts` that each pair is from `(P,)`.
        parts: the files.
        report: counts of their lines.
    """

    texts: Sequence[str]
    source: Rows
    target: Rows
    part: NDArray[np.int16]
    parts: tuple[Part, ...]
    report: Report

    def __len__(self) -> int:
        return len(self.source)

    @overload
    def __getitem__(self, index: int) -> Translation: ...

    @overload
    def __getitem__(self, index: slice) -> "Corpus": ...

    def __getitem__(self, index: int | slice) -> "Translation | Corpus":
        if isinstance(index, slice):
            return self.subset(np.arange(len(self))[index])
        part = self.parts[self.part[index]]
        languages = (part.pivot, part.language)
        return Translation(self.texts[self.source[index]], self.texts[self.target[index]], languages)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Sorted languages of the translations."""
        return tuple(sorted(self.counts))

    @cached_property
    def counts(self) -> dict[str, int]:
        """Language → how many pairs translate into it."""
        counts: Counter[str] = Counter()
        for part in self.parts:
            counts[part.language] += part.pairs
        # The plus drops languages of which a subset has no pair left.
        return dict(+counts)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that a learner can see: ordered pairs, languages, corpora and files."""
        origins = [(part.pivot, part.language, part.corpus, str(i)) for i, part in enumerate(self.parts)]
        rows = zip(self.source.tolist(), self.target.tolist(), self.part.tolist(), strict=True)
        return fingerprint_of((*origins[part], self.texts[source], self.texts[target]) for source, target, part in rows)

    def describe(self) -> str:
        """Return the size in words, such as `161000 pairs of en with ar, de from 2 files`."""
        files = sum(part.pairs > 0 for part in self.parts)
        return f"{len(self)} pairs of {self.parts[0].pivot} with {', '.join(self.languages)} from {files} files"

    def lengths(self, by_text: ArrayLike) -> NDArray[np.int64]:
        """Return the longer side's length for each pair `(P,)`, from all text lengths `(N,)`."""
        lengths = np.asarray(by_text, np.int64)
        if lengths.shape != (len(self.texts),):
            raise ValueError(f"expected one length for each of {len(self.texts)} texts, got shape {lengths.shape}")
        return np.maximum(lengths[self.source], lengths[self.target])

    def groups(self, balance: Balance) -> NDArray[np.int16] | None:
        """Return each pair's sampling group `(P,)`: its file or language; None for `none`."""
        if balance == "none":
            return None
        if balance == "file":
            return self.part
        number = {language: i for i, language in enumerate(self.languages)}
        # A language without pairs has no number; no pair is from its file, so that -1 is never read.
        return np.array([number.get(part.language, -1) for part in self.parts], np.int16)[self.part]

    def subset(self, mask: NDArray[np.bool_] | NDArray[np.intp]) -> "Corpus":
        """Return the pairs selected by a mask `(P,)` or by numbers."""
        part = self.part[mask]
        # Files without pairs stay, so that the numbers in `part` keep their meaning.
        pairs = np.bincount(part, minlength=len(self.parts)).tolist()
        parts = tuple(replace(p, pairs=count) for p, count in zip(self.parts, pairs, strict=True))
        return replace(self, source=self.source[mask], target=self.target[mask], part=part, parts=parts)

    def drop_long(self, lengths_by_text: ArrayLike, max_tokens: int) -> "Corpus":
        """Return pairs whose sides are both short enough; the report counts the others.

        Args:
            lengths_by_text: tokens of each of `texts` `(N,)`, not cut at any limit.
            max_tokens: greatest length of a side; `DataError` where no pair is that short.
        """
        lengths = self.lengths(lengths_by_text)
        short = lengths <= max_tokens
        if short.all():
            return self
        if not short.any():
            shortest = int(lengths.min())
            raise DataError(f"max_tokens={max_tokens}: no pair is that short; the shortest one has {shortest} tokens")
        dropped = self.report.dropped + Counter({f"over {max_tokens} tokens": int((~short).sum())})
        return replace(self.subset(short), report=replace(self.report, dropped=dropped))

    def hold_out(self, dev: int, seed: int) -> tuple["Corpus", "Corpus"]:
        """Split off pairs for the dev score; returns (train, dev).

        Sources are drawn once for all languages, so that those with translations into many of them serve them all. A
        source in dev takes all of its translations out of train, the ones that dev does not need, too.

        Args:
            dev: number of pairs of each language in dev; `DataError` where a language is left none to train on.
            seed: seed of the run.
        """
        # A rank of the text alone: what one stage holds out, another one that reads other files does too.
        used, place = np.unique(self.source, return_inverse=True)
        rank = np.array([seed_of(seed, "corpus", "dev", self.texts[row]) for row in used.tolist()])[place]
        languages = np.array([part.language for part in self.parts])[self.part]
        held, kept = held_pairs(self.source, rank, languages, dev)
        return self.subset(kept), self.subset(held)


def held_pairs(
    source: NDArray[Any], rank: NDArray[np.int64], languages: NDArray[np.str_], dev: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return held-out and training pairs among P pairs.

    Args:
        source: number of each pair's source `(P,)`.
        rank: rank of that source `(P,)`; the least are held out.
        languages: language of each pair's translation `(P,)`.
        dev: number of pairs of each language to hold out.

    Raises:
        DataError: a language is left none to train on.
    """
    held = np.zeros(len(source), np.bool_)
    for language in np.unique(languages):
        pairs = np.flatnonzero(languages == language)
        # Stable: pairs of one source have the same rank, and are taken in file order.
        held[pairs[np.argsort(rank[pairs], kind="stable")[:dev]]] = True
    kept = ~np.isin(source, source[held])
    codes, counts = np.unique(languages, return_counts=True)
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        if code not in languages[kept]:
            raise DataError(
                f"dev={dev}: {code} has {count} pairs; none with a source of its own is left to train on."
                " Lower dev, or add text"
            )
    return held, kept


# Reads a parallel corpus and counts what it leaves out.

Sides = tuple[bytes, bytes]
"""The pivot side and the translation of a line, as bytes."""
Lengths = Callable[[Sequence[str]], ArrayLike]
"""Texts → how many tokens each has."""


def read_corpus(paths: Sequence[Path], settings: CorpusSettings, lengths: Lengths | None = None) -> Corpus:
    """Read all pairs that the settings ask for.

    A damaged line, one side of which is missing, blank, no UTF-8 or holds a NUL character, is dropped and counted, and
    so is a pair that stood in the same file before. Texts are stripped of white space at both ends.

    Args:
        paths: files and folders; see `metasearch.data.parallel.files` for the names that are known.
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
        """Read a file, or the two files of a Moses pair; return its pairs."""
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
    """Return both texts of a line, or the reason to drop it; duplicates and tokens are checked elsewhere."""
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
    """Yield pivot side and translation of each line, as bytes; None for a line without two columns."""
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
