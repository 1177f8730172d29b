"""`metasearch prepare`: clean parallel text once, in several processes, into a folder of `datasets`.

First all lines of each file are cleaned into a file of Arrow; the hashes of its pairs go to another one. Then
duplicates are found by their hashes, and the pairs that stay are written. Memory does not grow with the corpus. A
preparation that is stopped leaves nothing behind: give the command again.
"""

import json
import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config import yaml
from metasearch.config.distillation import STAGE_SETTINGS, CorpusSettings
from metasearch.config.extras import import_extra
from metasearch.config.languages import normalise_tag, primary_language
from metasearch.data.formats.arrow_files import read_batches
from metasearch.data.formats.text_files import Report
from metasearch.data.languages import detector
from metasearch.data.overlap import TestSet
from metasearch.data.parallel.cleaner import OTHER_LANGUAGE, Cleaner, clean_parts
from metasearch.data.parallel.files import find
from metasearch.data.parallel.names import Part
from metasearch.data.parallel.saved import COLUMNS, REPORT, write_table
from metasearch.errors import ConfigError
from metasearch.io import atomic_write, require_room
from metasearch.io.output import whole

log = logging.getLogger(__name__)

LINES = 2**14
"""Lines of a block."""
_BUCKET = 2**20
"""Hashes that are compared at a time, about."""
_MANY = 0.05
"""Share of the lines above which a line says that detection among all languages dropped them."""
Progress = Callable[[str, int, int], None]
"""Called with what is counted, the count, and the total, 0 if it is unknown."""


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
        folder: folder of the corpus; new or empty.
        settings: keys of `CorpusSettings` except `STAGE_SETTINGS`, which a stage of a distillation has.
        across: also drop a pair of an earlier file.
        detect: drop pairs with a side in another language, detected among these; `("all",)` among all.
        exclude: test sets whose texts are dropped; `metasearch.data.overlap` makes them of tasks and files.
        processes: number of processes; the result has the same bits for any number.
        progress: called with `lines read` and `pairs written`.

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
        reports = clean_parts(cleaner, parts, work, processes, lambda done: progress("lines read", done, 0))
        sha256 = write_table(new, _distinct_pairs(work, parts, reports, progress))
        shutil.rmtree(work)
        for part, report in zip(parts, reports, strict=True):
            report.require_pairs(part.path)
        if languages == ("all",):
            _warn_of_detection(parts, reports)
        size = sum(path.stat().st_size for path in new.glob("*.arrow"))
        counts = _counts(parts, reports)
        hashes = {"data-00000-of-00001.arrow": sha256}
        content = {**counts, "bytes": size, "ignored": list(found.ignored), "exclude": names, "sha256": hashes}
        atomic_write(new / REPORT, f"{json.dumps(content, ensure_ascii=False, indent=1)}\n")
    return content


def _warn_of_detection(parts: Sequence[Part], reports: Sequence[Report]) -> None:
    """Warn about languages of which detection among all dropped many pairs: close ones are taken for each other."""
    read, dropped = Counter[str](), Counter[str]()
    for part, report in zip(parts, reports, strict=True):
        read[part.language] += report.read
        dropped[part.language] += sum(n for why, n in report.dropped.items() if why.endswith(OTHER_LANGUAGE))
    many = [f"{tag} {dropped[tag] / read[tag]:.0%}" for tag in sorted(read) if dropped[tag] > _MANY * read[tag]]
    if many:
        known = {primary_language(tag) for part in parts for tag in part.languages}
        log.warning(
            "--detect all takes close languages for each other, such as Indonesian for Malay, and dropped %s; detect "
            "among the languages of the corpus alone: --detect %s",
            ", ".join(many), ",".join(sorted(known)),
        )  # fmt: skip


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
