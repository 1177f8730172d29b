"""Ranks pages by vectors that lost their language in other ways; all else is the same.

    python -m benchmarks.pages.rivals --pages ~/data/pages --encoder e5 -o runs/pages

Passages and queries are those of `benchmarks.pages.questions`, as the encoder gives them. Pages are ranked by their
best passage, or by page scores with translations as one hit, as a search ranks them. Both have balanced scores where
the index has them. The sharpness of page scores is set by the spread of each way's scores. Rows are in
`results/page_rivals.jsonl`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, latest_rows, read_rows
from benchmarks.pages import removal
from benchmarks.pages.asked import ANY, CHOSE, CHOSE_NOTHING, MAP, OTHER, OWN, Asked, cell, read_asked, value_facts
from benchmarks.pages.page import ENGLISH
from benchmarks.pages.questions import open_index, open_raw
from benchmarks.pages.ranking import Table, Way, own_tags
from benchmarks.pages.removal import Tags, Vectors, unit
from metasearch.config.languages import primary_language
from metasearch.encoders.page_scores import sharpness_for
from metasearch.runs.markdown import markdown
from metasearch.search.index.plan import SearchPlan

ROWS = RESULTS / "page_rivals.jsonl"
TITLES = ("gnome60-no-titles", "developers-reference-no-titles")
PASSAGE, PAGES = "best passage", "page scores"
OURS, UNCHANGED = "metasearch", "unchanged"

Pair = tuple[Vectors, Vectors]
"""Vectors of passages `(N, D)` and of queries `(Q, D)`."""


@dataclass(frozen=True, eq=False)
class Space:
    """Vectors of an index as the encoder gives them, and what rivals know about them.

    Attributes:
        passages: `(N, D)`.
        tags: language of each, `(N,)`.
        queries: `(Q, D)`.
        asked: detected language of each query as a tag of the passages, or empty, `(Q,)`.
        pages: mean vector of each page, `(P, D)`.
        page_tags: its language, `(P,)`.
        groups: number of its group of translations, `(P,)`.
        plan: of the index by default settings.
    """

    passages: Vectors
    tags: Tags
    queries: Vectors
    asked: Sequence[str]
    pages: Vectors
    page_tags: Tags
    groups: np.ndarray[tuple[int], np.dtype[np.int64]]
    plan: SearchPlan


def unchanged(space: Space) -> Pair:
    """Return the vectors of the encoder."""
    return space.passages, space.queries


def ours(space: Space) -> Pair:
    """Return the vectors of an index: projection, centre of queries, and map of translations."""
    return space.plan.documents(space.passages), space.plan.queries(space.queries)


def shifted(space: Space) -> Pair:
    """Return the vectors by SHIFT: passages move to where English is."""
    english = next((tag for tag in np.unique(space.page_tags).tolist() if primary_language(tag) == ENGLISH), ENGLISH)
    offsets = removal.parallel_offsets(space.pages, space.page_tags, space.groups, english)
    return unit(removal.subtract(space.passages, space.tags.tolist(), offsets)), space.queries


def centred(space: Space) -> Pair:
    """Return the vectors less the mean of each language; a query of unknown language loses the mean of all means."""
    means = removal.language_means(space.passages, space.tags)
    known = {**means, "": np.mean([*means.values()], axis=0)}
    passages = removal.subtract(space.passages, space.tags.tolist(), means)
    return unit(passages), unit(removal.subtract(space.queries, space.asked, known))


def erased(space: Space) -> Pair:
    """Return the vectors by LEACE."""
    eraser = removal.erase(space.passages, space.tags)
    return unit(eraser(space.passages)), unit(eraser(space.queries))


def sparse(space: Space) -> Pair:
    """Return the vectors without the latents of one language."""
    model = removal.train_autoencoder(space.passages)
    latents = removal.own_latents(model.codes(space.passages), space.tags)
    return unit(model.without(space.passages, latents)), unit(model.without(space.queries, latents))


VECTORS: Mapping[str, Callable[[Space], Pair]] = {
    OURS: ours,
    UNCHANGED: unchanged,
    "SHIFT": shifted,
    "centred by language": centred,
    "LEACE": erased,
    "sparse autoencoder": sparse,
}


def read_space(asked: Asked, encoder: str, output: Path) -> tuple[Space, Table, bool, list[list[str]]]:
    """Return vectors, pages, whether scores are balanced, and the tags of each query's language."""
    plan = open_index(asked, encoder, output).store.plan
    searcher = open_raw(asked, encoder, output)
    store, table = searcher.store, Table.read(searcher, asked)
    passages = store.quantised.take(slice(None))  # type: ignore[attr-defined]
    own = own_tags(searcher, asked.texts)
    sizes = np.diff(table.pages.starts, append=len(table.rows))
    sums = np.add.reduceat(passages[table.rows].astype(np.float64), table.pages.starts, axis=0)
    space = Space(
        passages,
        np.array([passage.language for passage, _ in store.passages(range(len(store)))]),
        searcher.encode_queries(asked.texts),
        [tags[0] if tags else "" for tags in own],
        (sums / sizes[:, None]).astype(np.float32),
        np.array(table.pages.languages),
        table.pages.groups,
        plan,
    )
    return space, table, bool(searcher.ranking.balance), own


def make_rows(asked: Asked, encoder: str, output: Path) -> Iterator[Row]:
    """Yield a row of each kind of vectors and each ranking of pages."""
    space, table, balance, own = read_space(asked, encoder, output)
    for name, change in VECTORS.items():
        passages, queries = change(space)
        scores = queries @ passages.T
        ways = {PASSAGE: Way(None, balance, grouped=False), PAGES: Way(sharpness_for(scores), balance, grouped=True)}
        for ranked, way in ways.items():
            values = table.measure(asked, scores, way, own)
            yield {
                "kind": asked.kind, "set": asked.name, "vectors": name, "ranked": ranked, "encoder": encoder,
                "questions": len(asked.questions), "documents": len(asked.files), "data": asked.digest,
                "balanced": balance, **value_facts(values, asked),
            }  # fmt: skip


def identify(row: Row) -> tuple[object, ...]:
    """Return what a row is known by."""
    return row["kind"], row["set"], row["vectors"], row["ranked"], row["encoder"]


def table(rows: Sequence[Row], encoder: str = "e5") -> str:
    """Return values on questions about sets that chose nothing, and mAP@20 of titles, with differences from ours."""
    last = {identify(row): row for row in latest_rows(rows, identify)}

    def pick(kind: str, sets: Sequence[str], vectors: str, ranked: str) -> list[Row]:
        keys = [(kind, name, vectors, ranked, encoder) for name in sets]
        return [last[key] for key in keys if key in last]

    lines = []
    for ranked in (PASSAGE, PAGES):
        for name in VECTORS:
            cells = []
            for kind, sets, value in (
                ("questions", CHOSE_NOTHING, OWN), ("questions", CHOSE_NOTHING, ANY),
                ("questions", CHOSE_NOTHING, OTHER), ("titles", TITLES, MAP),
            ):  # fmt: skip
                own, baseline = (pick(kind, sets, vectors, ranked) for vectors in (name, OURS))
                same = name != OURS and [row["set"] for row in own] == [row["set"] for row in baseline]
                cells.append(cell(own, baseline if same else [], value) if own else "")
            if any(cells):
                lines.append([name, ranked, *cells])
    return markdown(["vectors", "pages by", OWN, ANY, OTHER, "titles, mAP@20"], lines, left=2)


@click.command(cls=Command)
@click.option("--pages", required=True, type=click.Path(path_type=Path), help="Folder of `benchmarks.pages.build`.")
@click.option("--sets", default=",".join((*CHOSE_NOTHING, *CHOSE)), show_default=True, help="Sets of questions.")
@click.option("--titles", default=",".join(TITLES), show_default=True, help="Sets of titles.")
@click.option("--encoder", default="e5", show_default=True, help="Encoder of the indexes.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of indexes.")
def main(pages: Path, sets: str, titles: str, encoder: str, output: Path) -> None:
    """Score rivals on sets, keep the rows, and print the table."""
    for asked in read_asked(pages, sets, titles):
        for row in make_rows(asked, encoder, output):
            append_rows(ROWS, [{**row, **provenance()}])
    click.echo(table(read_rows(ROWS), encoder))


if __name__ == "__main__":
    main()
