"""CPU time and peak memory of a tuning with training, of this revision and another one in turns.

    python -m benchmarks.speed.tuning --against ../before --pages ~/data/pages

Two tunings with `e5`, each in a process of its own, on one thread: the example of the documents, and the Debian FAQ
(`benchmarks.pages.build`) with 40 labels that `benchmarks.pages.claims` draws. Models are unpacked before.
"""

import csv
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, append_rows, read_rows
from benchmarks.pages.claims import drawn
from benchmarks.pages.pool import read_queries
from benchmarks.speed.first_search import Revision, measure, table

ROWS = RESULTS / "tuning_speed.jsonl"
EXAMPLE = Path(__file__).parents[2] / "docs/example"
SET, LABELS = "debian-faq", 40
CASES = ("example", "FAQ, 40 labels")


def write_labels(pages: Path, path: Path) -> None:
    """Write the labels of the first draw."""
    rows, _ = drawn(read_queries(pages / "queries" / f"{SET}.jsonl"), LABELS, 0, shuffled=False)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ("query", "document"), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def tune(revision: Revision, labels: Path, documents: Path) -> tuple[float, float]:
    """Tune with the revision; return CPU seconds and the peak of memory in MB."""
    shutil.rmtree(revision.index, ignore_errors=True)
    return revision.run(
        "tune", str(labels), "--documents", str(documents), "--encoder", revision.encoder, "-o", str(revision.index)
    )


@click.command()
@click.option("--against", required=True, type=click.Path(path_type=Path, exists=True, resolve_path=True))
@click.option("--pages", type=click.Path(path_type=Path, exists=True, resolve_path=True), help="Needed for the FAQ.")
@click.option("--case", "cases", type=click.Choice(CASES), multiple=True, default=CASES, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True)
def main(against: Path, pages: Path | None, cases: Sequence[str], rounds: int) -> None:
    """Tune in turns with the revision in the folder AGAINST; print the table, and keep the rows."""
    with tempfile.TemporaryDirectory() as place:
        inputs = {CASES[0]: (EXAMPLE / "labels.csv", EXAMPLE / "help-pages")}
        if pages:
            inputs[CASES[1]] = Path(place) / "faq.csv", pages / SET
            write_labels(pages, inputs[CASES[1]][0])
        roots = {"before": against, "now": Path(__file__).parents[2]}
        revisions = {way: Revision(root, Path(place) / way, "e5") for way, root in roots.items()}
        runs = {case: lambda each, case=case: tune(each, *inputs[case]) for case in cases if case in inputs}
        for case in runs:
            rows = measure(revisions, {case: runs[case]}, rounds, warm=False)
            append_rows(ROWS, [{"encoder": "e5", **row, **provenance()} for row in rows])
    click.echo(table(read_rows(ROWS)))


if __name__ == "__main__":
    main()
