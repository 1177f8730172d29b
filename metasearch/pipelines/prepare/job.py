"""Makes a prepared corpus, or goes on with one: every piece that is done is done once.

First all lines are cleaned, block by block, and each block is written. Then pairs that stood before are found by their
hashes. Then the pairs that stay are written, shard by shard. The manifest comes last.
"""

import itertools
import json
import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from metasearch.data.formats.arrays import SUFFIX
from metasearch.data.parallel.corpus import sides_of
from metasearch.data.parallel.files import Part, find
from metasearch.data.prepared.blocks import LINES, Block, first_of_each
from metasearch.data.prepared.manifest import FILE, Manifest, ShardCounts, read_sealed, write_sealed
from metasearch.data.prepared.plan import Counts, ShardPieces, in_shards, pieces
from metasearch.errors import RunFolderError
from metasearch.io import atomic_write_all, held, require_room
from metasearch.pipelines.prepare.report import report_of
from metasearch.pipelines.prepare.worker import Job, Pool
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.signals import interrupted

log = logging.getLogger(__name__)

WORK = "work"
ASKED = "asked.json"
_SCANNED = "scanned.json"


def prepare(job: Job, paths: Sequence[Path], processes: int, callback: Callback = SILENT) -> Manifest:
    """Make a corpus in `job.folder`, or go on with one that was begun; one that is finished is returned.

    Args:
        job: what is asked for.
        paths: files and folders of parallel text.
        processes: that work at the same time; the result is the same bits for any number.
        callback: hears how many lines are read, and how many pairs are written.

    Raises:
        DataError: a file is damaged or has no pair.
        RunFolderError: the folder holds another corpus, cannot be written, or another process is at work in it.
    """
    folder = job.folder
    with held(folder, f"{folder}: another process prepares this corpus; wait until it is done"), _resumable():
        if (folder / FILE).exists():
            manifest = Manifest.read(folder)
            _require_same(folder, manifest.asked.tree(), job.asked.tree())
            # A process that was killed after the manifest was written has left it.
            shutil.rmtree(folder / WORK, ignore_errors=True)
            return manifest
        _begin(job)
        parts, ignored = find(paths, job.asked.settings)
        with Pool(job, processes) as pool:
            blocks = _scanned(job, parts, pool, callback)
            counts = [Counts(part) for part in parts]
            made = _shards(job, blocks, counts, pool, callback)
        return _finish(job, counts, made, ignored)


@contextmanager
def _resumable() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise interrupted("stopped; finished parts are kept. Continue with the same command") from None


def _begin(job: Job) -> None:
    """Note what is asked for, or see that the same was asked for before."""
    path = job.folder / WORK / ASKED
    if path.exists():
        _require_same(job.folder, read_sealed(path)[0]["asked"], job.asked.tree())
        return
    if others := sorted({entry.name for entry in job.folder.iterdir()} - {".lock", WORK}):
        raise RunFolderError(f"{job.folder}: it has other files: {', '.join(others[:3])}; choose a new folder")
    # Of packed files the texts take more; certain is that they take no less.
    size = sum(each.size for each in job.asked.inputs)
    require_room(job.folder, size, "the texts alone")
    write_sealed(path, {"asked": job.asked.tree()})


def _require_same(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise `RunFolderError` where a corpus was begun with other files or settings, naming the first."""
    if before == now:
        return
    files = [{each["path"]: each for each in tree["inputs"]} for tree in (before, now)]
    for path in sorted(files[0].keys() | files[1].keys()):
        old, new = (each.get(path) for each in files)
        if old != new:
            what = "is not among its files" if old is None else "is no longer given" if new is None else "was changed"
            raise RunFolderError(f"{folder}: {path} {what} since this corpus was begun; prepare it in a new folder")
    if before["inputs"] != now["inputs"]:
        raise RunFolderError(f"{folder}: its files were given in another order; prepare it in a new folder")
    flat = [{**tree, **tree["settings"]} for tree in (before, now)]
    key = next(key for key in flat[0] if key != "settings" and flat[0][key] != flat[1].get(key))
    said = [json.dumps(each.get(key), ensure_ascii=False) for each in flat]
    raise RunFolderError(f"{folder}: it was started with {key} {said[0]}, not {said[1]}; prepare it in a new folder")


def _scanned(job: Job, parts: Sequence[Part], pool: Pool, callback: Callback) -> list[tuple[int, Block]]:
    """Return the blocks of all lines, each with the number of its part; those that are missing are made."""
    work = job.folder / WORK
    done = work / _SCANNED
    if not done.exists():
        lines = 0
        for count in pool.each("scan", _unscanned(job, parts)):
            lines += count
            callback.on_prepare("lines read", lines, 0)
        found = sorted(path.name for path in (work / "blocks").glob(f"*{SUFFIX}"))
        write_sealed(done, {"blocks": found})
    names = read_sealed(done)[0]["blocks"]
    return [(int(name.split("-")[0]), Block(work / "blocks" / name)) for name in names]


def _unscanned(job: Job, parts: Sequence[Part]) -> Iterator[tuple[Any, ...]]:
    """Yield the calls of `Worker.scan` for the blocks that are not there yet."""
    folder = job.folder / WORK / "blocks"
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts):
        lines, codes = sides_of(part), (part.pivot, part.language)
        for block in itertools.count():
            own = list(itertools.islice(lines, LINES))
            if not own:
                break
            path = folder / f"{number:05d}-{block:07d}{SUFFIX}"
            if not path.exists():
                yield path, own, block * LINES + 1, number, codes


def _shards(
    job: Job, blocks: Sequence[tuple[int, Block]], counts: list[Counts], pool: Pool, callback: Callback
) -> list[ShardCounts]:
    """Make the shards that are missing, and return what was made of all."""
    kept = first_of_each([block for _, block in blocks])
    texts = sum((job.folder / WORK / "blocks" / block.path.name).stat().st_size for _, block in blocks)
    done = sum(path.stat().st_size for path in (job.folder / "shards").glob(f"*{SUFFIX}"))
    require_room(job.folder, texts // 2 - done, "texts")

    def calls() -> Iterator[tuple[int, ShardPieces]]:
        found = pieces(blocks, kept, counts, job.asked.settings.max_lines)
        for number, own in enumerate(in_shards(found)):
            yield number, [(part, blocks[block][1].path, pairs) for part, block, pairs in own]

    total, made = sum(block.pairs for _, block in blocks), []
    for one in pool.each("make", calls()):
        made.append(one)
        callback.on_prepare("pairs written", sum(each.pairs for each in made), total)
    return made


def _finish(job: Job, counts: Sequence[Counts], made: Sequence[ShardCounts], ignored: Sequence[str]) -> Manifest:
    """Write reports and manifest, and remove what was needed for them."""
    folder, parts = job.folder, tuple(own.done() for own in counts)
    manifest = Manifest(asked=job.asked, parts=parts, shards=tuple(made))
    text, tree = report_of(manifest, [line for own in counts for line in own.examples], ignored)
    atomic_write_all(
        {folder / "report.md": text, folder / "report.json": json.dumps(tree, ensure_ascii=False, indent=1) + "\n"}
    )
    manifest.write(folder)
    shutil.rmtree(folder / WORK)
    return Manifest.read(folder)
