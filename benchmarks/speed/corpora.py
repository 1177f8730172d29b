"""Preparing a corpus of made pairs and reading it in training, for one to many millions of pairs.

    python -m benchmarks.speed.corpora
    python -m benchmarks.speed.corpora --pairs 10000000 --jobs 2 --without-memory

Pairs are made of the words of the embedded benchmark, 3 to 13 of them a side, the same every time. Measured are

- `prepare`: pairs a second of `metasearch prepare` with the tokenizer of `mini`, by the clock, for each number of jobs,
  its start left out; and processor seconds for a million pairs, those of all processes;
- `size`: bytes of a pair as text and prepared;
- `read`: pairs a second of batches of 512 with their tokens, by the time of the processor, of the prepared corpus and
  of the same pairs in memory once they are tokenised, rounds in turn; and the time before the first batch of each;
- `resident`: megabytes of a process that has gone through some windows of the prepared corpus, its start included.
"""

import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row
from metasearch.config.corpus import CorpusSettings
from metasearch.config.library import shipped
from metasearch.config.recipe import MaxLength
from metasearch.config.seeding import stream
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.batches import WINDOW
from metasearch.pipelines.distill.prepared import read_prepared
from metasearch.pipelines.distill.sources import memory_source
from metasearch.pipelines.factory import load_encoder
from metasearch.runs.markdown import markdown
from metasearch.runs.rows import append_rows

ROWS = RESULTS / "corpora.jsonl"
LANGUAGES = ("de", "el", "ru", "tr")
_BATCH, _DEV, _STEPS, _AT_ONCE = 512, 200, 200, 2**16
SETTINGS = CorpusSettings(dev=_DEV)


def write_pairs(folder: Path, count: int) -> int:
    """Write so many made pairs, a file a language; returns their bytes."""
    folder.mkdir(parents=True)
    words = {code: _words(code) for code in ("en", *LANGUAGES)}
    for number, language in enumerate(LANGUAGES):
        rng, left = stream(0, "pairs", language), count // len(LANGUAGES) + (number < count % len(LANGUAGES))
        with (folder / f"en-{language}.tsv").open("w", encoding="utf-8") as file:
            while left:
                some = min(left, _AT_ONCE)
                sides = [_made(words[code], some, rng) for code in ("en", language)]
                file.writelines(f"{source}\t{target}\n" for source, target in zip(*sides, strict=True))
                left -= some
    return sum(path.stat().st_size for path in folder.iterdir())


def _words(code: str) -> list[str]:
    """Return the words of the embedded benchmark in a language."""
    lines = (shipped() / "demo" / f"{code}.jsonl").read_text(encoding="utf-8").splitlines()
    return sorted({word for line in lines for text in json.loads(line)["sentences"] for word in text.split()})


def _made(words: Sequence[str], count: int, rng: np.random.Generator) -> Iterator[str]:
    """Yield so many made sentences."""
    ends = np.cumsum(rng.integers(3, 14, count)).tolist()
    drawn = [words[i] for i in rng.integers(0, len(words), ends[-1]).tolist()]
    for begin, end in zip([0, *ends], ends, strict=False):
        yield " ".join(drawn[begin:end])


def prepare(files: Path, folder: Path, jobs: int) -> dict[str, float]:
    """Prepare files anew; returns seconds by the clock and of processors, and megabytes of the largest process."""
    shutil.rmtree(folder, ignore_errors=True)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = ["prepare", str(files), "-o", str(folder), "--jobs", str(jobs), "--json"]
    # One thread of the tokenizer for each process, as processes of several have.
    alone = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    subprocess.run([sys.executable, "-m", "metasearch", *command], check=True, env=alone, stdout=subprocess.DEVNULL)
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "processor": used, "megabytes": after.ru_maxrss / 1e3}


def student() -> Encoder:
    """Return the encoder that reads the batches."""
    return load_encoder("mini", MaxLength(question=128, candidate=128, text=128), device="cpu")


def reader(batches: Any, encoder: Encoder) -> Callable[[int, int], int]:
    """Return what reads the batches and tokens of some steps, and returns how many pairs they have."""

    def read(first: int, last: int) -> int:
        count = 0
        for step in range(first, last):
            pairs = batches.batch(step % batches.steps_per_epoch)[0].sets[0].examples
            encoder.tokens(list(dict.fromkeys(text for pair in pairs for text in pair.texts)), "text")
            count += len(pairs)
        return count

    return read


def resident(folder: Path, windows: int, said: Any) -> None:
    """Say the megabytes of this process after the last batch of some windows, of its own memory and of mapped files."""
    encoder = student()
    source = read_prepared(folder, SETTINGS, encoder, 0)
    batches = source.batches(encoder, _BATCH, 0, "train")
    reader(batches, encoder)(0, min(windows * WINDOW // _BATCH, batches.steps_per_epoch))
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    shown = {"VmRSS": "all", "RssAnon": "its own", "VmHWM": "at most"}
    found = {
        line.split(":")[0]: int(line.split()[1]) / 1e3 for line in lines if line.startswith(("VmRSS", "RssA", "VmH"))
    }
    said.put({name: found[key] for key, name in shown.items()})


def race(files: Path, folder: Path, rounds: int) -> list[Row]:
    """Return pairs a second of both ways to read, and the seconds before their first batch."""
    read, rows = {}, []
    for way in ("prepared", "memory"):
        encoder, began = student(), time.process_time()
        source = (
            read_prepared(folder, SETTINGS, encoder, 0)
            if way == "prepared"
            else memory_source([files], SETTINGS, encoder, 0)
        )
        read[way] = reader(source.batches(encoder, _BATCH, 0, "train"), encoder)
        read[way](0, 1)
        rows.append({"case": "read", "way": way, "metric": "processor s before", "value": time.process_time() - began})
    rates: dict[str, list[float]] = {way: [] for way in read}
    for number in range(rounds + 1):
        for way, run in read.items():
            began = time.process_time()
            count = run(number * _STEPS, (number + 1) * _STEPS)
            rates[way].append(count / (time.process_time() - began))
    for way, own in rates.items():
        ratio = float(np.median(np.array(own[1:]) / np.array(rates["memory"][1:])))
        middle = {"value": round(float(np.median(own[1:]))), "low": round(min(own[1:])), "high": round(max(own[1:]))}
        rows.append({"case": "read", "way": way, "metric": "pairs a second", **middle, "ratio": round(ratio, 2)})
    return rows


def in_a_process(work: Callable[..., None], *arguments: Any) -> dict[str, float]:
    """Return what a function says in a process of its own."""
    context = multiprocessing.get_context("spawn")
    said = context.Queue()
    process = context.Process(target=work, args=(*arguments, said))
    process.start()
    found: dict[str, float] = said.get()
    process.join()
    return found


@click.command(cls=Command)
@click.option("--pairs", type=click.IntRange(min=1000), default=1_000_000, show_default=True)
@click.option("--jobs", multiple=True, type=click.IntRange(min=1), default=(1, 2), show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--windows", type=click.IntRange(min=1), default=3, show_default=True, help="That memory is measured on.")
@click.option("--without-memory", is_flag=True, help="Do not read the pairs in memory, too.")
@click.option("--work", type=click.Path(path_type=Path), default=Path("corpora-work"), help="Folder for the pairs.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROWS, help="Rows to add to.")
def main(
    pairs: int, jobs: tuple[int, ...], rounds: int, windows: int, without_memory: bool, work: Path, output: Path
) -> None:
    """Make pairs, prepare and read them, print the table, and keep the figures."""
    files, folder, few = work / f"made-{pairs}", work / f"prepared-{pairs}", work / "made-1000"
    written = sum(path.stat().st_size for path in files.iterdir()) if files.is_dir() else write_pairs(files, pairs)
    if not few.is_dir():
        write_pairs(few, 1000)
    rows: list[Row] = []
    for count in jobs:
        empty, whole = prepare(few, work / "prepared-few", count), prepare(files, folder, count)
        figures = {
            "pairs a second": pairs / (whole["seconds"] - empty["seconds"]),
            "processor s a million": (whole["processor"] - empty["processor"]) / pairs * 1e6,
            "largest process, MB": whole["megabytes"],
        }
        rows += [{"case": "prepare", "way": f"{count} jobs", "metric": name, "value": v} for name, v in figures.items()]
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    for way, size in (("text", written), ("prepared", report["bytes"])):
        rows.append({"case": "size", "way": way, "metric": "bytes a pair", "value": size / pairs})
    for name, value in in_a_process(resident, folder, windows).items():
        rows.append({"case": "resident", "way": name, "metric": "MB", "value": value})
    if not without_memory:
        rows += race(files, folder, rounds)
    facts = {"pairs": pairs, **provenance()}
    rows = [{**row, "value": round(row["value"], 1), **facts} for row in rows]
    append_rows(output, rows)
    shown = [[row["case"], row["way"], row["metric"], f"{row['value']:,}"] for row in rows]
    click.echo(markdown(["case", "way", "metric", f"{pairs:,} pairs"], shown, left=3))


if __name__ == "__main__":
    main()
