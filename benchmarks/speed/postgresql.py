"""Times and recall of an index in PostgreSQL, beside the exact search of its folder.

    python -m benchmarks.speed.postgresql postgresql://localhost/shop/speed
    python -m benchmarks.speed.postgresql "$ADDRESS" --vectors random

Passages of 384 dimensions in seven languages, with vectors as texts have (`benchmarks.speed.index`) or of random
directions, for which an index of vectors is worst. Recall@10 is the share of the folder's best ten. Delete the two
tables between runs: an update times other things.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.index import PER_FILE, TOP, Timed, made_vectors
from metasearch.search.index.base import Rows, Store
from metasearch.search.index.local import LocalStore
from metasearch.search.index.postgresql import PostgresStore

DIMENSION, QUERIES = 384, 100


def random_vectors(count: int, dimension: int, seed: int) -> NDArray[np.float32]:
    """Return unit vectors of random directions, `(count, dimension)`."""
    found = np.random.default_rng(seed).standard_normal((count, dimension), np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def words(texts: list[str]) -> list[list[int]]:
    """Return a number for each word of texts."""
    return [[sum(word.encode()) for word in text.split()] for text in texts]


def best(store: Store, query: NDArray[np.float32], languages: tuple[str, ...]) -> list[str]:
    """Return the texts of a query's best passages."""
    ((rows, _),) = store.search(query[None], TOP, [languages])
    return [passage.text for passage, _ in store.passages(rows[0])]


def milliseconds(run: Callable[[NDArray[np.float32]], object], queries: NDArray[np.float32]) -> tuple[list, float]:
    """Return what each call gives, and the median of their times."""
    found, times = [], []
    for query in queries:
        began = time.perf_counter()
        found.append(run(query))
        times.append(1e3 * (time.perf_counter() - began))
    return found, float(np.median(times))


@click.command()
@click.argument("address")
@click.option("--count", default=100_000, show_default=True, help="Passages.")
@click.option("--vectors", type=click.Choice(["texts", "random"]), default="texts", show_default=True)
def main(address: str, count: int, vectors: str) -> None:
    """Copy an index of made vectors to ADDRESS, search both, and print a table."""
    made = {"texts": made_vectors, "random": random_vectors}[vectors]
    with tempfile.TemporaryDirectory() as place:
        numbers: Rows = np.arange(count)
        Timed(Path(place), DIMENSION).write(numbers, made(count, DIMENSION, 0), range(count // PER_FILE))
        local = LocalStore.open(Path(place))
        began = time.perf_counter()
        PostgresStore.copy(local, address, words, lambda done, total: print(done, end="\r", file=sys.stderr))
        copied = time.perf_counter() - began
        remote = PostgresStore.open(address)
        queries = made(QUERIES, DIMENSION, 10_000)
        lines = [f"| copy of {count:,} passages, s | {copied:.0f} |"]
        for name, languages in (("all languages", ()), ("one of seven languages", ("de",))):
            exact, own = milliseconds(partial(best, local, languages=languages), queries)
            found, theirs = milliseconds(partial(best, remote, languages=languages), queries)
            shared = np.mean([len({*a} & {*b}) / TOP for a, b in zip(exact, found, strict=True)])
            lines.append(f"| {name}, recall@{TOP} | {shared:.3f} |")
            lines.append(f"| {name}, ms a query (in the folder) | {theirs:.1f} ({own:.1f}) |")
        _, theirs = milliseconds(lambda query: remote.search_words(words, ["passage 7"], TOP), queries[:10])
        lines.append(f"| words, ms a query | {theirs:.1f} |")
    print("\n".join(["| | |", "|---|--:|", *lines]))


if __name__ == "__main__":
    main()
