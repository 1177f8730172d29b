"""Adapts a search to titles of some pages in two languages, and searches for other pages in all languages.

    python -m benchmarks.pages.adapt --queries ~/data/pages/queries/gnome.jsonl --index gnome.index --set gnome

A quarter of the pages is searched for; labels are titles of the others, in German and English. Compares what an index
does without labels, its map of translations; the adapter of `metasearch adapt` after it, without and with answers; and
a matrix that is trained by InfoNCE. All gains are against the projection alone. Rows are
in `results/adaptation.jsonl`.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

import metasearch as ms
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, read_rows
from metasearch.data.labels import load_labels
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.pool_scores import SHARE
from metasearch.evaluation.statistics.paired import clustered_test
from metasearch.runs.markdown import markdown
from metasearch.search.index.local import LocalStore
from metasearch.search.index.maps import mapped
from metasearch.search.index.plan import SearchPlan
from metasearch.search.query.searcher import QUERY
from metasearch.search.tune.adapt.job import SEARCHED
from metasearch.search.tune.adapt.searched import SearchedIndex
from metasearch.search.tune.labels import Labels
from metasearch.search.tune.steps import ADAPTER, ANSWERED

ROWS = RESULTS / "adaptation.jsonl"
MAP, MATRIX = "translations", "matrix"
"""Forms of rows: the map of translations alone, and the trained matrix."""
LABELLED = ("de", "en")
TOP = 20
STEPS, RATE, TEMPERATURE, BATCH = 25, 1e-4, 0.05, 32
"""Of InfoNCE. More steps are worse: 100 lose 1.0 with 128 labels."""
Array = NDArray[Any]


class Pool:
    """Pages of an index, and the queries that ask for them."""

    def __init__(self, index: Path, queries: Path) -> None:
        searcher = ms.open_searcher(index)
        assert isinstance(searcher.store, LocalStore)
        self.store = searcher.store
        passages = [passage for passage, _ in self.store.passages(range(len(self.store)))]
        files = dict.fromkeys(passage.file for passage in passages)
        numbers = {file: i for i, file in enumerate(files)}
        of_row = np.array([numbers[passage.file] for passage in passages])
        order = np.argsort(of_row, kind="stable")
        self.documents = self.store.quantised.take(order)
        self.of_row, self.starts = of_row[order], np.unique(of_row[order], return_index=True)[1]
        self.files = list(files)
        self.pages = np.array([Path(file).stem for file in files])
        tags = np.array([Path(file).parent.name for file in files])
        self.languages = [np.flatnonzero(tags == tag) for tag in np.unique(tags)]
        rows = [json.loads(line) for line in queries.read_text(encoding="utf-8").splitlines()]
        self.rows = [row for row in rows if row["page"] in set(self.pages)]
        self.asked = np.array([row["page"] for row in self.rows])
        self.tags = np.array([row["language"] for row in self.rows])
        texts = [row["query"] for row in self.rows]
        self.vectors = searcher.encode_queries(texts)
        own = searcher.encoder.encode(texts, QUERY)
        self.index = SearchedIndex(self.store, (), dict(zip(texts, own, strict=True)), self.store.plan)
        self.plain = SearchPlan(projection=self.store.plan.projection).queries(own)

    def draw(self, count: int, seed: int) -> tuple[Array, Array]:
        """Return the numbers of labelled queries, and of queries for other pages in all languages."""
        rng = np.random.default_rng(seed)
        names = rng.permutation(np.unique(self.asked))
        test = np.isin(self.asked, names[: len(names) // 4])
        return rng.permutation(np.flatnonzero(~test & np.isin(self.tags, LABELLED)))[:count], np.flatnonzero(test)

    def scores(self, vectors: Array, queries: Array) -> Array:
        """Return the average precision of queries without and with balanced scores, `(2, q)`."""
        plain = np.maximum.reduceat(vectors @ self.documents.T, self.starts, axis=1)
        return precisions(plain, self.languages, self.pages[None, :] == self.asked[queries][:, None])


def precisions(plain: Array, languages: Sequence[Array], right: Array) -> Array:
    """Return the average precision of queries without and with balanced scores, `(2, q)`.

    Args:
        plain: scores of documents, `(q, documents)`.
        languages: the documents of each language.
        right: whether a document is right, `(q, documents)`.
    """
    balanced = plain.copy()
    for columns in languages:
        balanced[:, columns] -= SHARE * plain[:, columns].max(1, keepdims=True)
    found = []
    for scores in (plain, balanced):
        best = np.argpartition(-scores, TOP, axis=1)[:, :TOP]
        order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1, kind="stable")
        hits = np.take_along_axis(right, np.take_along_axis(best, order, 1), 1)
        precision = np.cumsum(hits, 1) / np.arange(1, TOP + 1)
        found.append((precision * hits).sum(1) / np.minimum(right.sum(1), TOP))
    return np.array(found)


def metrics(pool: Pool, labelled: Array) -> Iterator[tuple[str, Array]]:
    """Yield what follows the map of translations: nothing, and the two adapters of `metasearch adapt` for labels."""
    place = {(Path(file).stem, Path(file).parent.name): file for file in pool.files}
    rows = [pool.rows[i] for i in labelled]
    labels = [
        {"query": row["query"], "page": place[row["page"], row["language"]], "language": row["language"]}
        for row in rows
        if (row["page"], row["language"]) in place
    ]
    joined, _ = Labels.on_index(pool.store, load_labels(labels, named=True), 4, None, SEARCHED)
    index = replace(pool.index, passages=joined.everything.candidates)
    yield MAP, np.eye(pool.vectors.shape[1], dtype=np.float32)
    for form in (ADAPTER, ANSWERED):
        yield form, index.adapter(form, joined.data)


def trained(pool: Pool, labelled: Array, seed: int) -> Array:
    """Return a matrix after InfoNCE over all documents; the nearest passage of each right page is right."""
    torch.manual_seed(seed)
    rng, adapter = np.random.default_rng(seed), MatrixAdapter(pool.vectors.shape[1])
    queries, documents = torch.from_numpy(pool.plain[labelled]), torch.from_numpy(pool.documents)
    answers = pool.pages[pool.of_row][None, :] == pool.asked[labelled][:, None]
    scores = np.where(answers, pool.plain[labelled] @ pool.documents.T, -np.inf)
    best = np.maximum.reduceat(scores, pool.starts, axis=1)[:, pool.of_row]
    right, wrong = torch.from_numpy(answers & (scores == best)), torch.from_numpy(~answers)
    optimizer = torch.optim.Adam(adapter.parameters(), lr=RATE)
    for _ in range(STEPS):
        chosen = torch.from_numpy(rng.permutation(len(labelled))[:BATCH])
        logits = adapter(queries[chosen]) @ documents.T / TEMPERATURE
        others = logits.masked_fill(~wrong[chosen], -torch.inf).logsumexp(1, keepdim=True)
        loss = ((F.softplus(others - logits) * right[chosen]).sum(1) / right[chosen].sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    matrix: Array = adapter.matrix().detach().numpy()
    return matrix


def adapters(pool: Pool, labelled: Array, train: bool, seed: int) -> Iterator[tuple[str, Array, float]]:
    """Yield the queries through each adapter, with its CPU seconds."""
    start = time.process_time()
    for name, matrix in metrics(pool, labelled):
        yield name, mapped(pool.vectors, matrix), time.process_time() - start
        start = time.process_time()
    if train:
        start = time.process_time()
        matrix = trained(pool, labelled, seed)
        yield MATRIX, mapped(pool.plain, matrix), time.process_time() - start


def rows_of(pool: Pool, count: int, draws: int, train: bool) -> Iterator[Row]:
    """Yield a row of each form with a number of labels."""
    gains: dict[str, list[Array]] = {}
    seconds: dict[str, list[float]] = {}
    base, groups, tags = [], [], []
    for seed in range(draws):
        labelled, test = pool.draw(count, seed)
        base.append(pool.scores(pool.plain[test], test))
        groups += pool.asked[test].tolist()
        tags += pool.tags[test].tolist()
        for name, queries, took in adapters(pool, labelled, train, seed):
            seconds.setdefault(name, []).append(took)
            gains.setdefault(name, []).append(pool.scores(queries[test], test) - base[-1])
    mean = np.concatenate(base, axis=1).mean(1).round(4).tolist()
    for name, found in gains.items():
        gain = np.concatenate(found, axis=1)
        tests = [clustered_test(each.tolist(), np.zeros_like(each).tolist(), groups) for each in gain]
        own = {tag: (100 * gain[:, np.array(tags) == tag].mean(1)).round(2).tolist() for tag in sorted({*tags})}
        yield {
            "labels": count, "form": name, "draws": draws, "base": mean,
            "gains": [[round(100 * each, 2) for each in (t.mean, t.low or 0, t.high or 0)] for t in tests],
            "languages": own, "seconds": round(float(np.mean(seconds[name])), 2),
        }  # fmt: skip


def table(rows: Sequence[Row], name: str) -> str:
    """Return the rows of a set as a table: gains of mAP@20 without and with balanced scores."""
    last: Mapping[tuple[int, str], Row] = {(row["labels"], row["form"]): row for row in rows if row["set"] == name}
    lines = []
    for (labels, form), row in sorted(last.items(), key=lambda item: item[0][0]):
        plain, balanced = (f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]" for mean, low, high in row["gains"])
        least = min((values[1], tag) for tag, values in row["languages"].items())
        lines.append((str(labels), form, plain, balanced, f"{least[0]:+.1f} ({least[1]})"))
    base = next(iter(last.values()))["base"]
    heads = (f"without {100 * base[0]:.1f}", f"balanced, without {100 * base[1]:.1f}", "least language, balanced")
    return markdown(("labels", "adapter", *heads), lines)


@click.command(cls=Command)
@click.option("--index", required=True, type=click.Path(path_type=Path), help="Folder of the index.")
@click.option(
    "--queries", required=True, type=click.Path(path_type=Path), help="Titles, from `benchmarks.pages.build`."
)
@click.option("--set", "name", required=True, help="Name of the rows.")
@click.option("--counts", default="8,32,128,512", show_default=True, help="Labelled titles.")
@click.option("--draws", default=4, show_default=True, help="Draws of labels and tested pages.")
@click.option("--train/--no-train", default=True, show_default=True, help="Train a matrix, too.")
def main(index: Path, queries: Path, name: str, counts: str, draws: int, train: bool) -> None:
    """Score adapters, keep the rows, and print the table."""
    pool = Pool(index, queries)
    for count in map(int, counts.split(",")):
        for row in rows_of(pool, count, draws, train):
            append_rows(ROWS, [{"set": name, **row, **provenance()}])
    click.echo(table(read_rows(ROWS), name))


if __name__ == "__main__":
    main()
