"""Clean the files of a parallel corpus line by line, in one process or several."""

import hashlib
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, MutableSequence, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property, lru_cache
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

from metasearch.config.distillation import CorpusSettings
from metasearch.config.languages import UNKNOWN, primary_language
from metasearch.data.formats.text_files import Report
from metasearch.data.languages import detector
from metasearch.data.overlap import Index, TestSet, key
from metasearch.data.parallel.files import clean, read_sides
from metasearch.data.parallel.names import Part
from metasearch.errors import RunFolderError

OTHER_LANGUAGE = " in another language"
"""End of the reason to drop a pair whose language is not that of its file."""
_EVERY_SECONDS = 1.0
"""Time between two looks at how far the processes are."""


@dataclass
class Cleaner:
    """Decides which lines stay; each process has one.

    Attributes:
        settings: how pairs are cleaned.
        across: whether a pair of an earlier file is a duplicate, too.
        detect: languages to detect among; `("all",)` for all, empty for no detection.
        tests: test sets whose texts are dropped.
        lines: lines that are cleaned at a time.
    """

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

    def clean_part(self, number: int, part: Part, folder: Path, count: Callable[[int], None]) -> Report:
        """Write the pairs that stay to `NUMBER.arrow`, and 16 bytes for each to `NUMBER.hashes`; return the counts.

        `count` is called with the number of lines in each block.
        """
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
                count(len(block))
        return report

    def _reason(self, texts: tuple[str, str], codes: tuple[str, str]) -> str:
        """Return the reason to drop a pair; the empty text where it stays."""
        for text in texts if self.tests else ():
            if name := self._find_test_set(text):
                return f"in the test set {name}"
        for text, language, side in zip(texts, codes, ("source", "translation"), strict=True):
            # Detection knows no region or script, as in zh-CN. A text may tell no language, as `OK` does.
            if self.detect and self._detect_language(text) not in (UNKNOWN, primary_language(language)):
                return f"{side}{OTHER_LANGUAGE}"
        return ""


# Processes that clean parts; they never import torch.

_cleaner: Cleaner
_read: MutableSequence[int]


def _begin(cleaner: Cleaner, read: MutableSequence[int]) -> None:
    """Make this process a worker that ends with its parent, however that ends."""
    global _cleaner, _read
    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    _cleaner, _read = cleaner, read


def _end_with(sentinel: Any) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _clean_part(number: int, part: Part, folder: Path) -> Report:
    def count(lines: int) -> None:
        _read[number] += lines

    return _cleaner.clean_part(number, part, folder, count)


def clean_parts(
    cleaner: Cleaner, parts: Sequence[Part], folder: Path, processes: int, progress: Callable[[int], None]
) -> list[Report]:
    """Return the counts of each part; with one process, all are cleaned in this one. `progress` gets the lines read."""
    if processes == 1:
        done = 0

        def count(lines: int) -> None:
            nonlocal done
            done += lines
            progress(done)

        return [cleaner.clean_part(number, part, folder, count) for number, part in enumerate(parts)]
    # Spawned: a fork of a process with threads, as tokenizers have, may wait forever.
    context = get_context("spawn")
    # The lines of each part, written by one process each: a lock would be held for ever by a process that is killed.
    read = context.RawArray("q", len(parts))
    with ProcessPoolExecutor(processes, context, _begin, (cleaner, read)) as pool:
        try:
            calls = [pool.submit(_clean_part, number, part, folder) for number, part in enumerate(parts)]
            reports = []
            for call in calls:
                while wait([call], _EVERY_SECONDS).not_done:
                    progress(sum(read))
                reports.append(call.result())
            progress(sum(read))
            return reports
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
