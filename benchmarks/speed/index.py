"""Size of an index and time of a search in it, on made vectors, beside other ways to score the same vectors.

    python -m benchmarks.speed.index
    python -m benchmarks.speed.index --scale small --rounds 3

An index of a million passages of 384 dimensions is written as `metasearch index` writes one, once for eight bits and
once for one bit with rescoring. The vectors are made: one of 2,000 directions each, and noise of a falling spectrum, as
vectors of texts have one; queries are made in the same way. Ways take turns in each round, on other queries each time:

- `int8`, `bits`: ours, from the best rows' numbers to their scores, hashes checked before;
- `float32`: a product of the unrounded vectors by torch and `topk`, 1.5 GB;
- `torch float`: our codes, made float32 by blocks;
- `torch int8`: our codes and a query of eight bits by `torch._int_mm`, which is not a documented function;
- `simsimd`: our codes and a query of eight bits by its `cdist`, on as many threads;
- `faiss`: `IndexScalarQuantizer` of eight bits, a minimum and a step for each dimension.

The last two only where they are installed. All but ours, `float32` and `faiss` are timed without choosing the best.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS
from metasearch.config.seeding import stream
from metasearch.data.documents.passage import Passage
from metasearch.retrieval.index.index import Index
from metasearch.retrieval.index.locations import FilePlaces, SourceFile
from metasearch.retrieval.index.manifest import Kind
from metasearch.retrieval.index.quantise import to_int8
from metasearch.retrieval.index.segment import STORAGES, Storage
from metasearch.retrieval.index.writer import writing
from metasearch.runs.markdown import markdown
from metasearch.runs.rows import append_rows

SCALES = {"full": (1_000_000, 384), "small": (20_000, 32)}
ROWS = RESULTS / "index.jsonl"
TOP = 10
_DIRECTIONS = 2000
_BLOCK = 2048
Vectors = NDArray[np.float32]
Way = Callable[[Vectors], object]


def made_vectors(count: int, dimension: int, name: str) -> Vectors:
    """Return unit vectors `(count, dimension)`: a direction each, and noise whose spectrum falls."""
    directions = stream(0, "directions").standard_normal((_DIRECTIONS, dimension), np.float32)
    rng = stream(0, "vectors", name)
    spectrum = (1 / np.sqrt(1 + np.arange(dimension) / 32)).astype(np.float32)
    found = np.empty((count, dimension), np.float32)
    for start in range(0, count, 2**16):
        part = found[start : start + 2**16]
        noise = rng.standard_normal(part.shape, np.float32)
        part[:] = (directions[rng.integers(0, _DIRECTIONS, len(part))] + noise) * spectrum
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return found


def write(folder: Path, vectors: Vectors, storage: Storage) -> float:
    """Write an index of vectors; return the seconds."""
    began = time.perf_counter()
    numbers = np.arange(len(vectors), dtype=np.int64)
    keys = np.stack([numbers, np.zeros_like(numbers)], 1).view(np.uint8).reshape(-1, 16)
    with writing(folder, Kind("made", "made", vectors.shape[1], storage)) as writer:
        for start in range(0, len(vectors), 4096):
            part = slice(start, start + 4096)
            passages = [Passage(f"passage {i}", "made.txt", i + 1, "und") for i in numbers[part].tolist()]
            writer.add(vectors[part], passages, keys[part])
        writer.finish([FilePlaces(SourceFile("made.txt", 0, ""), keys, (numbers + 1).astype(np.int32))])
    return time.perf_counter() - began


def sizes(folder: Path, index: Index) -> dict[str, float]:
    """Return megabytes of an index, by what takes them, texts apart."""
    found = {"vectors": 0, "keys": 0, "texts": 0}
    kinds = {"codes": "vectors", "steps": "vectors", "bits": "vectors", "keys": "keys"}
    for segment in index._contents.segments:
        for name, array in segment.arrays.items():
            found[kinds.get(name, "texts")] += array.nbytes
    found["locations"] = sum(path.stat().st_size for path in (folder / "locations").glob("*.safetensors"))
    return {f"{name}, MB": round(size / 1e6, 1) for name, size in found.items()}


def resident(folder: Path, queries: Vectors, said: Any) -> None:
    """Say how many megabytes a process has more after a first search than before it opened the index."""
    before = _resident()
    index = Index.open(folder)
    index.search(queries, TOP)
    said.put(round((_resident() - before) / 1e6, 1))
    # Until here it is open: what is closed is not resident.
    assert len(index)


def _resident() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def ways_of(indexes: Mapping[str, Index], vectors: Vectors, threads: int) -> dict[str, Way]:
    """Return all ways that this installation has."""
    codes, _ = to_int8(vectors)
    ways: dict[str, Way] = {name: lambda asked, own=index: own.search(asked, TOP) for name, index in indexes.items()}
    ways["float32"] = lambda asked: torch.topk(torch.from_numpy(asked) @ torch.from_numpy(vectors).T, TOP)
    ways["torch float"] = lambda asked: _by_blocks(torch.from_numpy(codes), torch.from_numpy(asked).T)
    ways["torch int8"] = lambda asked: torch._int_mm(torch.from_numpy(codes), torch.from_numpy(to_int8(asked)[0]).T)
    if find_spec("simsimd"):
        import simsimd

        shares = np.array_split(codes, threads)

        def dots(asked: Vectors) -> object:
            rounded = to_int8(asked)[0]
            with ThreadPoolExecutor(threads) as workers:
                return list(workers.map(lambda part: simsimd.cdist(part, rounded, "dot"), shares))

        ways["simsimd"] = dots
    if find_spec("faiss"):
        import faiss

        faiss.omp_set_num_threads(threads)
        kind = faiss.ScalarQuantizer.QT_8bit
        scalar = faiss.IndexScalarQuantizer(vectors.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
        scalar.train(vectors[: 2**16])
        for start in range(0, len(vectors), 2**16):
            scalar.add(vectors[start : start + 2**16])
        ways["faiss"] = lambda asked: scalar.search(asked, TOP)
    return ways


def _by_blocks(codes: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
    found, block = torch.empty(len(codes), queries.shape[1]), torch.empty(_BLOCK, codes.shape[1])
    for start in range(0, len(codes), _BLOCK):
        own = block[: len(codes) - start]
        own.copy_(codes[start : start + _BLOCK])
        torch.mm(own, queries, out=found[start : start + _BLOCK])
    return found


def race(ways: Mapping[str, Way], count: int, queries: Vectors, rounds: int) -> list[dict[str, Any]]:
    """Return the milliseconds of each way for so many queries at once, and how many times as long as `int8`."""
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        asked = np.ascontiguousarray(queries[number * count : (number + 1) * count])
        for way, run in ways.items():
            began = time.perf_counter()
            run(asked)
            taken[way].append(1e3 * (time.perf_counter() - began))
    rows = []
    for way, times in taken.items():
        own, ours = np.array(times[1:]), np.array(taken["int8"][1:])
        spread = {"value": np.median(own), "low": own.min(), "high": own.max(), "ratio": np.median(own / ours)}
        figures = {key: round(float(value), 2) for key, value in spread.items()}
        rows.append({"case": "search", "way": way, "queries": count, "metric": "ms", **figures})
    return rows


@click.command(cls=Command)
@click.option("--scale", type=click.Choice(sorted(SCALES)), default="full", show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=9, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROWS, help="Rows to add to.")
def main(scale: str, rounds: int, threads: int, output: Path) -> None:
    """Write an index of made vectors both ways, search it, print the table, and keep the figures."""
    torch.set_num_threads(threads)
    count, dimension = SCALES[scale]
    vectors, queries = made_vectors(count, dimension, "rows"), made_vectors(32 * (rounds + 1), dimension, "queries")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        indexes: dict[str, Index] = {}
        for storage in STORAGES:
            folder = Path(place) / storage
            seconds = write(folder, vectors, storage)
            indexes[storage] = Index.open(folder, threads=threads)
            figures = {**sizes(folder, indexes[storage]), "resident, MB": _in_a_process(folder, queries[:1])}
            figures |= {"written in, s": round(seconds, 1)}
            rows += [
                {"case": "size", "way": storage, "metric": name, "value": value} for name, value in figures.items()
            ]
        exact, near = (indexes[storage].search(queries[:320], TOP)[0].tolist() for storage in STORAGES)
        shared = np.mean([len({*a} & {*b}) / TOP for a, b in zip(exact, near, strict=True)])
        rows.append(
            {"case": "recall", "way": "bits", "metric": f"recall@{TOP} of int8", "value": round(float(shared), 4)}
        )
        ways = ways_of(indexes, vectors, threads)
        rows += [row for each in (1, 32) for row in race(ways, each, queries, rounds)]
    facts = {"scale": scale, "passages": count, "dimension": dimension, "rounds": rounds, "threads": threads}
    append_rows(output, [{**row, **facts, **provenance()} for row in rows])
    shown = [[row["case"], row["way"], f"{row.get('queries', '')}", row["metric"], f"{row['value']}"] for row in rows]
    click.echo(markdown(["case", "way", "queries", "metric", "value"], shown, left=3))


def _in_a_process(folder: Path, queries: Vectors) -> float:
    context = multiprocessing.get_context("spawn")
    said = context.SimpleQueue()
    process = context.Process(target=resident, args=(folder, queries, said))
    process.start()
    process.join()
    megabytes: float = said.get()
    return megabytes


if __name__ == "__main__":
    main()
