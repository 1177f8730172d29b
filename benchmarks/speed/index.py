"""Times of an index of made vectors: writing, opening, searching and bringing it up to date.

    python -m benchmarks.speed.index --scale small
    python -m benchmarks.speed.index --against ../before --rounds 4

A million passages of 384 dimensions in seven languages, a thousand a file. The vectors are made: one of 2,000
directions each, and noise of a falling spectrum, as vectors of texts have one. Each round runs this revision and
another one, which lies in the folder `--against`, in turns and in processes of their own, in an order that changes:
opening until the first hit, medians of searches, and an update in which one file of a hundred is new and one is gone.
Every figure has wall-clock and CPU time; compare CPU times on a busy machine.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

SCALES = {"full": (1_000_000, 384), "100k": (100_000, 384), "1k": (1000, 384), "small": (20_000, 32)}
LANGUAGES = ("ar", "de", "el", "es", "hi", "ru", "zh")
PER_FILE, AT_ONCE, DIRECTIONS, TOP = 1000, 4096, 2000, 10
Times = dict[str, list[float]]


def made_vectors(count: int, dimension: int, seed: int) -> NDArray[np.float32]:
    """Return unit vectors `(count, dimension)`: a direction each, and noise whose spectrum falls."""
    directions = np.random.default_rng(0).standard_normal((DIRECTIONS, dimension), np.float32)
    rng = np.random.default_rng([1, seed])
    found = rng.standard_normal((count, dimension), np.float32)
    found += directions[rng.integers(0, DIRECTIONS, count)]
    found *= (1 / np.sqrt(1 + np.arange(dimension) / 32)).astype(np.float32)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found


def seconds(run: Callable[[], object]) -> list[float]:
    """Return the seconds that a call takes, on the clock and of all processors."""
    began = time.perf_counter(), time.process_time()
    run()
    return [time.perf_counter() - began[0], time.process_time() - began[1]]


def keys_of(numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return keys that are as random as hashes, `(n, 16)`."""
    words = numbers.astype(np.uint64)
    mixed = np.stack([words * np.uint64(0x9E3779B97F4A7C15), words * np.uint64(0xC2B2AE3D27D4EB4F)], 1)
    return mixed.view(np.uint8).reshape(-1, 16)


class Timed:
    """An index of the revision that this process imports."""

    def __init__(self, folder: Path, dimension: int) -> None:
        from metasearch.search.index import base, local, writer

        self.folder, self.base = folder, base
        self.open, self.writing = local.LocalStore.open, writer.writing
        self.kind = base.Kind("made", "made", dimension)

    def write(self, numbers: NDArray[np.int64], vectors: NDArray[np.float32], files: range) -> None:
        """Add passages by their numbers, and make these the files of the index."""
        from metasearch.search.documents.passage import Passage

        with self.writing(self.folder, self.kind) as store:
            for start in range(0, len(numbers), AT_ONCE):
                part = numbers[start : start + AT_ONCE]
                texts = [Passage(f"passage {i} " * 10, "", 1, LANGUAGES[i // 7 % 7]) for i in part.tolist()]
                store.upsert(vectors[start : start + AT_ONCE], texts, keys_of(part))
            places = []
            for file in files:
                keys = keys_of(np.arange(file * PER_FILE, (file + 1) * PER_FILE))
                source = self.base.SourceFile(f"{file}.txt", 0, "")
                places.append(self.base.FilePlaces(source, keys, np.arange(1, PER_FILE + 1, dtype=np.int32)))
            store.finish(places)

    def hits(self, queries: NDArray[np.float32], languages: tuple[str, ...] = ()) -> object:
        """Open the index, if it is not open, and return the best passages of the first query."""
        self.__dict__.setdefault("store", None)
        self.store = self.store or self.open(self.folder, threads=2)
        return self.store.passages(self.store.search(queries, TOP, [languages])[0][0][0])


def work(folder: Path, count: int, dimension: int, step: int) -> Times:
    """Write an index in step 0; in those after it time searches and an update."""
    timed, files, new = Timed(folder, dimension), count // PER_FILE, max(count // PER_FILE // 100, 1)
    if step == 0:
        vectors = made_vectors(count, dimension, 0)
        taken = seconds(lambda: timed.write(np.arange(count), vectors, range(files)))
        return {"write, s": taken, "size, MB": [sum(path.stat().st_size for path in folder.rglob("*.*")) / 1e6] * 2}
    queries = made_vectors(320, dimension, 10_000 + step)
    found = {"open to first hit, s": seconds(lambda: timed.hits(queries[:1]))}
    for name, size, tags in (
        ("1 query, ms", 1, ()),
        ("1 query in one language, ms", 1, ("de",)),
        ("32 queries, ms", 32, ()),
    ):
        asked = [queries[i * size : (i + 1) * size] for i in range(9)]
        times = [seconds(partial(timed.hits, each, tags)) for each in asked]
        found[name] = (1e3 * np.median(times[1:], axis=0)).tolist()
    first = files + (step - 1) * new
    numbers = np.arange(first * PER_FILE, (first + new) * PER_FILE)
    vectors = made_vectors(len(numbers), dimension, step)
    return {**found, "update, s": seconds(lambda: timed.write(numbers, vectors, range(step * new, first + new)))}


def run(root: Path, *arguments: object) -> Times:
    """Return what `work` returns in a process that imports the revision in a folder."""
    words = [sys.executable, str(Path(__file__).resolve()), "work", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(root.resolve())}
    found: Times = json.loads(
        subprocess.run(words, env=environment, cwd=root, stdout=subprocess.PIPE, check=True).stdout
    )
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Return the figures of the newest run: wall-clock time, and CPU time in brackets."""
    from metasearch.runs.markdown import markdown

    newest = [row for row in rows if row["scale"] == rows[-1]["scale"] and row["revision"] == rows[-1]["revision"]]
    values = {(row["metric"], row["way"]): f"{row['value']:.1f} ({row['processor']:.1f})" for row in newest}
    ways, metrics = (list(dict.fromkeys(row[name] for row in newest)) for name in ("way", "metric"))
    return markdown(["", *ways], [[name, *(values[name, way] for way in ways)] for name in metrics], left=1)


@click.command()
@click.option("--scale", type=click.Choice(sorted(SCALES)), default="full", show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--against", type=click.Path(path_type=Path, exists=True), help="Folder of another revision.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Rows to add to.")
def main(scale: str, rounds: int, against: Path | None, output: Path | None) -> None:
    """Time this revision, and another one in turns with it; print the table, and keep the figures."""
    from benchmarks.common.provenance import provenance
    from benchmarks.common.rows import RESULTS, append_rows

    ways = {**({"before": against} if against else {}), "now": Path(__file__).parents[2]}
    found: dict[str, dict[str, list[list[float]]]] = {way: {} for way in ways}
    with tempfile.TemporaryDirectory() as place:
        for step in range(rounds + 1):
            for way in list(ways)[:: -1 if step % 2 else 1]:
                for metric, taken in run(ways[way], Path(place) / way, *SCALES[scale], step).items():
                    found[way].setdefault(metric, []).append(taken)
    rows = []
    for way, metrics in found.items():
        for metric, times in metrics.items():
            value, processor = np.median(times, axis=0).round(3).tolist()
            rows.append({"metric": metric, "way": way, "value": value, "processor": processor})
    rows = [{**row, "scale": scale, "rounds": rounds, **provenance()} for row in rows]
    append_rows(output or RESULTS / "index.jsonl", rows)
    click.echo(table(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        sys.stdout.write(json.dumps(work(Path(sys.argv[2]), *map(int, sys.argv[3:]))))
    else:
        main()
