"""Time and memory of a command of metasearch with each allocator that this system has.

    python -m benchmarks.speed.allocators --name maml -- \
        train --task lareqa-sentences --mode trans --encoder e5 --trim task --data ~/data --max-steps 4 --precision bf16
    python -m benchmarks.speed.allocators --name states -- \
        distill --recipe states --teacher trimmed --student narrow --corpus ~/data/parallel --max-steps 100

The ways take turns, one at a time, each as a process with an output folder of its own. Time is that of the whole
command, by the clock on the wall and by the processor; memory is the most that the process held. Figures are medians
of the rounds, ratios those of ratios within a round, to what `metasearch` does where the environment says nothing.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from ctypes.util import find_library
from pathlib import Path
from statistics import median

import click

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row
from metasearch.runs.markdown import markdown
from metasearch.runs.rows import append_rows
from metasearch.training.allocator import ALLOCATOR_VARIABLES, PRELOADED

ROWS = RESULTS / "allocators.jsonl"
OURS = "glibc, as metasearch sets it"
GLIBC = {
    OURS: {},
    # 0 is glibc's own number of arenas; that the variable is there keeps `keep_memory` from changing anything.
    "glibc, untouched": {"MALLOC_ARENA_MAX": "0"},
    "glibc, blocks kept, arenas of threads": {
        "MALLOC_MMAP_THRESHOLD_": str(2**28),
        "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    },
}
"""Settings of glibc → variables of the environment that choose them."""
MEASURES = ("seconds", "processor_seconds", "peak_memory_mib")


@click.command(cls=Command)
@click.option("--name", required=True, help="Of the job, in the rows.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROWS, help="Rows to add to.")
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND...")
def main(name: str, rounds: int, output: Path, command: tuple[str, ...]) -> None:
    """Run a command of metasearch, without its -o, with each allocator, and print the table."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways()}
    for _ in range(rounds):
        for way, variables in ways().items():
            with tempfile.TemporaryDirectory() as folder:
                found[way].append(measured([*command, "-o", str(Path(folder) / "run")], variables))
    rows: list[Row] = [
        {"job": name, "way": way, "rounds": rounds, **summary(done, found[OURS]), **provenance()}
        for way, done in found.items()
    ]
    append_rows(output, rows)
    click.echo(table(rows))


def ways() -> dict[str, dict[str, str]]:
    """Return the settings of glibc, and each library of `PRELOADED` that this system has, with their variables."""
    return GLIBC | {kind: {"LD_PRELOAD": library} for kind in PRELOADED if (library := find_library(kind))}


def measured(command: Sequence[str], variables: Mapping[str, str]) -> dict[str, float]:
    """Run a command of metasearch, and return what it took; where it fails, end with its exit code."""
    others = {name: value for name, value in os.environ.items() if name not in ALLOCATOR_VARIABLES}
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "metasearch", *command], env=others | variables)
    _, status, used = os.wait4(process.pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise click.exceptions.Exit(code)
    # ru_maxrss is in KiB on Linux, the one system on which libraries are preloaded in this way.
    values = time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    return dict(zip(MEASURES, values, strict=True))


def summary(done: Sequence[Mapping[str, float]], ours: Sequence[Mapping[str, float]]) -> Row:
    """Return medians of the rounds, and of the ratios to ours in the same round."""
    medians = {measure: median(each[measure] for each in done) for measure in MEASURES}
    ratios = {
        f"times_{measure}": median(each[measure] / first[measure] for each, first in zip(done, ours, strict=True))
        for measure in MEASURES
    }
    return medians | ratios


def table(rows: Sequence[Row]) -> str:
    """Return the table of the rows of `allocators.jsonl`."""
    heads = ["job", "allocator", "seconds", "processor seconds", "peak, MiB", "× seconds", "× processor", "× peak"]
    values = [
        [row["job"], row["way"], *(f"{row[m]:,.0f}" for m in MEASURES), *(f"{row[f'times_{m}']:.2f}" for m in MEASURES)]
        for row in rows
    ]
    return markdown(heads, values, left=2)


if __name__ == "__main__":
    main()
