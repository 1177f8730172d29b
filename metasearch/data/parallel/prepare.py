"""`metasearch prepare`: clean parallel text once, in several processes, into a folder of `datasets`.

First all lines of each file are cleaned into a file of Arrow; the hashes of its pairs go to another one. Then
duplicates are found by their hashes, and the pairs that stay are written. Memory does not grow with the corpus. A
preparation that is stopped leaves nothing behind: give the command again.
"""

import hashlib
import itertools
import json
import logging
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property, lru_cache
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config import yaml
from metasearch.config.distillation import STAGE_SETTINGS, CorpusSettings
from metasearch.config.extras import import_extra
from metasearch.config.languages import UNKNOWN, normalise_tag, primary_language
from metasearch.data.formats.arrow_files import read_batches
from metasearch.data.formats.text_files import Report
from metasearch.data.languages import detector
from metasearch.data.overlap import Index, TestSet, key
from metasearch.data.parallel.files import clean, find, read_sides
from metasearch.data.parallel.names import Part
from metasearch.data.parallel.saved import COLUMNS, REPORT, write_table
from metasearch.errors import ConfigError, RunFolderError
from metasearch.io import atomic_write, require_room
from metasearch.io.output import whole

log = logging.getLogger(__name__)

LINES = 2**14
"""Lines of a block."""
_BUCKET = 2**20
"""Hashes that are compared at a time, about."""
Progress = Callable[[str, int, int], None]
"""Called with what is counted, the count, and the total."""


def prepare_corpus(
    paths: Sequence[str | Path],
    folder: Path,
    settings: Mapping[str, Any] | None = None,
    across: bool = False,
    detect: Sequence[str] = (),
    exclude: Sequence[TestSet] = (),
    processes: int = 1,
    progress: Progress = lambda what, done, total: None,
) -> dict[str, Any]:
    """Prepare a parallel corpus for `metasearch distill --corpus`; return the content of its `report.json`.

    Args:
        paths: files, folders and hub names of parallel text.
        folder: new or empty.
        settings: keys of `CorpusSettings` except `STAGE_SETTINGS`, which a stage of a distillation has.
        across: also drop a pair of an earlier file.
        detect: drop pairs with a side in another language, detected among these; `("all",)` among all.
        exclude: test sets whose texts are dropped; `metasearch.data.overlap` makes them of tasks and files.
        processes: number of processes; the result has the same bits for any number.
        progress: called with `files read` and `pairs written`.

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
    found = find([Path(path) for path in paths], chosen)
    parts = found.parts
    for skipped in found.describe_ignored():
        log.warning("%s", skipped)
    names = [test.name for test in exclude]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ConfigError(f"--exclude: duplicate name '{twice}'; rename a file")
    languages = tuple(primary_language(normalise_tag(language)) for language in detect)
    _check_languages(languages, parts)
    cleaner = Cleaner(chosen, across, languages, tuple(exclude), LINES)
    with whole(folder) as new:
        # Of compressed files the texts take more.
        size = sum(path.stat().st_size for part in parts for path in part.paths if path.is_file())
        require_room(new, 2 * size, "the texts, twice while duplicates are found,")
        work = new / "work"
        work.mkdir()
        reports = list[Report]()
        for report in _clean_parts(cleaner, parts, work, processes):
            reports.append(report)
            progress("files read", len(reports), len(parts))
        sha256 = write_table(new, _distinct_pairs(work, parts, reports, progress))
        shutil.rmtree(work)
        for part, report in zip(parts, reports, strict=True):
            report.require_pairs(part.path)
        size = sum(path.stat().st_size for path in new.glob("*.arrow"))
        counts = _counts(parts, reports)
        hashes = {"data-00000-of-00001.arrow": sha256}
        content = {**counts, "bytes": size, "ignored": list(found.ignored), "exclude": names, "sha256": hashes}
        atomic_write(new / REPORT, f"{json.dumps(content, ensure_ascii=False, indent=1)}\n")
    return content


def _counts(parts: Sequence[Part], reports: Sequence[Report]) -> dict[str, Any]:
    """Return the counts of lines, as a whole and of each file, and examples of dropped lines."""
    total = Report()
    for report in reports:
        total.include(report)
    files = [
        {
            "paths": [str(path) for path in part.paths],
            "corpus": part.corpus,
            "languages": [part.pivot, part.language],
            "read": report.read,
            "pairs": report.kept,
            "dropped": dict(report.dropped),
        }
        for part, report in zip(parts, reports, strict=True)
    ]
    totals = {"lines read": total.read, "pairs kept": total.kept, "lines dropped": total.dropped.total()}
    return {**totals, "dropped": dict(total.dropped.most_common()), "parts": files, "examples": total.examples}


def _distinct_pairs(work: Path, parts: Sequence[Part], reports: Sequence[Report], progress: Progress) -> Iterator[Any]:
    """Yield the clean pairs without duplicates, as batches of Arrow with the columns of a prepared corpus."""
    import pyarrow as arrow

    first = find_first([work / f"{number}.hashes" for number in range(len(parts))])
    done = 0
    for number, (part, report) in enumerate(zip(parts, reports, strict=True)):
        for batch in read_batches(work / f"{number}.arrow"):
            stays = first[done : done + len(batch)]
            lines = batch.column("line").to_pylist()
            for i in np.flatnonzero(~stays).tolist():
                report.drop("duplicate", f"{part.path}:{lines[i]}")
            done += len(batch)
            progress("pairs written", done, len(first))
            own = batch.filter(arrow.array(stays))
            labels = [arrow.repeat(text, len(own)) for text in (part.pivot, part.language, part.corpus)]
            yield arrow.record_batch([own.column("source"), own.column("target"), *labels], list(COLUMNS))


def find_first(paths: Sequence[Path]) -> NDArray[np.bool_]:
    """Return whether each of N hashes in some files is the first of its value `(N,)`.

    Two of a billion different pairs share a hash of 128 bits with a probability of 1.5e-21. Hashes are compared in
    buckets, so that memory grows by one byte a pair.
    """
    count = sum(path.stat().st_size for path in paths) // 16
    first = np.ones(count, np.bool_)
    buckets = -(-count // _BUCKET)
    for bucket in range(buckets):
        rows, hashes, start = [], [], 0
        for block in _hashes(paths):
            own = np.flatnonzero(block[:, 0] % buckets == bucket)
            rows.append(start + own)
            hashes.append(block[own])
            start += len(block)
        found, numbers = np.concatenate(hashes), np.concatenate(rows)
        # Stable: of equal hashes the first line comes first.
        order = np.lexsort((found[:, 1], found[:, 0]))
        same = (found[order][1:] == found[order][:-1]).all(1)
        first[numbers[order[1:][same]]] = False
    return first


def _hashes(paths: Sequence[Path]) -> Iterator[NDArray[np.uint64]]:
    """Yield the hashes in files, `(N, 2)`, some at a time."""
    for path in paths:
        for offset in range(0, path.stat().st_size, 16 * _BUCKET):
            yield np.fromfile(path, "<u8", 2 * _BUCKET, offset=offset).reshape(-1, 2)


def _check_languages(detect: Sequence[str], parts: Sequence[Part]) -> None:
    """Raise `ConfigError` where the language of a file cannot be detected."""
    for part in parts if detect else ():
        for language in map(primary_language, (part.pivot, part.language)):
            if tuple(detect) == ("all",):
                detector([language])
            elif language not in detect:
                raise ConfigError(f"--detect {','.join(detect)}: {part.path} is in {language}, too; name all languages")


# Files are cleaned line by line, in one process or several.


@dataclass
class Cleaner:
    """Decides which lines stay, some `lines` at a time; each process has one."""

    settings: CorpusSettings
    across: bool
    detect: tuple[str, ...]
    tests: tuple[TestSet, ...]
    lines: int

    @cached_property
    def _find_test_set(self) -> Callable[[str], str]:
        indices = [Index(test) for test in self.tests]

        @lru_cache(self.lines)  # many pairs share their source
        def found(text: str) -> str:
            normalised = key(text)
            return next((index.name for index in indices if index.find(normalised)), "")

        return found

    @cached_property
    def _detect_language(self) -> Callable[[str], str]:
        return detector(() if self.detect == ("all",) else self.detect)

    def clean_part(self, number: int, part: Part, folder: Path) -> Report:
        """Write the pairs that stay to `NUMBER.arrow`, and 16 bytes for each to `NUMBER.hashes`; return the counts."""
        import pyarrow as arrow

        schema = arrow.schema({"source": arrow.string(), "target": arrow.string(), "line": arrow.int64()})
        codes = part.pivot, part.language
        # Without `across`, equal pairs of two files have different hashes.
        seed = hashlib.blake2b(("\x1f".join(codes) if self.across else str(number)).encode(), digest_size=32).digest()
        report, lines = Report(), enumerate(read_sides(part), 1)
        with (
            (folder / f"{number}.arrow").open("wb") as file,
            (folder / f"{number}.hashes").open("wb") as hashes,
            arrow.ipc.new_stream(file, schema) as writer,
        ):
            while block := list(itertools.islice(lines, self.lines)):
                kept: list[tuple[str, str, int]] = []
                # The loop counts in the report itself.
                for report.read, line in block:
                    found = clean(line, self.settings)
                    reason = found if isinstance(found, str) else self._reason(found, codes)
                    if reason:
                        report.drop(reason, f"{part.path}:{report.read}")
                        continue
                    kept.append((found[0], found[1], report.read))
                    source, target = (text.encode("utf-8", "surrogatepass") for text in found)
                    length = len(source).to_bytes(8, "little")
                    hashes.write(hashlib.blake2b(length + source + target, digest_size=16, key=seed).digest())
                columns = [list(column) for column in zip(*kept, strict=True)] or [[], [], []]
                writer.write_batch(arrow.record_batch(columns, schema=schema))
        return report

    def _reason(self, texts: tuple[str, str], codes: tuple[str, str]) -> str:
        """Return the reason to drop a pair; the empty text where it stays."""
        for text in texts if self.tests else ():
            if name := self._find_test_set(text):
                return f"in the test set {name}"
        for text, language, side in zip(texts, codes, ("source", "translation"), strict=True):
            # Detection knows no region or script, as in zh-CN. A text may tell no language, as `OK` does.
            if self.detect and self._detect_language(text) not in (UNKNOWN, primary_language(language)):
                return f"{side} in another language"
        return ""


# Processes that clean parts; they never import torch.

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
    connection.wait([sentinel])
    os._exit(1)


def _clean_part(number: int, part: Part, folder: Path) -> Report:
    return _cleaner.clean_part(number, part, folder)


def _clean_parts(cleaner: Cleaner, parts: Sequence[Part], folder: Path, processes: int) -> Iterator[Report]:
    """Yield the counts of each part; with one process, all are cleaned in this one."""
    if processes == 1:
        yield from (cleaner.clean_part(number, part, folder) for number, part in enumerate(parts))
        return
    # Spawned: a fork of a process with threads, as tokenizers have, may wait forever.
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, (cleaner,)) as pool:
        try:
            yield from pool.map(_clean_part, range(len(parts)), parts, itertools.repeat(folder))
        except BrokenProcessPool:
            raise RunFolderError(
                "a process of the preparation died, perhaps for lack of memory; give the command again with fewer "
                "--jobs"
            ) from None
        except BaseException:
            # Else a stop waits until the others have cleaned their parts.
            for child in multiprocessing.active_children():
                child.terminate()
            raise
