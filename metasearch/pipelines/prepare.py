"""`metasearch prepare`: clean parallel text once, in several processes, into a folder of `datasets`.

First all lines are cleaned, block by block, into a file of Arrow; the hashes of the pairs go to another one. Then
duplicates are found by their hashes, and the pairs that stay are written. Memory does not grow with the corpus. A
preparation that is stopped leaves nothing behind: give the command again.
"""

import hashlib
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metasearch.compress.output import whole
from metasearch.config import yaml
from metasearch.config.distillation import STAGE_SETTINGS, CorpusSettings
from metasearch.config.extras import import_extra
from metasearch.config.languages import normalise_tag, primary_language
from metasearch.config.library import Library
from metasearch.data.benchmark import load_benchmark
from metasearch.data.documents.languages import detector
from metasearch.data.overlap import Index, TestSet, key, set_of, set_of_file
from metasearch.data.parallel.files import Part, Sides, clean, find, read_sides
from metasearch.data.parallel.saved import COLUMNS, REPORT, read_batches, write_table
from metasearch.data.report import Report
from metasearch.errors import ConfigError, RunFolderError, nearest
from metasearch.io import atomic_write, require_room
from metasearch.runs.callbacks import SILENT, Callback

LINES = 2**14
"""Lines of a block."""
_BUCKET = 2**20
"""Hashes that are compared at a time, about."""


class Block(NamedTuple):
    """Cleaned lines of one part.

    Attributes:
        part: number of the part.
        lines: number of lines read.
        texts: sources, targets and line numbers of the pairs that stay.
        hashes: 16 bytes for each of these pairs.
        dropped: number and reason of each other line.
    """

    part: int
    lines: int
    texts: tuple[list[str], list[str], list[int]]
    hashes: bytes
    dropped: list[tuple[int, str]]


@dataclass
class Cleaner:
    """Decides which lines stay; each process has one.

    Attributes:
        settings: how pairs are cleaned.
        across: whether a pair of an earlier file is a duplicate, too.
        detect: languages to detect among; `("all",)` for all, empty for no detection.
        tests: test sets whose texts are dropped.
    """

    settings: CorpusSettings
    across: bool
    detect: tuple[str, ...]
    tests: tuple[TestSet, ...]

    @cached_property
    def _find_test_set(self) -> Callable[[str], str]:
        indices = [Index(test) for test in self.tests]

        @lru_cache(LINES)  # many pairs share their source
        def found(text: str) -> str:
            normalised = key(text)
            return next((index.name for index in indices if index.find(normalised)), "")

        return found

    @cached_property
    def _detect_language(self) -> Callable[[str], str]:
        return detector(() if self.detect == ("all",) else self.detect)

    def block(self, lines: Sequence[Sides | None], first: int, part: int, codes: tuple[str, str]) -> Block:
        """Clean lines of a part, numbered from `first`; `codes` are the languages of both sides."""
        # Without `across`, equal pairs of two files have different hashes.
        seed = hashlib.blake2b(("\x1f".join(codes) if self.across else str(part)).encode(), digest_size=32).digest()
        sources, targets, numbers, hashes = list[str](), list[str](), list[int](), list[bytes]()
        dropped = list[tuple[int, str]]()
        for number, line in enumerate(lines, first):
            found = clean(line, self.settings)
            reason = found if isinstance(found, str) else self._reason(found, codes)
            if reason:
                dropped.append((number, reason))
                continue
            sources.append(found[0])
            targets.append(found[1])
            numbers.append(number)
            source, target = (text.encode("utf-8", "surrogatepass") for text in found)
            length = len(source).to_bytes(8, "little")
            hashes.append(hashlib.blake2b(length + source + target, digest_size=16, key=seed).digest())
        return Block(part, len(lines), (sources, targets, numbers), b"".join(hashes), dropped)

    def _reason(self, texts: tuple[str, str], codes: tuple[str, str]) -> str:
        """Return the reason to drop a pair; the empty text where it stays."""
        for text in texts if self.tests else ():
            if name := self._find_test_set(text):
                return f"in the test set {name}"
        for text, language, side in zip(texts, codes, ("source", "translation"), strict=True):
            # Detection knows no region or script, as in zh-CN.
            if self.detect and self._detect_language(text) != primary_language(language):
                return f"{side} in another language"
        return ""


@dataclass(frozen=True)
class Preparation:
    """A prepared corpus: its files with their numbers of pairs, and a count of lines for each."""

    parts: tuple[Part, ...]
    reports: tuple[Report, ...]
    ignored: tuple[str, ...]
    exclude: tuple[str, ...]
    size: int

    @property
    def dropped(self) -> Counter[str]:
        """Reason → lines that were dropped for it, the most frequent first."""
        found: Counter[str] = Counter()
        for report in self.reports:
            found.update(report.dropped)
        return Counter(dict(found.most_common()))

    def totals(self) -> dict[str, int]:
        """Return the sizes of the corpus; lines read are pairs kept and lines dropped."""
        return {
            "lines read": sum(report.read for report in self.reports),
            "pairs kept": sum(part.pairs for part in self.parts),
            "lines dropped": self.dropped.total(),
            "bytes": self.size,
        }

    def summary(self) -> str:
        """Return the counts in a few lines."""
        sizes = self.totals()
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.items()) or "none"
        return f"lines read: {sizes['lines read']:,}\ndropped: {reasons}\npairs: {sizes['pairs kept']:,}"

    def tree(self) -> dict[str, Any]:
        """Return the counts of all files, and examples of dropped lines."""
        parts = [
            {
                "paths": [str(path) for path in part.paths],
                "corpus": part.corpus,
                "languages": [part.pivot, part.language],
                "read": report.read,
                "pairs": part.pairs,
                "dropped": dict(report.dropped),
            }
            for part, report in zip(self.parts, self.reports, strict=True)
        ]
        examples = [line for report in self.reports for line in report.examples]
        found = {"dropped": dict(self.dropped), "parts": parts, "examples": examples}
        return {**self.totals(), **found, "ignored": self.ignored, "exclude": self.exclude}


def prepare_corpus(
    paths: Sequence[str | Path],
    folder: Path,
    settings: Mapping[str, Any] | None = None,
    across: bool = False,
    detect: Sequence[str] = (),
    exclude: Sequence[str] = (),
    data: str | None = None,
    include: Sequence[str] = (),
    processes: int = 1,
    callback: Callback = SILENT,
) -> Preparation:
    """Prepare a parallel corpus for `metasearch distill --corpus`.

    Args:
        paths: files, folders and hub names of parallel text.
        folder: folder of the corpus; new or empty.
        settings: keys of `CorpusSettings` except `STAGE_SETTINGS`, which a stage of a distillation has.
        across: also drop a pair of an earlier file.
        detect: drop pairs with a side in another language, detected among these; `("all",)` among all.
        exclude: tasks and files whose texts are dropped.
        data: folder of the tasks' files.
        include: folders with further tasks.
        processes: number of processes; the result has the same bits for any number.
        callback: called with the lines read and the pairs written.

    Raises:
        ConfigError: a name or a setting is wrong, or pyarrow is not installed.
        DataError: a file is missing, damaged or has no pair.
        RunFolderError: the folder is not empty or cannot be written, or a process died.
    """
    import_extra("pyarrow", "corpora", "metasearch prepare")
    if names := sorted(STAGE_SETTINGS & set(settings or {})):
        name = names[0]
        raise ConfigError(f"settings of the corpus: {name} is a setting of stages: --set stages.NAME.corpus.{name}=...")
    chosen = yaml.check(dict(settings or {}), CorpusSettings, "settings of the corpus")
    parts, ignored = find([Path(path) for path in paths], chosen)
    tests = tuple(_test_set(name, data, include) for name in dict.fromkeys(exclude))
    names = [test.name for test in tests]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ConfigError(f"--exclude: duplicate name '{twice}'; rename a file")
    languages = tuple(primary_language(normalise_tag(language)) for language in detect)
    _check_languages(languages, parts)
    cleaner = Cleaner(chosen, across, languages, tests)
    with whole(folder) as new, _pool(cleaner, processes) as clean_blocks:
        # Of compressed files the texts take more.
        size = sum(path.stat().st_size for part in parts for path in part.paths if path.is_file())
        require_room(new, 2 * size, "the texts, twice while duplicates are found,")
        lines = CleanLines(new / "work", parts)
        lines.write(clean_blocks(_blocks(parts)), callback)
        sha256 = write_table(new, lines.distinct(callback))
        shutil.rmtree(new / "work")
        for part, report in zip(parts, lines.reports, strict=True):
            report.require_pairs(part.path)
        kept = tuple(replace(part, pairs=report.kept) for part, report in zip(parts, lines.reports, strict=True))
        size = sum(path.stat().st_size for path in new.glob("*.arrow"))
        done = Preparation(kept, tuple(lines.reports), ignored, tuple(names), size)
        content = {**done.tree(), "sha256": {"data-00000-of-00001.arrow": sha256}}
        atomic_write(new / REPORT, f"{json.dumps(content, ensure_ascii=False, indent=1)}\n")
    return done


class CleanLines:
    """Cleaned lines in files in `folder`, until duplicates are known; counts lines in `reports`."""

    def __init__(self, folder: Path, parts: Sequence[Part]) -> None:
        folder.mkdir()
        self._texts, self._hashes, self._parts = folder / "texts.arrow", folder / "hashes", parts
        self._numbers: list[int] = []
        """Number of the part of each block."""
        self.reports = [Report() for _ in parts]

    def write(self, blocks: Iterable[Block], callback: Callback) -> None:
        """Write blocks, and count the lines that are dropped."""
        import pyarrow as arrow

        schema = arrow.schema({"source": arrow.string(), "target": arrow.string(), "line": arrow.int64()})
        lines = 0
        with (
            self._texts.open("wb") as file,
            self._hashes.open("wb") as hashes,
            arrow.ipc.new_stream(file, schema) as writer,
        ):
            for block in blocks:
                report, place = self.reports[block.part], self._parts[block.part].path
                report.read += block.lines
                for number, reason in block.dropped:
                    report.drop(reason, f"{place}:{number}")
                writer.write_batch(arrow.record_batch(list(block.texts), schema=schema))
                hashes.write(block.hashes)
                self._numbers.append(block.part)
                lines += block.lines
                callback.on_prepare("lines read", lines, 0)

    def distinct(self, callback: Callback) -> Iterator[Any]:
        """Yield the pairs without duplicates, as batches of Arrow with the columns of a prepared corpus."""
        import pyarrow as arrow

        first = find_first(self._hashes)
        done = 0
        for number, batch in zip(self._numbers, read_batches(self._texts), strict=True):
            part, stays = self._parts[number], first[done : done + len(batch)]
            lines = batch.column("line").to_pylist()
            for i in np.flatnonzero(~stays).tolist():
                self.reports[number].drop("duplicate", f"{part.path}:{lines[i]}")
            done += len(batch)
            callback.on_prepare("pairs written", done, len(first))
            own = batch.filter(arrow.array(stays))
            labels = [arrow.repeat(text, len(own)) for text in (part.pivot, part.language, part.corpus)]
            yield arrow.record_batch([own.column("source"), own.column("target"), *labels], list(COLUMNS))


def find_first(path: Path) -> NDArray[np.bool_]:
    """Return whether each of N hashes in a file is the first of its value `(N,)`.

    Two of a billion different pairs share a hash of 128 bits with a probability of 1.5e-21. Hashes are compared in
    buckets, so that memory grows by one byte a pair.
    """
    count = path.stat().st_size // 16
    first = np.ones(count, np.bool_)
    buckets = -(-count // _BUCKET)
    for bucket in range(buckets):
        rows, hashes = [], []
        for start in range(0, count, _BUCKET):
            block = np.fromfile(path, "<u8", 2 * _BUCKET, offset=16 * start).reshape(-1, 2)
            own = np.flatnonzero(block[:, 0] % buckets == bucket)
            rows.append(start + own)
            hashes.append(block[own])
        found, numbers = np.concatenate(hashes), np.concatenate(rows)
        # Stable: of equal hashes the first line comes first.
        order = np.lexsort((found[:, 1], found[:, 0]))
        same = (found[order][1:] == found[order][:-1]).all(1)
        first[numbers[order[1:][same]]] = False
    return first


def _blocks(parts: Sequence[Part]) -> Iterator[tuple[list[Sides | None], int, int, tuple[str, str]]]:
    """Yield the arguments of `Cleaner.block` for all lines."""
    for number, part in enumerate(parts):
        lines = read_sides(part)
        for first in itertools.count(1, LINES):
            block = list(itertools.islice(lines, LINES))
            if not block:
                break
            yield block, first, number, (part.pivot, part.language)


def _test_set(name: str, data: str | None, include: Sequence[str]) -> TestSet:
    """Return the texts of a task or of a file."""
    library = Library(include)
    tasks = library.names("task")
    if name in tasks:
        # A task with data in its own folder ignores the folder of all tasks.
        where = None if library.task(name).data else data
        return set_of(name, load_benchmark(name, data=where, include=tuple(include)).data)
    if not Path(name).exists():
        raise ConfigError(f"--exclude {name}: neither a file nor a task.{nearest(name, tasks)}")
    return set_of_file(Path(name))


def _check_languages(detect: Sequence[str], parts: Sequence[Part]) -> None:
    """Raise `ConfigError` where the language of a file cannot be detected."""
    for part in parts if detect else ():
        for language in map(primary_language, (part.pivot, part.language)):
            if tuple(detect) == ("all",):
                detector([language])
            elif language not in detect:
                raise ConfigError(f"--detect {','.join(detect)}: {part.path} is in {language}, too; name all languages")


# Processes that clean blocks; they never import torch.

_cleaner: Cleaner


def _begin(cleaner: Cleaner) -> None:
    """Make this process a worker that ends with its parent, however that ends."""
    global _cleaner
    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    _cleaner = cleaner


def _end_with(sentinel: Any) -> None:
    wait([sentinel])
    os._exit(1)


def _clean(arguments: tuple[Any, ...]) -> Block:
    return _cleaner.block(*arguments)


@contextmanager
def _pool(cleaner: Cleaner, processes: int) -> Iterator[Callable[[Iterable[tuple[Any, ...]]], Iterator[Block]]]:
    """Yield a function that cleans blocks in order; with one process, in this one."""
    if processes == 1:
        yield lambda calls: (cleaner.block(*arguments) for arguments in calls)
        return
    # Spawned: a fork of a process with threads, as tokenizers have, may wait forever.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _begin, (cleaner,))

    def each(calls: Iterable[tuple[Any, ...]]) -> Iterator[Block]:
        # Few blocks are read ahead, to save memory.
        waiting: deque[Future[Block]] = deque()
        for arguments in calls:
            waiting.append(pool.submit(_clean, arguments))
            if len(waiting) > processes + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    try:
        yield each
    except BrokenProcessPool:
        raise RunFolderError(
            "a process of the preparation died, perhaps for lack of memory; give the command again with fewer --jobs"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)
