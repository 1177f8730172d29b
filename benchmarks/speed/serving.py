"""`metasearch serve` under load, beside sentence-transformers' `encode` in a loop on the same texts and threads.

    python -m benchmarks.speed.serving --threads 1

The server is a process of its own. In each round eight clients, each with one connection, send requests for some
seconds, one after the other; then the loop encodes as many texts a call as a request has. An answer that is not 200,
or not of as many vectors or hits as were asked for, is an error. Texts are the sentences of the embedded benchmark, and
its questions where passages are searched for; the index has the sentences in memory and is scanned in float32, so that
what is measured is the server and the encoder and hardly the search. A ratio is how many times as long the loop takes
for a text, by the clock on the wall and by the processor's, which says more where other work shares the machine. Rows
are appended to `benchmarks/results/serving.jsonl`.
"""

import http.client
import itertools
import json
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from benchmarks.common.clock import Seconds, clock
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row
from benchmarks.speed.served import HOST, passages_of, port_of, serve
from benchmarks.speed.speed_tables import serving_table
from metasearch.data.benchmark import load_benchmark
from metasearch.pipelines.factory import load_encoder
from metasearch.runs.rows import append_rows

TOP = 10


@dataclass(frozen=True)
class Case:
    """What a request asks for: vectors of so many texts, or the hits of one query."""

    name: str
    path: str
    texts: int

    def body(self, texts: Sequence[str]) -> bytes:
        """Return the body of a request."""
        search = {"query": texts[0], "top": TOP}
        return json.dumps(search if self.path == "/search" else {"input": texts, "encoding_format": "base64"}).encode()

    def right(self, answer: Any) -> bool:
        """Return whether an answer has what was asked for."""
        if self.path == "/search":
            return len(answer["results"][0]["hits"]) == TOP
        return len(answer["data"]) == self.texts


CASES = (
    Case("embeddings, 1 text", "/v1/embeddings", 1),
    Case("embeddings, 16 texts", "/v1/embeddings", 16),
    Case("search, 1 query", "/search", 1),
)


class Client(threading.Thread):
    """Sends one request after the other, until a moment."""

    def __init__(self, case: Case, port: int, texts: Iterator[str], end: float) -> None:
        super().__init__()
        self.case, self.port, self.texts, self.end = case, port, texts, end
        self.seconds: list[float] = []
        self.errors = 0

    def run(self) -> None:
        """Send."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
        while (began := time.perf_counter()) < self.end:
            body = self.case.body(list(itertools.islice(self.texts, self.case.texts)))
            try:
                connection.request("POST", self.case.path, body, {"content-type": "application/json"})
                answer = connection.getresponse()
                content = answer.read()
                self.seconds.append(time.perf_counter() - began)
                self.errors += answer.status != 200 or not self.case.right(json.loads(content))
            except (OSError, http.client.HTTPException):
                self.errors += 1
                connection.close()


def crowd(case: Case, port: int, texts: list[str], clients: int, seconds: float) -> tuple[Seconds, list[Client]]:
    """Let clients ask, and return the seconds that passed and that the server's processor took, and the clients."""
    end = time.perf_counter() + seconds
    starts = np.linspace(0, len(texts), clients, endpoint=False).astype(int)
    asking = [Client(case, port, itertools.islice(itertools.cycle(texts), start, None), end) for start in starts]
    began, worked = time.perf_counter(), _processor_seconds(port)
    for client in asking:
        client.start()
    for client in asking:
        client.join()
    # The last answers come when the seconds are over.
    return np.array([time.perf_counter() - began, _processor_seconds(port) - worked]), asking


def loop(encode: Callable[[list[str]], object], count: int, texts: Iterator[str], seconds: float) -> Seconds:
    """Encode so many texts a call for some seconds; return the seconds that each text took, as `clock` has them."""
    done, began, end = 0, clock(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        encode(list(itertools.islice(texts, count)))
        done += count
    return (clock() - began) / done


def _processor_seconds(port: int) -> float:
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return float(next(line for line in lines if line.startswith("process_cpu_seconds_total ")).split()[1])


def measure(case: Case, port: int, encode: Any, clients: int, seconds: float, rounds: int, texts: list[str]) -> Row:
    """Return the row of a case: rounds of the server and of the loop in turns."""
    taken: list[float] = []
    served, looped, errors, whole = [], [], 0, 0.0
    for number in range(rounds):
        turned = texts[number:] + texts[:number]
        elapsed, asked = crowd(case, port, turned, clients, seconds)
        answers = [each for client in asked for each in client.seconds]
        taken += answers
        whole += elapsed[0]
        errors += sum(client.errors for client in asked)
        served.append(elapsed / (case.texts * len(answers)))
        looped.append(loop(encode, case.texts, itertools.cycle(turned), seconds / 3))
    p50, p95 = (round(1000 * float(np.percentile(taken, q)), 1) for q in (50, 95))
    facts = {"case": case.name, "clients": clients, "seconds": round(whole, 1), "rounds": rounds}
    facts |= {"requests": len(taken), "errors": errors, "p50_ms": p50, "p95_ms": p95}
    for name, column in (("", 0), ("cpu_", 1)):
        ours, theirs = (np.array(each)[:, column] for each in (served, looped))
        facts |= {f"{name}ms_per_text": _median(1000 * ours), f"{name}loop_ms_per_text": _median(1000 * theirs)}
        ratios = theirs / ours
        facts |= {f"{name}ratio": [_median(ratios), _median(ratios.min()), _median(ratios.max())]}
    return facts


def _median(values: Any) -> float:
    return float(f"{np.median(values):.4g}")


@click.command(cls=Command)
@click.option("--encoder", default="mini", show_default=True, help="Built-in name, local folder or hub name.")
@click.option("--clients", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--seconds", type=float, default=5.0, show_default=True, help="Of each case in each round.")
@click.option("--rounds", type=click.IntRange(min=1), default=12, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Of the encoder, each way.")
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS / "serving.jsonl", help="Rows to add to.")
def main(encoder: str, clients: int, seconds: float, rounds: int, threads: int, results: Path) -> None:
    """Let clients ask a server, and a loop encode, in turns."""
    torch.set_num_threads(threads)
    context = multiprocessing.get_context("spawn")
    said = context.Queue()
    process = context.Process(target=serve, args=(encoder, threads, said))
    process.start()
    try:
        sentences = [passage.text for passage in passages_of()]
        questions = [question.text for question in load_benchmark("demo").data.questions]
        # In an order in which neighbours are of different languages and lengths.
        for each in (sentences, questions):
            np.random.default_rng(0).shuffle(each)
        model = load_encoder(encoder, device="cpu").model
        port = port_of(said, process)
        stamp = {"encoder": encoder, "threads": threads, **provenance()}
        rows = []
        for case in CASES:
            searched = case.path == "/search"
            texts, encode = (questions, model.encode_query) if searched else (sentences, model.encode_document)
            encode(texts[:64])
            rows.append({**stamp, **measure(case, port, encode, clients, seconds, rounds, texts)})
            click.echo(f"{case.name}: {rows[-1]['errors']} errors in {rows[-1]['requests']} requests", err=True)
        append_rows(results, rows)
    finally:
        process.terminate()
        process.join()
    click.echo(serving_table(rows))


if __name__ == "__main__":
    main()
