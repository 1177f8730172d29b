"""Asks labelled pages again in other languages, and other pages, with and without labelled queries.

    python -m benchmarks.pages.memory --queries ~/data/pages/queries/debian-faq.jsonl --index faq.index --set faq

Labels are titles of some pages in three languages, until there are 128. Tests are titles of these pages in the other
languages, and titles of all other pages. A search by page finds the hits of each adapter. Rows are in
`results/memory.jsonl`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, read_rows
from benchmarks.pages.adapt import TOP, Pool
from metasearch.config.measure import BALANCED
from metasearch.data.labels import load_labels
from metasearch.evaluation.statistics.paired import clustered_test
from metasearch.runs.markdown import markdown
from metasearch.search.index.local import LocalStore
from metasearch.search.index.plan import Adapter
from metasearch.search.indexes import open_searcher
from metasearch.search.query.searcher import Searcher
from metasearch.search.tune.adapt.job import Trial
from metasearch.search.tune.steps import READS_ANSWERS, REMEMBERED
from metasearch.search.tune.training import shuffled

ROWS = RESULTS / "memory.jsonl"
LABELLED, COUNT, DRAWS = ("de", "en", "fr"), 128, 3
PARTS = ("labelled pages", "other pages")
Array = NDArray[Any]


def draw(pool: Pool, seed: int) -> tuple[Array, tuple[Array, Array]]:
    """Return the numbers of labelled queries, and of queries for their pages in other languages and for other pages."""
    labelled: list[int] = []
    pages: list[str] = []
    spoken = np.isin(pool.tags, LABELLED)
    for page in np.random.default_rng(seed).permutation(np.unique(pool.asked)).tolist():
        if len(labelled) < COUNT:
            labelled += np.flatnonzero((pool.asked == page) & spoken).tolist()
            pages.append(page)
    same = np.isin(pool.asked, pages)
    return np.array(labelled[:COUNT]), (np.flatnonzero(same & ~spoken), np.flatnonzero(~same))


def precisions(searcher: Searcher, pool: Pool, queries: Array) -> Array:
    """Return the average precision of queries by the hits of a search, `(q,)`."""
    found = searcher.search([pool.rows[i]["query"] for i in queries], top_k=TOP, by="page")
    right = np.zeros((len(queries), TOP))
    for row, hits in enumerate(found):
        own = [Path(hit.passage.file).stem == pool.asked[queries[row]] for hit in hits]
        right[row, : len(own)] = own
    count = [min(TOP, int((pool.pages == pool.asked[i]).sum())) for i in queries]
    each: Array = (np.cumsum(right, 1) / np.arange(1, TOP + 1) * right).sum(1) / count
    return each


def forms(trial: Trial, seed: int) -> Iterator[tuple[str, Adapter]]:
    """Yield the adapters of labels, and the last one with shuffled labels."""
    data = trial.labels.everything
    for form in READS_ANSWERS:
        labelled = trial.index.labelled(data)[0] if form == REMEMBERED else None
        yield form, Adapter(form, trial.matrix(form), labelled)
    wrong = shuffled(data, seed)
    yield f"{form}, shuffled", Adapter(form, trial.index.adapter(form, wrong), trial.index.labelled(wrong)[0])


def rows_of(pool: Pool, searcher: Searcher) -> Iterator[Row]:
    """Yield a row of each form."""
    store = searcher.store
    assert isinstance(store, LocalStore)
    place = {(Path(file).stem, Path(file).parent.name): file for file in pool.files}
    plain = replace(store.plan, adapter=None)
    base: list[list[Array]] = [[], []]
    gains: dict[str, list[list[Array]]] = {}
    groups: list[list[str]] = [[], []]
    kept: list[tuple[bool, bool]] = []
    for seed in range(DRAWS):
        labelled, parts = draw(pool, seed)
        store.plan = plain
        rows = [pool.rows[i] for i in labelled]
        pages = [place.get((row["page"], row["language"])) or place[row["page"], "en"] for row in rows]
        labels = [{**row, "page": page} for row, page in zip(rows, pages, strict=True)]
        loaded = load_labels(labels, named=True)
        kept.append((_keeps(searcher, loaded), _keeps(searcher, shuffled(loaded, seed))))
        trial = Trial.of(searcher, loaded, 4, None)
        for part, queries in enumerate(parts):
            base[part].append(precisions(searcher, pool, queries))
            groups[part] += pool.asked[queries].tolist()
        for form, adapter in forms(trial, seed):
            store.plan = replace(plain, adapter=adapter)
            for part, queries in enumerate(parts):
                found = precisions(searcher, pool, queries) - base[part][-1]
                gains.setdefault(form, [[], []])[part].append(found)
    store.plan = plain
    means = [round(float(np.concatenate(each).mean()), 4) for each in base]
    for form, found in gains.items():
        each = [np.concatenate(own) for own in found]
        tests = [clustered_test(own.tolist(), np.zeros(len(own)).tolist(), groups[i]) for i, own in enumerate(each)]
        shown = [[round(100 * value, 2) for value in (t.mean, t.low or 0, t.high or 0)] for t in tests]
        yield {"labels": COUNT, "draws": DRAWS, "form": form, "base": means, "gains": shown, "kept": kept}


def _keeps(searcher: Searcher, labels: Any) -> bool:
    """Return whether `metasearch adapt` would keep an adapter."""
    trial = Trial.of(searcher, labels, 4, None)
    assert trial.pool == BALANCED
    return bool(trial.table().choose())


def table(rows: Sequence[Row], name: str) -> str:
    """Return the gains of mAP@20 of each form on pages with labels and on others."""
    last = {row["form"]: row for row in rows if row["set"] == name}
    base = next(iter(last.values()))["base"]
    heads = [f"{part}, without {100 * score:.1f}" for part, score in zip(PARTS, base, strict=True)]
    lines = [
        (form, *(f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]" for mean, low, high in row["gains"]))
        for form, row in last.items()
    ]
    return markdown(("adapter", *heads), lines)


@click.command(cls=Command)
@click.option("--index", required=True, type=click.Path(path_type=Path), help="Folder of the index.")
@click.option(
    "--queries", required=True, type=click.Path(path_type=Path), help="Titles, from `benchmarks.pages.build`."
)
@click.option("--set", "name", required=True, help="Name of the rows.")
def main(index: Path, queries: Path, name: str) -> None:
    """Score adapters with and without labelled queries, keep the rows, and print the table."""
    for row in rows_of(Pool(index, queries), open_searcher(index)):
        append_rows(ROWS, [{"set": name, **row, **provenance()}])
    click.echo(table(read_rows(ROWS), name))


if __name__ == "__main__":
    main()
