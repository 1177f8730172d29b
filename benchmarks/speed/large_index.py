"""Large indexes: the folder's exact scan beside indexes of vectors that search approximately.

    python -m benchmarks.speed.large_index ~/large --data ~/data --count 1000000 --way folder --way faiss-hnsw
    python -m benchmarks.speed.large_index ~/large --count 100000 --way postgresql --address postgresql://localhost/shop/large

Passages are random vectors from a normal distribution with the mean and covariance of `e5` embeddings of LAReQA
sentences. A query is a passage plus noise, distributed as the differences between questions and their answers.

Recall@20 is the share of the 20 best by products in float32. An approximate index searches ever more of its graph
until its recall is at least the folder's; the table says the recall it reaches. Each way builds in one process and
searches in another one, on one thread; eight clients are eight threads. Install `faiss-cpu` and `usearch` yourself.
The folder of `--way folder` is what `postgresql` copies, as `metasearch index --to` does.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import click
import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, latest_rows, read_rows
from benchmarks.speed.index import PER_FILE, Timed
from benchmarks.speed.memory import peak, reset_peak
from metasearch.runs.markdown import markdown
from metasearch.search.index.local import LocalStore
from metasearch.search.index.postgresql import PostgresStore
from metasearch.search.index.postgresql_copy import row_numbers
from metasearch.search.index.postgresql_server import Server

TOP, QUERIES, CLIENTS, DIMENSION = 20, 200, 8, 384
ENCODED, AT_ONCE = 2000, 100_000
GRAPH, BUILT = 16, 100
"""Neighbours of a vector in a graph, and how many are looked at for each when it is built."""
EFFORTS = 20, 50, 100, 200, 400, 800, 1600
Vectors = NDArray[np.float32]
Found = NDArray[np.int64]


class Way(Protocol):
    """An index of vectors in a folder. `effort` is how many vectors a search keeps in sight; 0 for an exact one."""

    efforts: tuple[int, ...]

    def build(self, place: Path, vectors: Vectors) -> None:
        """Write the index."""
        ...

    def open(self, place: Path) -> None:
        """Open the index."""
        ...

    def search(self, query: Vectors, effort: int) -> Found:
        """Return the numbers of the best vectors for one query `(1, D)`."""
        ...


class Folder:
    """The index of `metasearch index`."""

    efforts = (0,)

    def build(self, place: Path, vectors: Vectors) -> None:
        """Write the index."""
        count = len(vectors)
        Timed(place, DIMENSION).write(np.arange(count), vectors, range(count // PER_FILE))

    def open(self, place: Path) -> None:
        """Open the index."""
        self.store = LocalStore.open(place, threads=1)

    def search(self, query: Vectors, effort: int) -> Found:
        """Return the best rows, which are numbered as the vectors are."""
        return self.store.search(query, TOP)[0][0][0]


class Faiss:
    """faiss: `IndexFlatIP`, which is exact and in float32, or `IndexHNSWFlat`."""

    def __init__(self, graph: bool) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self.faiss, self.efforts = faiss, EFFORTS if graph else (0,)

    def build(self, place: Path, vectors: Vectors) -> None:
        """Write the index."""
        inner = self.faiss.METRIC_INNER_PRODUCT
        index = self.faiss.IndexFlatIP(DIMENSION)
        if self.efforts[0]:
            index = self.faiss.IndexHNSWFlat(DIMENSION, GRAPH, inner)
            index.hnsw.efConstruction = BUILT
        for start in range(0, len(vectors), AT_ONCE):
            index.add(np.ascontiguousarray(vectors[start : start + AT_ONCE]))
        place.mkdir()
        self.faiss.write_index(index, str(place / "index"))

    def open(self, place: Path) -> None:
        """Open the index."""
        self.index = self.faiss.read_index(str(place / "index"))

    def search(self, query: Vectors, effort: int) -> Found:
        """Return the numbers of the best vectors."""
        how = self.faiss.SearchParametersHNSW(efSearch=effort) if effort else None
        return self.index.search(query, TOP, params=how)[1][0]


class Usearch:
    """usearch, HNSW with vectors in float16: its int8 has one step for all vectors, which is too coarse here."""

    efforts = EFFORTS

    def _empty(self) -> Any:
        from usearch.index import Index

        return Index(ndim=DIMENSION, metric="cos", dtype="f16", connectivity=GRAPH, expansion_add=BUILT)

    def build(self, place: Path, vectors: Vectors) -> None:
        """Write the index."""
        index = self._empty()
        for start in range(0, len(vectors), AT_ONCE):
            part = np.ascontiguousarray(vectors[start : start + AT_ONCE])
            index.add(np.arange(start, start + len(part)), part, threads=1)
        place.mkdir()
        index.save(str(place / "index"))

    def open(self, place: Path) -> None:
        """Open the index."""
        self.index = self._empty()
        self.index.load(str(place / "index"))

    def search(self, query: Vectors, effort: int) -> Found:
        """Return the numbers of the best vectors."""
        self.index.expansion_search = effort
        return self.index.search(query[0], TOP, threads=1).keys.astype(np.int64)


class Postgres:
    """A copy of the folder's index in PostgreSQL with pgvector, as metasearch searches it; each text has one word."""

    efforts = (0,)

    def __init__(self, address: str) -> None:
        self.address = address

    def build(self, place: Path, vectors: Vectors) -> None:
        """Copy the folder beside `place`."""
        index = LocalStore.open(place.with_name("folder"))
        keys = row_numbers(index.row_keys())
        PostgresStore.copy(index, self.address, lambda texts: [[0] for _ in texts], lambda done, total: None)
        place.mkdir()
        np.save(place / "numbers.npy", keys)

    def open(self, place: Path) -> None:
        """Open the copy."""
        self.store = PostgresStore.open(self.address)
        numbers = np.load(place / "numbers.npy")
        self.order = np.argsort(numbers)
        self.sorted = numbers[self.order]

    def size(self) -> int:
        """Return the bytes of the table and its indexes."""
        server = Server(self.address)
        with server.connection() as connection:
            sql = "SELECT pg_total_relation_size(%s)"
            return int(connection.execute(sql, (server.table,)).fetchone()[0])

    def search(self, query: Vectors, effort: int) -> Found:
        """Return the numbers of the best vectors."""
        ((rows, _),) = self.store.search(query, TOP)
        return self.order[np.searchsorted(self.sorted, rows[0])]


WAYS: dict[str, Callable[[str], Way]] = {
    "folder": lambda _: Folder(),
    "faiss-flat": lambda _: Faiss(graph=False),
    "faiss-hnsw": lambda _: Faiss(graph=True),
    "usearch-hnsw": lambda _: Usearch(),
    "postgresql": Postgres,
}
NAMES = {
    "folder": "folder, int8", "faiss-flat": "faiss, flat, float32", "faiss-hnsw": "faiss, HNSW, float32",
    "usearch-hnsw": "usearch, HNSW, float16", "postgresql": "PostgreSQL, HNSW, float16",
}  # fmt: skip


# The vectors.


def spectrum(place: Path, data: Path | None) -> dict[str, Vectors]:
    """Return mean and root of the covariance of passages, and of questions less an answer of theirs, from a cache."""
    path = place / "spectrum.npz"
    if not path.exists():
        from metasearch.data.benchmark import load_benchmark
        from metasearch.encoders.load import load_encoder

        benchmark = load_benchmark("lareqa-sentences", fold=0, data=str(data) if data else None)
        encoder = load_encoder("e5", benchmark.task.max_length, device="cpu")
        candidates = [benchmark.data.candidates[i] for i in _some(len(benchmark.data.candidates))]
        questions = {(each.id, each.language): each.text for each in benchmark.data.questions}
        asked = [(i, (each.answers[0], each.language)) for i, each in enumerate(candidates) if each.answers]
        asked = [(i, questions[key]) for i, key in asked if key in questions]
        passages = encoder.encode_document([each.text for each in candidates])
        away = encoder.encode_query([text for _, text in asked]) - passages[[i for i, _ in asked]]
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **_moments("passage", passages), **_moments("query", away))
    return dict(np.load(path))


def _some(count: int) -> list[int]:
    return np.sort(np.random.default_rng(0).permutation(count)[:ENCODED]).tolist()


def _moments(name: str, vectors: Vectors) -> dict[str, Vectors]:
    values, directions = np.linalg.eigh(np.cov(vectors.astype(np.float64), rowvar=False))
    root = (directions * np.sqrt(values.clip(0))).T
    return {name: vectors.mean(0), f"{name}_root": root.astype(np.float32)}


def generated(found: dict[str, Vectors], count: int, part: int) -> Vectors:
    """Return `count` unit vectors of part `part`."""
    drawn = np.random.default_rng([2, part]).standard_normal((count, DIMENSION), np.float32)
    return _unit(drawn @ found["passage_root"] + found["passage"])


def _unit(vectors: Vectors) -> Vectors:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def prepare(place: Path, data: Path | None, count: int) -> Path:
    """Return the folder with `count` vectors, queries, and the numbers of each query's best; made where missing."""
    folder = place / str(count)
    if (folder / "best.npy").exists():
        return folder
    known = spectrum(place, data)
    folder.mkdir(exist_ok=True)
    shape = count, DIMENSION
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float32, shape=shape)
    first = generated(known, min(count, AT_ONCE), 0)
    rng = np.random.default_rng(3)
    drawn = rng.standard_normal((QUERIES, DIMENSION), np.float32)
    near = first[rng.choice(len(first), QUERIES, replace=False)]
    queries = _unit(near + drawn @ known["query_root"] + known["query"])
    best, scores = np.zeros((QUERIES, 0), np.int64), np.zeros((QUERIES, 0), np.float32)
    for start in range(0, count, AT_ONCE):
        part = generated(known, min(AT_ONCE, count - start), start // AT_ONCE)
        vectors[start : start + len(part)] = part
        products = queries @ part.T
        top = np.argpartition(-products, TOP - 1, axis=1)[:, :TOP]
        best = np.hstack([best, top + start])
        scores = np.hstack([scores, np.take_along_axis(products, top, 1)])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
        best, scores = (np.take_along_axis(each, order, 1) for each in (best, scores))
    vectors.flush()
    np.save(folder / "queries.npy", queries)
    np.save(folder / "best.npy", best)
    return folder


# What is measured: each in a process of its own.


def spent(way: Way) -> float:
    """Return the CPU seconds of this process so far, and of a server on this machine."""
    servers = [each for each in psutil.process_iter(["name", "cpu_times"]) if each.info["name"] == "postgres"]
    return time.process_time() + sum(sum(each.info["cpu_times"][:4]) for each in servers if isinstance(way, Postgres))


def built(way: Way, folder: Path, place: Path) -> Row:
    """Build an index; return seconds of CPU time, and megabytes on disk."""
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    began = spent(way)
    way.build(place, vectors)
    taken = spent(way) - began
    size = way.size() if isinstance(way, Postgres) else sum(each.stat().st_blocks * 512 for each in place.rglob("*"))
    return {"build": taken, "disk": size / 1e6}


def searched(way: Way, folder: Path, place: Path, least: float) -> Row:
    """Open an index and search it, ever deeper until its recall is at least `least`."""
    queries, best = np.load(folder / "queries.npy"), np.load(folder / "best.npy")
    held = reset_peak()
    began = spent(way)
    way.open(place)
    way.search(queries[:1], way.efforts[0])
    opened = spent(way) - began
    for effort in way.efforts:
        start = time.perf_counter(), spent(way)
        found = [way.search(queries[i : i + 1], effort) for i in range(len(queries))]
        wall, processor = time.perf_counter() - start[0], spent(way) - start[1]
        recall = float(np.mean([len({*own} & {*all_}) / TOP for own, all_ in zip(found, best.tolist(), strict=True)]))
        if recall >= least:
            break
    start = time.perf_counter(), spent(way)
    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(lambda i: way.search(queries[i : i + 1], effort), range(len(queries))))
    each = len(queries) / (time.perf_counter() - start[0])
    return {
        "open": opened, "ms": 1e3 * processor / len(queries), "wall_ms": 1e3 * wall / len(queries),
        "clients": each, "clients_cpu": len(queries) / (spent(way) - start[1]),
        "memory": (peak() - held) / 1e6, "recall": recall, "effort": effort,
    }  # fmt: skip


def table(rows: list[Row]) -> str:
    """Return the newest figures of each way and number of passages; all times are of the CPU."""
    found = latest_rows(rows, lambda row: (row["passages"], row["way"]))
    found.sort(key=lambda row: (row["passages"], list(WAYS).index(row["way"])))
    lines = []
    for row in found:
        memory = "" if row["way"] == "postgresql" else f"{row['memory']:,.0f}"  # of the server it is not known
        times = [f"{row['build']:,.0f}", f"{row['open']:.1f}", f"{row['ms']:.1f}", f"{row['clients_cpu']:,.0f}"]
        lines.append(
            [f"{row['passages']:,}", NAMES[row["way"]], f"{row['recall']:.3f}", *times, memory, f"{row['disk']:,.0f}"]
        )
    heads = ["recall@20", "build, s", "open, s", "1 query, ms", "8 clients, queries a CPU s", "memory, MB", "disk, MB"]
    return markdown(["passages", "index", *heads], lines, left=2)


@click.command()
@click.argument("place", type=click.Path(path_type=Path))
@click.option("--data", envvar="METASEARCH_DATA", type=click.Path(path_type=Path), help="Parent of lareqa/.")
@click.option("--count", type=click.IntRange(min=1000), default=1_000_000, show_default=True, help="Passages.")
@click.option("--way", "ways", type=click.Choice(list(WAYS)), multiple=True, default=list(WAYS)[:-1], show_default=True)
@click.option("--address", default="", help="Table in PostgreSQL, as postgresql://localhost/shop/large.")
@click.option("--work", type=click.Choice(["build", "search"]), hidden=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=RESULTS / "large_index.jsonl")
def main(
    place: Path, data: Path | None, count: int, ways: tuple[str, ...], address: str, work: str | None, output: Path
) -> None:
    """Build, open and search indexes of COUNT generated vectors in the folder PLACE, and keep the figures."""
    folder = prepare(place, data, count)
    rows = [row for row in read_rows(output) if row["passages"] == count]
    least = max((row["recall"] for row in rows if row["way"] == "folder"), default=1.0)
    for name in ways:
        at = folder / name
        if work:
            way = WAYS[name](address)
            click.echo(json.dumps(built(way, folder, at) if work == "build" else searched(way, folder, at, least)))
            continue
        found: Row = {"passages": count, "way": name, "queries": QUERIES}
        for step in ("build", "search"):
            words = [sys.executable, "-m", "benchmarks.speed.large_index", *map(str, [
                place, "--count", count, "--way", name, "--address", address, "--work", step, "-o", output,
            ])]  # fmt: skip
            found |= json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
        append_rows(output, [{**found, **provenance()}])
    if not work:
        click.echo(table(read_rows(output)))


if __name__ == "__main__":
    main()
