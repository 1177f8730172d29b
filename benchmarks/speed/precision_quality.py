"""How good a search is whose passages and queries are encoded in float32 and bfloat16.

    python -m benchmarks.speed.precision_quality --pages ~/pages --data ~/data

Sets are pages of `benchmarks.pages.build`, drawn by the hash of their names, and the test part of fold 0 of a task. A
search is one without an option: passages through a projection, and balanced scores; and one without both. Recall is the
share of the 20 passages nearest to a query in float32 that are among the 20 nearest, without projection.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import click
import numpy as np

import metasearch as ms
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, latest_rows
from benchmarks.pages import systems
from benchmarks.pages.pool import TOP, Pool, measure, pool_of, pool_of_task, read_queries
from metasearch.config.precision import Chosen
from metasearch.data.records import RetrievalData
from metasearch.encoders.load import load_encoder
from metasearch.runs.markdown import markdown

PRECISIONS: tuple[Chosen, ...] = get_args(Chosen)


def of_pages(pages: Path, name: str, count: int, encoder: str) -> Iterator[tuple[Chosen, systems.Encoded, Pool]]:
    """Yield passages and queries of a set of pages in each precision."""
    queries = read_queries(pages / "queries" / f"{name}.jsonl", count)
    pool, files = pool_of(queries), systems.files_of(pages / name, queries)
    for precision in PRECISIONS:
        with tempfile.TemporaryDirectory() as place:
            asked = {"precision": precision, "neutral": False}
            ms.index_documents(files, Path(place) / "index", encoder, asked, device="cpu")
            searcher = ms.open_searcher(Path(place) / "index", device="cpu", precision=precision)
            yield precision, systems.by_passage(searcher, files, pool.texts), pool


def of_task(name: str, data: str, encoder: str) -> Iterator[tuple[Chosen, systems.Encoded, Pool]]:
    """Yield candidates and questions of a task in each precision."""
    benchmark = ms.load_benchmark(name, data=data, fold=0)
    test = benchmark.split.test
    assert isinstance(test, RetrievalData)
    pool, texts = pool_of_task(test), [candidate.text for candidate in test.candidates]
    for precision in PRECISIONS:
        loaded = load_encoder(encoder, benchmark.task.max_length, device="cpu", precision=precision)
        vectors, queries = loaded.encode(texts, "candidate"), loaded.encode(pool.texts, "question")
        numbers = np.arange(len(texts))
        yield precision, systems.Encoded(vectors, numbers, pool.languages, queries, len(texts)), pool


def rows_of(name: str, found: Iterator[tuple[Chosen, systems.Encoded, Pool]]) -> Iterator[Row]:
    """Yield a row of each precision; float32 comes first."""
    exact = None
    for precision, encoded, pool in found:
        nearest = np.argsort(-(encoded.queries @ encoded.vectors.T), axis=1, kind="stable")[:, :TOP]
        exact = nearest if exact is None else exact
        shared = [len({*a} & {*b}) / TOP for a, b in zip(nearest.tolist(), exact.tolist(), strict=True)]
        plain = measure(encoded.scores(), pool, balanced=False)
        whole = measure(encoded.projected().scores(), pool, balanced=True)
        maps = [round(float(np.nanmean(values[f"map@{TOP}"])), 5) for values in (whole, plain)]
        counts = {"queries": len(pool.texts), "passages": len(encoded.vectors)}
        ways = {"map": maps[0], "map_plain": maps[1], "recall": round(float(np.mean(shared)), 4)}
        yield {"set": name, "precision": precision, **counts, **ways}


def table(rows: Sequence[Row]) -> str:
    """Return mAP@20 and recall of each set and precision, and how far mAP@20 is from that in float32."""
    newest = latest_rows(rows, lambda row: (row["set"], row["precision"]))
    exact = {row["set"]: row for row in newest if row["precision"] == "float32"}
    lines = []
    for row in newest:
        figures = [
            f"{100 * row[key]:.2f} ({100 * (row[key] - exact[row['set']][key]):+.2f})" for key in ("map", "map_plain")
        ]
        lines.append([row["set"], f"{row['passages']:,}", row["precision"], *figures, f"{row['recall']:.4f}"])
    heads = ["set", "passages", "precision", "mAP@20", "mAP@20 without projection and balance", "recall of the 20 best"]
    return markdown(heads, lines, (True, False, True, False, False, False))


@click.command()
@click.option("--pages", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--sets", default="gnome60,debian-faq", show_default=True)
@click.option("--count", default=12, show_default=True, help="Pages of each set.")
@click.option("--task", default="lareqa-sentences", show_default=True)
@click.option("--data", required=True, help="Folder of the task's files or a parent of it.")
@click.option("--encoder", default="e5", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=RESULTS / "precision_quality.jsonl")
def main(pages: Path, sets: str, count: int, task: str, data: str, encoder: str, output: Path) -> None:
    """Score each precision on sets of pages and a task, keep the rows, and print the table."""
    kept: list[Row] = []
    named = {task: of_task(task, data, encoder)}
    named |= {name: of_pages(pages, name, count, encoder) for name in sets.split(",")}
    for name, found in named.items():
        rows = [{**row, "encoder": encoder, **provenance()} for row in rows_of(name, found)]
        append_rows(output, rows)
        kept += rows
    click.echo(table(kept))


if __name__ == "__main__":
    main()
