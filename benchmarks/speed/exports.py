"""What an encoder weighs and how fast it is as an ONNX graph, and what shorter vectors score.

    python -m benchmarks.speed.exports --encoder mini --data ~/data
    python -m benchmarks.speed.exports --encoder e5 --data ~/data --rounds 5

Sentences are candidates of LAReQA; the two ways to encode them take turns, and the order turns round with each round.
Tokens of the encoder in torch are kept from the first round on, which saves it about a hundredth.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from benchmarks.common.clock import Seconds, clock
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, latest_rows
from metasearch.compress.onnx_encoder import OnnxEncoder
from metasearch.compress.onnx_folder import write_onnx
from metasearch.config.compress import Form
from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.data.records import RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.protocols import TextEncoder
from metasearch.pipelines.export import export
from metasearch.runs.markdown import markdown, percent
from metasearch.runs.rows import MEAN

TASKS = ("lareqa-sentences", "demo")
SENTENCES = 256
CUT = 128


def sentences_of(benchmark: Benchmark) -> list[str]:
    """Return candidates of the test part, equally far from each other."""
    data = benchmark.split.test
    assert isinstance(data, RetrievalData)
    return [data.candidates[i].text for i in np.linspace(0, len(data.candidates) - 1, SENTENCES).astype(int)]


def speed_rows(encoder: Encoder, texts: list[str], rounds: int, threads: int, folder: Path) -> Iterator[Row]:
    """Yield size, largest difference, least cosine and speed against torch of each way to encode texts."""
    torch.set_num_threads(threads)
    ways: dict[str, TextEncoder] = {"torch": encoder}
    place = folder / str(threads) / "onnx"
    place.mkdir(parents=True)
    write_onnx(encoder, place)
    ways["onnx"] = OnnxEncoder(place)
    first = {name: way.encode(texts, "candidate") for name, way in ways.items()}
    taken: dict[str, list[Seconds]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in sorted(ways, key=list(ways).index, reverse=number % 2 == 1):
            began = clock()
            ways[name].encode(texts, "candidate")
            taken[name].append(clock() - began)
    for name, seconds in taken.items():
        size = encoder.size
        if name != "torch":
            size = sum(path.stat().st_size for path in (folder / str(threads) / name / "onnx").iterdir())
        ratios = np.array(taken["torch"]) / np.array(seconds)  # (rounds, 2)
        facts = {"kind": "speed", "form": name, "threads": threads, "rounds": rounds, "bytes": size}
        facts |= {"difference": float(np.abs(first[name] - first["torch"]).max())}
        facts |= {"least_cosine": float((first[name] * first["torch"]).sum(1).min())}
        yield {**facts, "torch_takes": {"wall": _spread(ratios[:, 0]), "cpu": _spread(ratios[:, 1])}}


def forms_of(texts: Path) -> dict[str, Form]:
    """Return the forms that are scored, by name; `texts` choose directions."""
    return {
        f"first {CUT} numbers": Form(plain=True, dimensions=CUT),
        f"{CUT} directions": Form(plain=True, dimensions=CUT, texts=(texts,)),
    }


def score_rows(encoder: Encoder, benchmark: Benchmark, forms: Mapping[str, Form], folder: Path) -> Iterator[Row]:
    """Yield the mean score of an encoder as it is and in each form."""
    monitor = str(benchmark.task.monitor)
    for name, form in forms.items():
        done = export(encoder, form, folder / benchmark.task.name / name, benchmark)
        means = {
            row["learner"]: row["value"] for row in done.rows if (row["measure"], row["language"]) == (monitor, MEAN)
        }
        facts = {"kind": "score", "task": benchmark.task.name, "fold": benchmark.fold, "measure": monitor}
        yield {**facts, "form": name, "bytes": done.size, "before": means["before"], "after": means[form.name]}


def speed_table(rows: list[Row]) -> str:
    """Return size, difference and speed of each form."""
    found = _latest(rows, "speed", ("encoder", "form", "threads"))
    header = ["encoder", "form", "MB", "largest difference", "least cosine", "torch takes, 1 thread", "2 threads, wall"]
    lines = []
    for encoder, form in dict.fromkeys((row["encoder"], row["form"]) for row in found if row["form"] != "torch"):
        own = {row["threads"]: row for row in found if (row["encoder"], row["form"]) == (encoder, form)}
        spreads = [own[threads]["torch_takes"][kind] for threads, kind in ((1, "cpu"), (2, "wall")) if threads in own]
        shown = [f"{median:.2f} ({low:.2f} to {high:.2f})" for median, low, high in spreads] + [""] * (2 - len(spreads))
        figures = [f"{own[1]['bytes'] / 1e6:.1f}", f"{own[1]['difference']:.1e}", f"{own[1]['least_cosine']:.4f}"]
        lines.append([encoder, form, *figures, *shown])
    return markdown(header, lines, left=2)


def score_table(rows: list[Row]) -> str:
    """Return what each form scores."""
    lines = [
        [row["encoder"], row["task"], row["form"], percent(row["before"]), percent(row["after"]),
         f"{100 * (row['after'] - row['before']):+.2f}"]
        for row in _latest(rows, "score", ("encoder", "task", "form"))
        if row["form"] in forms_of(Path())
    ]  # fmt: skip
    return markdown(["encoder", "task", "form", "map@20 before", "after", "difference"], lines, left=3)


def _latest(rows: list[Row], kind: str, keys: tuple[str, ...]) -> list[Row]:
    return latest_rows((row for row in rows if row["kind"] == kind), lambda row: tuple(row[key] for key in keys))


def _spread(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in (np.median(values), values.min(), values.max())]


@click.command(cls=Command)
@click.option("--encoder", "name", default="mini", help="Built-in name or folder.")
@click.option("--data", required=True, help="Folder with lareqa and, for --texts, parallel.")
@click.option(
    "--texts", type=click.Path(path_type=Path), help="That directions are chosen by; by default DATA/parallel."
)
@click.option(
    "--form", "only", multiple=True, type=click.Choice(list(forms_of(Path()))), help="To score; by default all."
)
@click.option("--rounds", default=9, help="In which the two ways take turns.")
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS / "exports.jsonl")
def main(name: str, data: str, texts: Path | None, only: tuple[str, ...], rounds: int, results: Path) -> None:
    """Measure the exports of an encoder."""
    encoder = load_encoder(name, device="cpu")
    benchmarks = [load_benchmark(task, **({} if task == "demo" else {"data": data})) for task in TASKS]
    stamp = {"encoder": name, **provenance()}
    with tempfile.TemporaryDirectory() as place:
        for threads in (1, 2):
            sentences = sentences_of(benchmarks[0])
            append_rows(results, [stamp | row for row in speed_rows(encoder, sentences, rounds, threads, Path(place))])
        forms = forms_of(texts or Path(data) / "parallel")
        chosen = {each: forms[each] for each in only or forms}
        for benchmark in benchmarks:
            for row in score_rows(encoder, benchmark, chosen, Path(place)):
                append_rows(results, [stamp | row])
                click.echo(json.dumps(row))


if __name__ == "__main__":
    main()
