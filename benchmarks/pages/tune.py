"""Tunes an encoder on titles of some pages in two languages, and searches other pages in eleven.

    python -m benchmarks.pages.tune --pages ~/data/pages --encoder mini-e5 --counts 32,128 -o runs/pages

Labels are titles with the first passages of their pages, in German and English, from pages of `gnome` that `gnome60`
does not have. The search is that of `benchmarks.pages.run` on `gnome60`, and adds rows to `results/pages.jsonl`.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import click

import metasearch as ms
from benchmarks.common.command import Command
from benchmarks.common.rows import read_rows
from benchmarks.pages import systems
from benchmarks.pages.pool import Query, pool_of, read_queries
from benchmarks.pages.run import PASSAGE, ROWS, digest, keep, row_of
from benchmarks.pages.tables import main_table
from metasearch.data.documents.chunking import Settings
from metasearch.data.documents.read import read
from metasearch.data.records import Candidate, Question, RetrievalData

LANGUAGES = ("de", "en")
LABELS, SEARCHED = "gnome", "gnome60"


@click.command(cls=Command)
@click.option("--pages", required=True, type=click.Path(path_type=Path), help="Folder of `benchmarks.pages.build`.")
@click.option("--encoder", default="mini-e5", show_default=True, help="Built-in name, local folder or hub name.")
@click.option("--counts", default="32,128", show_default=True, help="Labelled titles, over both languages.")
@click.option("--seed", default=0, show_default=True, help="Draws labels and episodes.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of tunings and indexes.")
def main(pages: Path, encoder: str, counts: str, seed: int, output: Path) -> None:
    """Tune on each number of labels, search, keep the rows, and print the table of all."""
    known = read_queries(pages / "queries" / f"{LABELS}.jsonl")
    asked = read_queries(pages / "queries" / f"{SEARCHED}.jsonl")
    pool, files = pool_of(asked), systems.files_of(pages / SEARCHED, asked)
    for count in map(int, counts.split(",")):
        name = f"{encoder}-{count}-{seed}"
        drawn = draw(known, {query.page for query in asked}, count, seed)
        ms.tune(labels(drawn, pages / LABELS), output / name, encoder=encoder, seed=seed)
        searcher = systems.search_index(files, output / f"{name}.index", str(output / name / "model"))
        scores = systems.by_passage(searcher, files, pool.texts).scores()
        facts = {"set": SEARCHED, "unit": PASSAGE, "data": digest(asked, pages / SEARCHED), "seed": seed}
        called = f"{encoder}, {count} labels"
        keep((row_of(scores, pool, called, False, balanced) for balanced in (False, True)), facts)
    click.echo(main_table(read_rows(ROWS)))


def draw(known: Sequence[Query], searched: set[str], count: int, seed: int) -> list[Query]:
    """Return `count` queries, of pages that are in both languages and are not searched."""
    own: dict[str, list[Query]] = {}
    for query in known:
        if query.language in LANGUAGES and query.page not in searched:
            own.setdefault(query.page, []).append(query)
    names = sorted(name for name, queries in own.items() if len(queries) == len(LANGUAGES))
    Random(seed).shuffle(names)
    return [query for name in names[: count // len(LANGUAGES)] for query in own[name]]


def labels(queries: Sequence[Query], folder: Path) -> RetrievalData:
    """Return titles as questions, which the first passages of their pages answer in both languages."""
    files = systems.files_of(folder, queries)
    first: dict[str, str] = {}
    for passage in read(files, Settings()):
        first.setdefault(passage.file, passage.text)
    texts = [first[path.as_posix()] for path in files]
    return RetrievalData(
        tuple(Question(query.page, query.language, query.text, query.page) for query in queries),
        tuple(
            Candidate(f"{query.page}.{query.language}", query.language, text, query.page, (query.page,))
            for query, text in zip(queries, texts, strict=True)
        ),
    )


if __name__ == "__main__":
    main()
