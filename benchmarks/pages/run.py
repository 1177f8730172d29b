"""Searches real pages in many languages: encoders, with projection, map of translations and balanced scores.

    python -m benchmarks.pages.build -o ~/data/pages
    python -m benchmarks.pages.run --pages ~/data/pages --sets gnome60 --systems bm25,mini,mini-e5,e5,muse -o runs/pages

A query is a page's title in one of its languages; the page is right in each language. Rows are in
`results/pages.jsonl`. Vectors and indexes stay in the output folder, so that the same command continues.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click
import numpy as np

import metasearch as ms
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, read_rows
from benchmarks.pages import systems
from benchmarks.pages.pool import TOP, Names, Pool, Query, Values, measure, pool_of, pool_of_task, read_queries
from benchmarks.pages.tables import main_table
from metasearch.data.records import RetrievalData
from metasearch.evaluation.statistics.paired import clustered_test

ROWS = RESULTS / "pages.jsonl"
MAP = f"map@{TOP}"
PAGE, PASSAGE = "page", "passage"
CUTTER = "mini-e5"
"""Its index has the passages that the USE reads, and its tokens are the words of BM25."""


@click.command(cls=Command)
@click.option("--pages", type=click.Path(path_type=Path), help="Folder of `benchmarks.pages.build`.")
@click.option("--sets", default="gnome60", show_default=True, help="Which, with commas between.")
@click.option("--systems", "names", default="bm25,mini,mini-e5,e5", show_default=True, help="Encoders, bm25 and muse.")
@click.option("--units", default="passage", show_default=True, help="Score by passage, by page, or both.")
@click.option("--count", type=int, help="Pages of each set, drawn by the hash of their names; by default all.")
@click.option("--task", help="Instead of pages: a retrieval task, such as lareqa-sentences.")
@click.option("--data", help="Folder of the task's files or a parent of it.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of indexes and vectors.")
def main(
    pages: Path | None, sets: str, names: str, units: str, count: int | None, task: str | None, data: str | None,
    output: Path,
) -> None:  # fmt: skip
    """Score systems on sets, keep the rows, and print the table of all."""
    if task:
        benchmark = ms.load_benchmark(task, data=data, fold=0)
        test = benchmark.split.test
        assert isinstance(test, RetrievalData)
        for name in names.split(","):
            keep(
                rows_of_task(test, name, output), {"set": task, "unit": "candidate", "data": benchmark.data.fingerprint}
            )
    elif pages is None:
        raise click.UsageError("name the folder of pages with --pages, or a task with --task")
    for name in sets.split(",") if pages else ():
        queries = read_queries(pages / "queries" / f"{name}.jsonl", count)
        for unit in units.split(","):
            for system in names.split(","):
                found = rows_of_pages(queries, pages / name, system, unit, output / f"{name}-{count or 'all'}")
                keep(found, {"set": name, "unit": unit, "data": digest(queries, pages / name)})
    click.echo(main_table(read_rows(ROWS)))


def keep(rows: Iterable[Row], facts: Row) -> None:
    """Append rows as they are made."""
    for row in rows:
        append_rows(ROWS, [{**facts, **row, **provenance()}])


def digest(queries: Sequence[Query], folder: Path) -> str:
    """Return a fingerprint of queries and pages."""
    found = hashlib.sha256()
    for query, path in zip(queries, systems.files_of(folder, queries), strict=True):
        found.update(f"{query}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def rows_of_pages(queries: Sequence[Query], folder: Path, system: str, unit: str, output: Path) -> Iterator[Row]:
    """Yield a row of each way in which a system searches pages."""
    pool, files = pool_of(queries), systems.files_of(folder, queries)
    if unit == PAGE or system == systems.BM25:
        texts = systems.whole_texts(files)
        if system == systems.BM25:
            if unit == PAGE:
                searcher = systems.search_index(files, output / CUTTER, CUTTER)
                scores = systems.words(texts, pool.texts, searcher.cut_words)
                yield row_of(scores, pool, system, projection=False, balanced=False)
            return
        encoded = systems.by_page(system, texts, pool.languages, pool.texts, output / "vectors")
    elif system == systems.DEFAULT:
        searcher = systems.search_index(files, output / system, None)
        scores = systems.search(searcher, files, pool.texts)
        row = row_of(scores, pool, system, projection=False, balanced=False)
        known = {name: row["values"][name] for name in (MAP, "own", "own first")}
        yield {**row, "values": known, "encoder": searcher.encoder.name}
        return
    elif system == systems.USE:
        searcher = systems.search_index(files, output / CUTTER, CUTTER)
        encoded = systems.recoded(searcher, files, pool.texts, output / "vectors")
    else:
        encoded = systems.by_passage(systems.search_index(files, output / system, system), files, pool.texts)
    yield from ways(encoded, pool, system, pool.groups)


def rows_of_task(data: RetrievalData, system: str, output: Path) -> Iterator[Row]:
    """Yield a row of each way in which a system searches the candidates of a task."""
    pool = pool_of_task(data)
    texts = [candidate.text for candidate in data.candidates]
    groups = np.array([candidate.group for candidate in data.candidates])
    encoded = systems.by_page(system, texts, pool.languages, pool.texts, output / "vectors")
    yield from ways(encoded, pool, system, groups)


def ways(encoded: systems.Encoded, pool: Pool, system: str, pages: Names) -> Iterator[Row]:
    """Yield the rows of an encoder, with a projection, and with a map of translations, too; plain and balanced."""
    neutral = encoded.projected()
    for found, projection, translations in (
        (encoded, False, False), (neutral, True, False), (neutral.mapped(pages), True, True)
    ):  # fmt: skip
        scores = found.scores()
        for balanced in (False, True):
            yield {**row_of(scores, pool, system, projection, balanced), "translations": translations}


def row_of(scores: systems.Vectors, pool: Pool, system: str, projection: bool, balanced: bool) -> Row:
    """Return the figures of one way to search."""
    values = measure(scores, pool, balanced)
    plain = measure(scores, pool, balanced=False) if balanced else None
    return {
        "system": system,
        "projection": projection,
        "balanced": balanced,
        "queries": len(pool.texts),
        "documents": len(pool.languages),
        "values": {name: figure(found, pool) for name, found in values.items()},
        "gains": {name: gain(found, plain[name], pool) for name, found in values.items()} if plain else {},
        "languages": {
            tag: round(float(np.nanmean(values[MAP][pool.asked == tag])), 4) for tag in np.unique(pool.asked).tolist()
        },
        "pages": by_group(values[MAP], pool),
    }


def figure(values: Values, pool: Pool) -> list[float]:
    """Return the mean over queries, and its interval by page."""
    return gain(values, np.zeros_like(values), pool)


def gain(values: Values, baseline: Values, pool: Pool) -> list[float]:
    """Return the mean difference over the queries that both have, and its 95 % interval by page."""
    both = ~np.isnan(values) & ~np.isnan(baseline)
    test = clustered_test(values[both].tolist(), baseline[both].tolist(), pool.groups[both].tolist())
    return [round(each, 5) for each in (test.mean, test.low, test.high) if each is not None]


def by_group(values: Values, pool: Pool) -> Mapping[str, int]:
    """Return the mean of each page or article in hundredths of a percent, for comparisons of systems."""
    names = np.unique(pool.groups)
    return {name: round(1e4 * float(np.nanmean(values[pool.groups == name]))) for name in names.tolist()}


if __name__ == "__main__":
    main()
