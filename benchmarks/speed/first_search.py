"""CPU time and peak memory of a search or an index in a new process, and of a server until it answers, in turns.

    python -m benchmarks.speed.first_search --against ../before
    python -m benchmarks.speed.first_search --encoder mini --against ../before
    python -m benchmarks.speed.first_search --encoder tiny --against ../before --pages ~/pages

With `--pages`, 500 HTML pages are indexed again after each got an empty line: all are read, and nothing is encoded.

Two revisions take turns, in an order that changes. Both index the questions of the embedded benchmark with their own
command, and search once before anything is measured, so that models are unpacked and files are in the memory of the
system. Each run is a process of its own. Figures are medians over rounds.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, append_rows
from metasearch.data.benchmark import load_benchmark
from metasearch.runs.markdown import markdown

QUERY = "Where is the key?"
MEGABYTE = 10**6


class Revision:
    """The commands of the revision in a folder."""

    def __init__(self, root: Path, index: Path, encoder: str) -> None:
        self.root, self.index, self.encoder = root, index, encoder
        self.pages = index.with_name(f"{index.name}-pages")
        self._environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}

    def run(self, *args: str, until_line: bool = False) -> tuple[float, float]:
        """Run a command to its end, or until its first line; return CPU seconds and the peak of memory in MB."""
        command = [sys.executable, "-m", "metasearch", *args]
        process = subprocess.Popen(command, env=self._environment, cwd=self.root, stdout=subprocess.PIPE)
        assert process.stdout is not None
        if until_line:
            process.stdout.readline()
            process.terminate()
        process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode and not until_line:
            raise click.ClickException(f"{' '.join(command)}: exit code {process.returncode}")
        return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / MEGABYTE

    def search(self) -> tuple[float, float]:
        """Search once."""
        return self.run("search", str(self.index), QUERY)

    def serve(self) -> tuple[float, float]:
        """Serve until the address is printed, after a first request."""
        return self.run("serve", str(self.index), "--port", "0", "--json", until_line=True)

    def one(self) -> tuple[float, float]:
        """Index one sentence."""
        shutil.rmtree(new := self.index.with_name(f"{self.index.name}-one"), ignore_errors=True)
        return self.run("index", str(self.index.with_name("one.txt")), "--encoder", self.encoder, "-o", str(new))

    def read_pages(self) -> tuple[float, float]:
        """Index pages that all changed in their last line alone."""
        for page in self.pages.rglob("*.html"):
            with page.open("a", encoding="utf-8") as file:
                file.write("\n")
        return self.run("index", str(self.pages), "--encoder", self.encoder, "-o", str(self.index))


Case = Callable[[Revision], tuple[float, float]]

CASES = {"first search": Revision.search, "start of the server": Revision.serve, "index of one sentence": Revision.one}
READING = {"read 500 changed pages": Revision.read_pages}
"""The only case with `--pages`."""


def copy_pages(folder: Path, target: Path) -> None:
    """Copy 500 HTML pages that are drawn from a folder."""
    files = sorted(folder.rglob("*.html"))
    for page in random.Random(0).sample(files, min(500, len(files))):
        copy = target / page.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, copy)


def measure(
    revisions: dict[str, Revision], cases: Mapping[str, Case], rounds: int, warm: bool = True
) -> list[dict[str, Any]]:
    """Return a row for each case and revision, after a round that warms up."""
    rows = []
    for case, run in cases.items():
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in revisions}
        for step in range(rounds + warm):
            for way in list(revisions)[:: -1 if step % 2 else 1]:
                taken = run(revisions[way])
                if step or not warm:
                    found[way].append(taken)
        for way, each in found.items():
            cpu, memory = np.median(each, axis=0).tolist()
            rows.append({"case": case, "way": way, "rounds": rounds, "cpu_s": round(cpu, 2), "peak_mb": round(memory)})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return the newest rows of each encoder, with the share of the other revision's."""
    newest = {(row["encoder"], row["case"], row["way"]): row for row in rows}
    shown = []
    for (encoder, case, way), row in newest.items():
        before = newest.get((encoder, case, "before"))
        ends = ["", ""]
        if before and way == "now":
            ends = [f" ({row[key] / before[key]:.2f})" for key in ("cpu_s", "peak_mb")]
        shown.append([encoder, case, way, f"{row['cpu_s']:.2f}{ends[0]}", f"{row['peak_mb']:,}{ends[1]}"])
    heads = ["encoder", "what", "revision", "CPU time, s", "peak memory, MB"]
    return markdown(heads, shown, left=3)


@click.command()
@click.option("--against", type=click.Path(path_type=Path, exists=True, resolve_path=True), help="Another revision.")
@click.option("--encoder", default="e5", show_default=True)
@click.option("--case", "cases", type=click.Choice([*CASES]), multiple=True, default=[*CASES], show_default=True)
@click.option("--pages", type=click.Path(path_type=Path, exists=True), help="Folder with HTML pages, at any depth.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Rows to add to.")
def main(
    against: Path | None, encoder: str, cases: Sequence[str], pages: Path | None, rounds: int, output: Path | None
) -> None:
    """Start searches and servers of this revision, and of another one in turns; print the table, and keep the rows."""
    roots = {**({"before": against} if against else {}), "now": Path(__file__).parents[2]}
    with tempfile.TemporaryDirectory() as place:
        documents = Path(place) / "demo.jsonl"
        lines = [{"text": each.text, "language": each.language} for each in load_benchmark("demo").data.questions]
        documents.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        documents.with_name("one.txt").write_text(QUERY, encoding="utf-8")
        revisions = {way: Revision(root, Path(place) / way, encoder) for way, root in roots.items()}
        for each in revisions.values():
            if pages:
                copy_pages(pages, each.pages)
                each.read_pages()
                continue
            each.run("index", str(documents), "--encoder", encoder, "-o", str(each.index))
            each.search()
        rows = measure(revisions, READING if pages else {case: CASES[case] for case in cases}, rounds)
    rows = [{"encoder": encoder, **row, **provenance()} for row in rows]
    append_rows(output or RESULTS / "first_search.jsonl", rows)
    click.echo(table(rows))


if __name__ == "__main__":
    main()
