"""How fast an encoder is in float32 and bfloat16, beside sentence-transformers and onnxruntime, on one core.

    python -m benchmarks.speed.precision encoding --pages ~/pages
    python -m benchmarks.speed.precision index --pages ~/pages --before ../before

Texts are passages of real HTML pages (`benchmarks.pages.build`). The ways take turns, and the order turns round with
each round. All times are CPU times, as other work may share the machine.
"""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.common.clock import clock
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, latest_rows
from metasearch.runs.markdown import markdown

LOW = ("bfloat16",)
ST, ONNX, BEFORE = "sentence-transformers, float32", "onnxruntime, float32", "before"
_ROOT = Path(__file__).parents[2]
Way = Callable[[], NDArray[np.float32]]


def chosen_pages(pages: Path, count: int) -> list[Path]:
    """Return as many pages, drawn from all of the set gnome60."""
    files = sorted((pages / "gnome60").rglob("*.html"))
    return random.Random(0).sample(files, min(count, len(files)))


def passages_of(pages: Sequence[Path], encoder: str) -> list[str]:
    """Return the passages that an index of pages has."""
    import metasearch as ms

    with tempfile.TemporaryDirectory() as place:
        index = Path(place) / "index"
        ms.index_documents(pages, index, encoder, {"neutral": False, "precision": "bfloat16"}, device="cpu")
        store = ms.open_searcher(index, "cpu").store
        return [passage.text for passage, _ in store.passages(range(len(store)))]


def ways(encoder: str, texts: list[str], folder: Path) -> dict[str, Way]:
    """Return the ways to encode texts, by name; each tokenises them anew."""
    from metasearch.compress.onnx_encoder import OnnxEncoder
    from metasearch.compress.onnx_folder import write_onnx
    from metasearch.encoders.load import load_encoder

    plain = load_encoder(encoder, device="cpu")
    write_onnx(plain, folder)
    onnx = OnnxEncoder(folder)

    def ours(precision: Any) -> Way:
        loaded = load_encoder(encoder, device="cpu", precision=precision)

        def encode() -> NDArray[np.float32]:
            loaded.forget()
            return loaded.encode(texts, "candidate")

        return encode

    return {
        ST: lambda: np.asarray(plain.model.encode_document(texts, normalize_embeddings=True)),
        ONNX: lambda: onnx.encode(texts, "candidate"),
        **{precision: ours(precision) for precision in ("float32", *LOW)},
    }


def product_rates(layers: Sequence[tuple[int, int]], tokens: int) -> float:
    """Return the seconds that all products with bfloat16 weights take for so many tokens, alone and at their best."""
    seconds = 0.0
    for outputs, inputs in layers:
        left, right = torch.randn(1024, inputs).bfloat16(), torch.randn(outputs, inputs).bfloat16()
        times = []
        for _ in range(5):
            began = clock()
            torch.nn.functional.linear(left, right)
            times.append((clock() - began)[1])
        seconds += min(times) * tokens / 1024
    return seconds


def race(taken: dict[str, list[float]], runs: dict[str, Callable[[], float]], rounds: int) -> None:
    """Time ways in turns."""
    for number in range(rounds):
        for name in sorted(runs, key=list(runs).index, reverse=number % 2 == 1):
            taken.setdefault(name, []).append(runs[name]())
            click.echo(f"{name}: {taken[name][-1]:.2f} s", err=True)


def rows_of(kind: str, taken: dict[str, list[float]], against: str, facts: Row) -> list[Row]:
    """Return the median, lowest and highest time of each way, and the median ratio of a peer's time to it."""
    rows = []
    for name, times in taken.items():
        ratios = np.array(taken[against]) / np.array(times)
        spread = [round(float(value), 3) for value in (np.median(times), min(times), max(times))]
        rows.append({"kind": kind, "way": name, "cpu_s": spread, "times_as_fast": round(float(np.median(ratios)), 2)})
    return [{**row, "against": against, **facts, **provenance()} for row in rows]


def table(rows: list[Row], kind: str) -> str:
    """Return the CPU time of each way, and how many times as fast it is as the peer."""
    rows = [row for row in rows if row["kind"] == kind]
    # Of one run: another one may be of another CPU.
    rows = [row for row in rows if row["revision"] == rows[-1]["revision"]]
    newest = latest_rows(rows, lambda row: (row["way"], row.get("pages")))
    against = newest[-1]["against"] if newest else ""
    lines = []
    for row in newest:
        median, low, high = row["cpu_s"]
        cosine = f"{row['least_cosine']:.4f}" if "least_cosine" in row else ""
        way = f"{row['way']}, {row['pages']} pages" if "pages" in row else row["way"]
        lines.append([way, f"{median:.2f} ({low:.2f} to {high:.2f})", f"{row['times_as_fast']:.2f}", cosine])
    return markdown(["way", "CPU s", f"times as fast as {against}", "least cosine to float32"], lines, left=1)


@click.group()
def main() -> None:
    """Measure precisions."""


@main.command()
@click.option("--pages", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--count", default=40, show_default=True, help="Pages.")
@click.option("--encoder", default="e5", show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS / "precision.jsonl")
def encoding(pages: Path, count: int, encoder: str, rounds: int, results: Path) -> None:
    """Encode the passages of pages in each precision, and with the peers."""
    torch.set_num_threads(1)
    texts = passages_of(chosen_pages(pages, count), encoder)
    with tempfile.TemporaryDirectory() as place:
        found = ways(encoder, texts, Path(place))
        vectors = {name: way() for name, way in found.items()}
        cosines = {name: float((own * vectors["float32"]).sum(1).min()) for name, own in vectors.items()}

        def timed(way: Way) -> Callable[[], float]:
            def run() -> float:
                began = clock()
                way()
                return float((clock() - began)[1])

            return run

        taken: dict[str, list[float]] = {}
        race(taken, {name: timed(way) for name, way in found.items()}, rounds)
    facts = {"encoder": encoder, "passages": len(texts), "rounds": rounds, "threads": 1}
    rows = [{**row, "least_cosine": cosines[row["way"]]} for row in rows_of("encoding", taken, ST, facts)]
    from metasearch.encoders.load import load_encoder

    loaded = load_encoder(encoder, device="cpu")
    layers = [tuple(each.weight.shape) for each in loaded.embedder.modules() if type(each) is torch.nn.Linear]
    alone = product_rates(layers, int(loaded.lengths(texts, "candidate").sum()))
    for row in rows:
        if row["way"] == "bfloat16":
            row["share_of_products"] = round(alone / row["cpu_s"][0], 3)
    append_rows(results, rows)
    click.echo(table(rows, "encoding"))


@main.command()
@click.option("--pages", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--count", default=500, show_default=True, help="Pages.")
@click.option("--before", type=click.Path(path_type=Path, exists=True), required=True, help="An earlier revision.")
@click.option("--encoder", default="e5", show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS / "precision.jsonl")
def index(pages: Path, count: int, before: Path, encoder: str, rounds: int, results: Path) -> None:
    """Run the whole command `metasearch index` in each precision, and as it was in another revision."""
    with tempfile.TemporaryDirectory() as place:
        for path in chosen_pages(pages, count):
            folder = Path(place) / "pages" / path.parent.name
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder)

        def command(root: Path, *options: str) -> Callable[[], float]:
            def run() -> float:
                target = Path(place) / "index"
                shutil.rmtree(target, ignore_errors=True)
                words = ["-m", "metasearch", "index", f"{place}/pages", "--encoder", encoder, "-o", str(target)]
                environment = {**os.environ, "PYTHONPATH": str(root.resolve()), "OMP_NUM_THREADS": "1"}
                began = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(
                    [sys.executable, *words, *options], cwd=root, env=environment, check=True, capture_output=True
                )
                ended = resource.getrusage(resource.RUSAGE_CHILDREN)
                return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime

            return run

        runs = {BEFORE: command(before)}
        runs |= {name: command(_ROOT, "--precision", name) for name in ("float32", *LOW)}
        taken: dict[str, list[float]] = {}
        race(taken, runs, rounds)
    facts = {"encoder": encoder, "pages": count, "rounds": rounds, "threads": 1}
    rows = rows_of("index", taken, BEFORE, facts)
    append_rows(results, rows)
    click.echo(table(rows, "index"))
    click.echo(json.dumps(taken), err=True)


if __name__ == "__main__":
    main()
