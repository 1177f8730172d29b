"""The pairs of a parallel corpus, in memory or mapped from disk, and what can be done with them."""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from metasearch.config.distillation import CorpusSettings
from metasearch.config.seeding import seed_of
from metasearch.data.formats.text_files import Report
from metasearch.data.parallel.files import choose, clean, find, read_sides
from metasearch.data.parallel.names import Part
from metasearch.data.parallel.saved import SavedTable, TokenCounter, find_saved_corpus
from metasearch.data.records import Translation
from metasearch.errors import DataError
from metasearch.io import fingerprint_of

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextTable:
    """Pairs in memory; a text that occurs often is held once.

    Attributes:
        distinct: distinct texts, of both sides and all languages; T of them.
        source: rows of `distinct` in the pivot language, one for each pair `(N,)`.
        target: rows of their translations `(N,)`.
    """

    distinct: Sequence[str]
    source: NDArray[np.int32]
    target: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.source)

    def texts(self, rows: NDArray[Any]) -> Iterator[tuple[str, str]]:
        """Yield source and target of some rows, in their order."""
        for source, target in zip(self.source[rows].tolist(), self.target[rows].tolist(), strict=True):
            yield self.distinct[source], self.distinct[target]

    def source_numbers(self) -> NDArray[np.int32]:
        """Return the row of the source of each pair in `distinct` `(N,)`."""
        return self.source

    def lengths(self, counter: TokenCounter) -> NDArray[np.int64]:
        """Return the tokens of the longer side of each pair `(N,)`."""
        tokens = np.asarray(counter.count_tokens(self.distinct), np.int64)
        return np.maximum(tokens[self.source], tokens[self.target])


@dataclass(frozen=True, eq=False)
class Corpus(Sequence[Translation]):
    """P pairs of a table in a fixed order.

    Attributes:
        rows: row of each pair in the table, ascending `(P,)`.
        part: number of the file in `parts` that each pair is from `(P,)`.
    """

    table: TextTable | SavedTable
    rows: Rows
    part: NDArray[np.int16]
    parts: tuple[Part, ...]
    report: Report

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Translation: ...

    @overload
    def __getitem__(self, index: slice) -> "Corpus": ...

    def __getitem__(self, index: int | slice) -> "Translation | Corpus":
        if isinstance(index, slice):
            return self.subset(np.arange(len(self))[index])
        part = self.parts[self.part[index]]
        ((source, target),) = self.table.texts(self.rows[[index]])
        return Translation(source, target, (part.pivot, part.language))

    @cached_property
    def counts(self) -> dict[str, int]:
        """Language → how many pairs translate into it; languages that have any, sorted."""
        counts: Counter[str] = Counter()
        for part, pairs in zip(self.parts, self._pairs.tolist(), strict=True):
            counts[part.language] += pairs
        # The plus drops languages of which a subset has no pair left.
        return dict(sorted((+counts).items()))

    @property
    def _pairs(self) -> NDArray[np.int64]:
        """Number of pairs of each file."""
        return np.bincount(self.part, minlength=len(self.parts))

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of the translations that have pairs, sorted."""
        return tuple(self.counts)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that a learner can see: the pairs in order, their languages, corpora and files."""
        if isinstance(self.table, SavedTable):
            return fingerprint_of([[self.table.digest, fingerprint_of([], self.rows.astype("<i8").tobytes().hex())]])
        origins = [(part.pivot, part.language, part.corpus, str(i)) for i, part in enumerate(self.parts)]
        pairs = zip(self.table.texts(self.rows), self.part.tolist(), strict=True)
        return fingerprint_of((*origins[part], *texts) for texts, part in pairs)

    def describe(self) -> str:
        """Return the size in words, such as `161000 pairs of en with ar, de from 2 files`."""
        files = np.count_nonzero(self._pairs)
        return f"{len(self)} pairs of {self.parts[0].pivot} with {', '.join(self.languages)} from {files} files"

    def lengths(self, counter: TokenCounter) -> NDArray[np.int64]:
        """Return the tokens of the longer side of each pair `(P,)`."""
        return self.table.lengths(counter)[self.rows].astype(np.int64)

    def groups(self, balance: str) -> NDArray[np.int16] | None:
        """Return which share of an epoch each pair belongs to `(P,)`: its file or its language; None for `none`."""
        if balance == "none":
            return None
        return self.part if balance == "file" else self._language_numbers

    @property
    def _language_numbers(self) -> NDArray[np.int16]:
        number = {language: i for i, language in enumerate(self.languages)}
        # A language without pairs has no number; no pair is from its file, so that -1 is never read.
        return np.array([number.get(part.language, -1) for part in self.parts], np.int16)[self.part]

    def subset(self, mask: NDArray[np.bool_] | NDArray[np.intp]) -> "Corpus":
        """Return the pairs selected by a mask `(P,)` or by numbers."""
        # Files without pairs stay, so that the numbers in `part` keep their meaning.
        return replace(self, rows=self.rows[mask], part=self.part[mask])

    def drop(self, mask: NDArray[np.bool_], reason: str) -> "Corpus":
        """Return the pairs for which the mask `(P,)` does not hold; the report counts the others."""
        if not mask.any():
            return self
        dropped = self.report.dropped + Counter({reason: int(mask.sum())})
        return replace(self.subset(~mask), report=replace(self.report, dropped=dropped))

    def drop_long(self, counter: TokenCounter, max_tokens: int) -> "Corpus":
        """Return the pairs with at most `max_tokens` tokens on each side; `DataError` if there is none."""
        lengths = self.lengths(counter)
        if lengths.min() > max_tokens:
            raise DataError(
                f"max_tokens={max_tokens}: no pair is that short; the shortest one has {lengths.min()} tokens"
            )
        return self.drop(lengths > max_tokens, f"over {max_tokens} tokens")

    def hold_out(self, dev: int, seed: int) -> tuple["Corpus", "Corpus"]:
        """Split off pairs for the dev score; returns (train, dev). Takes about 3 s for a million pairs.

        Sources are drawn once for all languages, so that those with translations into many of them serve them all. A
        source in dev takes all of its translations out of train, the ones that dev does not need, too.
        """
        numbers = self.table.source_numbers()[self.rows]
        _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
        # A rank of the text alone: what one stage holds out, another one that reads other files does too.
        texts = self.table.texts(self.rows[first])
        rank = np.array([seed_of(seed, "corpus", "dev", source) for source, _ in texts])[place]
        languages = self._language_numbers
        held = np.zeros(len(self), np.bool_)
        for number in range(len(self.languages)):
            pairs = np.flatnonzero(languages == number)
            # Stable: pairs of one source have the same rank, and are taken in file order.
            held[pairs[np.argsort(rank[pairs], kind="stable")[:dev]]] = True
        kept = ~np.isin(place, place[held])
        left = np.bincount(languages[kept], minlength=len(self.languages))
        for language, count in zip(self.languages, left.tolist(), strict=True):
            if not count:
                raise DataError(
                    f"dev={dev}: {language} has {self.counts[language]} pairs; the dev set leaves no other source to "
                    "train on. Lower dev, or add text"
                )
        return self.subset(kept), self.subset(held)


def read_corpus(paths: Sequence[Path], settings: CorpusSettings, counter: TokenCounter | None = None) -> Corpus:
    """Read all pairs that the settings ask for.

    A damaged line, one side of which is missing, blank, no UTF-8 or holds a NUL character, is dropped and counted, and
    so is a pair that stood in the same file before. Texts are stripped of white space at both ends. The texts of a
    saved corpus stay on disk, as they are; see `metasearch.data.parallel.saved`.

    Args:
        paths: files, folders and hub names, or one saved corpus; see `metasearch.data.parallel.names`.
        settings: which pairs to read; `balance` and `dev` are for training: `Corpus.groups`, `Corpus.hold_out`.
        counter: counts tokens for `max_tokens`; without it, that is left to `Corpus.drop_long`.

    Raises:
        DataError: a file is missing, damaged, empty or holds no pair; nothing is there for a language or a corpus that
            is asked for; or no pair is short enough.
        ConfigError: a saved corpus is given together with other files.
    """
    folder = find_saved_corpus(paths)
    corpus = _read_files(paths, settings) if folder is None else _read_saved(folder, settings)
    return corpus.drop_long(counter, settings.max_tokens) if settings.max_tokens and counter else corpus


def require_corpus(paths: Sequence[Path], settings: CorpusSettings) -> None:
    """Raise the errors of `read_corpus` that show before files are read."""
    if find_saved_corpus(paths) is None:
        find(paths, settings)


def _read_saved(folder: Path, settings: CorpusSettings) -> Corpus:
    """Return the pairs of a saved corpus that the settings ask for; texts stay on disk."""
    table = SavedTable(folder, settings.normalise)
    numbers, origins = table.origins()
    parts = tuple(Part((folder,), corpus, target, source) for corpus, source, target in origins)
    chosen = list(parts)
    for key, values in (("corpus", settings.only), ("language", settings.languages), ("pivot", (settings.pivot,))):
        chosen = choose(chosen, key, values, str(folder))
    rows = np.flatnonzero(np.array([part in chosen for part in parts])[numbers])
    corpus = Corpus(table, rows, numbers[rows], parts, Report(read=len(rows)))
    if settings.max_chars:
        corpus = corpus.drop(table.characters()[rows] > settings.max_chars, f"over {settings.max_chars} characters")
    if settings.max_lines:
        later = np.zeros(len(corpus), np.bool_)
        for number in range(len(parts)):
            later[np.flatnonzero(corpus.part == number)[settings.max_lines :]] = True
        corpus = corpus.drop(later, f"after the first {settings.max_lines} pairs of a file")
    corpus.report.require_pairs(folder)
    return corpus


def _read_files(paths: Sequence[Path], settings: CorpusSettings) -> Corpus:
    parts, whole, counts = find(paths, settings), Report(), list[int]()
    row: dict[str, int] = {}
    source, target = array("i"), array("i")
    for part in parts:
        report, seen = Report(), set[int]()
        # The loop counts in the report itself, so that it is right wherever the loop ends.
        for report.read, line in enumerate(read_sides(part, settings.columns), 1):
            texts = clean(line, settings)
            if isinstance(texts, str):
                report.drop(texts, f"{part.path}:{report.read}")
                continue
            # After all checks: a line that is dropped leaves no text in the corpus.
            first, second = (row.setdefault(text, len(row)) for text in texts)
            # One number takes a third of the memory of a tuple of two.
            pair = first << 32 | second
            if pair in seen:
                report.drop("duplicate", f"{part.path}:{report.read}")
                continue
            seen.add(pair)
            source.append(first)
            target.append(second)
            if len(seen) == settings.max_lines:
                break
        report.require_pairs(part.path)
        whole.include(report)
        counts.append(len(seen))
    table = TextTable(list(row), np.array(source, np.int32), np.array(target, np.int32))
    numbers = np.repeat(np.arange(len(parts), dtype=np.int16), counts)
    return Corpus(table, np.arange(len(table)), numbers, tuple(parts), whole)
