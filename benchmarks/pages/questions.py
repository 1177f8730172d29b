"""Answers questions as people type them from whole manuals, by default settings and by simple rivals.

    python -m benchmarks.pages.build -o ~/data/pages
    python -m benchmarks.pages.questions --pages ~/data/pages --sets debian-faq,gnome-help --encoder e5 -o runs/pages

`questions/` has 40 questions each about five manuals, written before any search. The rows of `--titles` are of sets
whose queries are titles, such as `gnome60-no-titles`. Rows are in `results/questions.jsonl`.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

import metasearch as ms
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, latest_rows, read_rows
from benchmarks.pages import systems
from benchmarks.pages.asked import (
    ANY,
    CHOSE,
    CHOSE_NOTHING,
    FIRST,
    MAP,
    OTHER,
    OWN,
    Asked,
    Values,
    cell,
    gain_facts,
    measure,
    measure_scores,
    read_asked,
    value_facts,
)
from benchmarks.pages.ranking import Table, Way, own_tags, search
from metasearch.runs.markdown import markdown
from metasearch.search.query.searcher import Searcher

ROWS = RESULTS / "questions.jsonl"
DEFAULT, BY_PAGE, RAW, ONE, BM25 = "default", "by page", "no-neutral", "one vector a page", "BM25"
SYSTEMS = (DEFAULT, BY_PAGE, RAW, ONE, BM25)
POOLS = {"chose nothing": CHOSE_NOTHING, "chose settings": CHOSE}
VARIANTS = {
    "gnome60-no-titles": "GNOME help, no titles",
    "gnome60-half": "GNOME help, half of the files joined",
    "gnome60-joined": "GNOME help, joined",
    "developers-reference-no-titles": "Developer's Reference, no titles",
    "developers-reference-half": "Developer's Reference, half of the files joined",
    "developers-reference-joined": "Developer's Reference, joined",
    "debian-faq": "Debian FAQ, its questions",
}


def open_index(asked: Asked, encoder: str, output: Path) -> Searcher:
    """Return a searcher for an index of the files by default settings, made unless it is there."""
    folder = output / f"{asked.kind}-{asked.name}-{encoder}"
    ms.index_documents(asked.files, folder, encoder)
    return ms.open_searcher(folder)


def open_raw(asked: Asked, encoder: str, output: Path) -> Searcher:
    """Return a searcher for the same index with `neutral` False: a copy with the same vectors."""
    before = output / f"{asked.kind}-{asked.name}-{encoder}"
    folder = before.with_name(f"{before.name}-raw")
    if not folder.exists():
        begun = folder.with_name(f"{folder.name}-begun")
        shutil.rmtree(begun, ignore_errors=True)
        shutil.copytree(before, begun)
        begun.rename(folder)
    ms.index_documents(asked.files, folder, encoder, {"neutral": False})
    return ms.open_searcher(folder)


def searched(searcher: Searcher, asked: Asked, by: str | None = None) -> dict[str, Values]:
    """Return the values of a search without an option but `by`.

    `other` is by the scores of the same search, on the pages that are left in its pool.
    """
    table, plan = Table.read(searcher, asked), searcher.store.plan
    way = Way(plan.sharpness, bool(searcher.ranking.balance), (by or searcher.ranking.by) == "group")
    vectors = searcher.store.quantised.take(slice(None))  # type: ignore[attr-defined]
    scores = searcher.encode_queries(asked.texts) @ vectors.T
    alone = table.rank_alone(asked, scores, way, own_tags(searcher, asked.texts))
    return measure(asked, search(searcher, asked, by), alone)


def one_vector(asked: Asked, encoder: str, cache: Path) -> dict[str, Values]:
    """Return the values of one vector a page, as in ten lines of sentence-transformers.

    Weights and prompts are those of the index. A page is its whole visible text, which the model truncates.
    """
    model = ms.load_encoder(encoder).model

    def encode(texts: Sequence[str], prompt: str) -> systems.Vectors:
        found = model.encode(list(texts), prompt_name=prompt, normalize_embeddings=True, show_progress_bar=False)
        return found.astype("float32")  # type: ignore[no-any-return]

    texts = systems.whole_texts(asked.files)
    key = (encoder, ONE)
    pages = systems.cached(lambda: encode(texts, "document"), (*key, "document", *texts), cache)
    questions = systems.cached(lambda: encode(asked.texts, "query"), (*key, "query", *asked.texts), cache)
    return measure_scores(asked, questions @ pages.T)


def every_system(asked: Asked, encoder: str, output: Path) -> Iterator[tuple[str, dict[str, Values]]]:
    """Yield each system's values; the baseline first."""
    yield ONE, one_vector(asked, encoder, output / "vectors")
    searcher = open_index(asked, encoder, output)
    texts = systems.whole_texts(asked.files)
    yield BM25, measure_scores(asked, systems.words(texts, asked.texts, searcher.cut_words))
    yield DEFAULT, searched(searcher, asked)
    yield BY_PAGE, searched(searcher, asked, "page")
    yield RAW, searched(open_raw(asked, encoder, output), asked)


def make_rows(asked: Asked, encoder: str, output: Path) -> Iterator[Row]:
    """Yield a row of each system."""
    baseline: Mapping[str, Values] = {}
    for system, values in every_system(asked, encoder, output):
        baseline = baseline or values
        yield {
            "kind": asked.kind, "set": asked.name, "system": system, "encoder": encoder,
            "questions": len(asked.questions), "documents": len(asked.files), "data": asked.digest,
            **value_facts(values, asked), "gains": gain_facts(values, baseline, asked),
        }  # fmt: skip


def identify(row: Row) -> tuple[object, ...]:
    """Return what a row is known by."""
    return row["kind"], row["set"], row["system"], row["encoder"]


def pick(rows: Sequence[Row], kind: str, sets: Sequence[str], system: str, encoder: str) -> list[Row]:
    """Return the last row of each set that has one."""
    last = {identify(row): row for row in latest_rows(rows, identify)}
    keys = [(kind, name, system, encoder) for name in sets]
    return [last[key] for key in keys if key in last]


def table(rows: Sequence[Row], encoder: str = "e5") -> str:
    """Return the values of each system; sets that chose nothing apart from sets that chose settings."""
    lines = []
    for pool, sets in POOLS.items():
        for system in SYSTEMS:
            lines += _lines([f"{pool}"], rows, sets, system, encoder)
    return markdown(["questions about sets that", "system", OWN, ANY, OTHER, "first hit own"], lines, left=2)


def sets_table(rows: Sequence[Row]) -> str:
    """Return the values of each system and encoder on each set."""
    encoders = list(dict.fromkeys(row["encoder"] for row in rows if row["kind"] == "questions"))
    lines = []
    for name in (*CHOSE_NOTHING, *CHOSE):
        for encoder in encoders:
            for system in SYSTEMS:
                lines += _lines([name, f"`{encoder}`"], rows, [name], system, encoder)
    return markdown(["set", "encoder", "system", OWN, ANY, OTHER, "first hit own"], lines, left=3)


def _lines(
    heads: Sequence[str], rows: Sequence[Row], sets: Sequence[str], system: str, encoder: str
) -> list[list[str]]:
    """Return a line, or none without rows; a difference is from the baseline on the same sets."""
    own = pick(rows, "questions", sets, system, encoder)
    if not own:
        return []
    baseline = [] if system == ONE else pick(rows, "questions", [row["set"] for row in own], ONE, encoder)
    baseline = baseline if len(baseline) == len(own) else []
    values = [cell(own, baseline, name) for name in (OWN, ANY, OTHER)]
    return [[*heads, system, *values, f"{cell(own, [], FIRST)} %"]]


def titles_table(rows: Sequence[Row], encoder: str = "e5") -> str:
    """Return mAP@20 of each system on sets whose queries are titles."""
    lines = []
    for name, shown in VARIANTS.items():
        cells = [
            cell(own, [], MAP) if (own := pick(rows, "titles", [name], system, encoder)) else "" for system in SYSTEMS
        ]
        if any(cells):
            lines.append([shown, *cells])
    return markdown(["pages", *SYSTEMS], lines, left=1)


@click.command(cls=Command)
@click.option("--pages", required=True, type=click.Path(path_type=Path), help="Folder of `benchmarks.pages.build`.")
@click.option("--sets", default=",".join((*CHOSE_NOTHING, *CHOSE)), show_default=True, help="Sets of questions.")
@click.option("--titles", default="", help="Sets of titles, such as gnome60-no-titles.")
@click.option("--encoder", default="e5", show_default=True, help="Encoder of the indexes.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of indexes and vectors.")
def main(pages: Path, sets: str, titles: str, encoder: str, output: Path) -> None:
    """Score systems on sets, keep the rows, and print the tables."""
    for asked in read_asked(pages, sets, titles):
        for row in make_rows(asked, encoder, output):
            append_rows(ROWS, [{**row, **provenance()}])
    rows = read_rows(ROWS)
    click.echo("\n\n".join((table(rows, encoder), sets_table(rows), titles_table(rows, encoder))))


if __name__ == "__main__":
    main()
