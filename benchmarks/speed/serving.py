"""Requests a second of `metasearch serve`, for this revision and for another one in turns.

    python -m benchmarks.speed.serving
    python -m benchmarks.speed.serving --encoder e5 --against ../before

Both revisions index the sentences of the embedded benchmark with their own command, and serve them in processes of
their own. In each round eight clients with a connection each send requests to one server, then to the other, in an
order that changes. A response that is not 200, or has fewer vectors or hits than were asked for, ends the benchmark.
CPU time is of the server's process; compare it on a busy machine.
"""

import http.client
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, append_rows, latest_rows
from metasearch.data.benchmark import load_benchmark
from metasearch.runs.markdown import markdown

TOP = 10
"""Hits of a search that names no number."""


class Case(NamedTuple):
    """A kind of request."""

    name: str
    path: str
    texts: int

    def body(self, texts: list[str]) -> dict[str, Any]:
        """Return the body of a request."""
        if self.path == "/search":
            return {"query": texts[0]}
        return {"input": texts, "encoding_format": "base64"}

    def count(self, response: dict[str, Any]) -> int:
        """Return how many hits or vectors a response has; `TOP` or `texts` are expected."""
        return len(response["results"][0]["hits"]) if self.path == "/search" else len(response["data"])


CASES = (
    Case("search, 1 query", "/search", 1),
    Case("embeddings, 1 text", "/v1/embeddings", 1),
    Case("embeddings, 16 texts", "/v1/embeddings", 16),
)


class Server:
    """A server of the revision in a folder."""

    def __init__(self, root: Path, index: Path, documents: Path, encoder: str, threads: int) -> None:
        environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": str(threads)}
        command = [sys.executable, "-m", "metasearch"]
        options = ["--encoder", encoder, "-o", str(index)]
        subprocess.run([*command, "index", str(documents), *options], env=environment, cwd=root, check=True)
        serve = [*command, "serve", str(index), "--port", "0", "--json"]
        self.process = subprocess.Popen(serve, env=environment, cwd=root, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        first = json.loads(self.process.stdout.readline())
        self.port = int(str(first["address"]).rstrip("/").rpartition(":")[2])

    def request(self, connection: http.client.HTTPConnection, case: Case, texts: list[str]) -> None:
        """Send a request; `ClickException` for another response than expected."""
        connection.request("POST", case.path, json.dumps(case.body(texts)), {"content-type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        if response.status != 200 or case.count(json.loads(content)) != (TOP if case.path == "/search" else case.texts):
            raise click.ClickException(f"{case.path}: {response.status} {content[:200]!r}")

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def load(self, case: Case, texts: list[str], clients: int, seconds: float) -> tuple[float, float, list[float]]:
        """Return requests a second, CPU milliseconds a request, and the seconds of every request."""
        taken: list[float] = []
        end, cpu, began = time.perf_counter() + seconds, self.cpu_seconds(), time.perf_counter()

        def client(start: int) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            own = itertools.cycle(texts[start:] + texts[:start])
            while (sent := time.perf_counter()) < end:
                self.request(connection, case, list(itertools.islice(own, case.texts)))
                taken.append(time.perf_counter() - sent)

        starts = [len(texts) * i // clients for i in range(clients)]
        threads = [threading.Thread(target=client, args=[start]) for start in starts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(taken) / (time.perf_counter() - began), 1000 * (self.cpu_seconds() - cpu) / len(taken), taken


@contextmanager
def serving(roots: dict[str, Path], encoder: str, threads: int) -> Iterator[dict[str, Server]]:
    """Start a server of each revision, and stop them in the end."""
    servers: dict[str, Server] = {}
    with tempfile.TemporaryDirectory() as place:
        documents = Path(place) / "demo.jsonl"
        lines = [{"text": each.text, "language": each.language} for each in load_benchmark("demo").data.candidates]
        documents.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        try:
            for way, root in roots.items():
                servers[way] = Server(root, Path(place) / way, documents, encoder, threads)
            yield servers
        finally:
            for server in servers.values():
                server.process.terminate()
                server.process.wait()


def measure(servers: dict[str, Server], case: Case, clients: int, seconds: float, rounds: int) -> list[dict[str, Any]]:
    """Return a row for each server, with medians over rounds."""
    texts = [question.text for question in load_benchmark("demo").data.questions]
    found: dict[str, list[tuple[float, float, list[float]]]] = {way: [] for way in servers}
    for step in range(rounds + 1):
        for way in list(servers)[:: -1 if step % 2 else 1]:
            load = servers[way].load(case, texts, clients, seconds if step else 1)
            if step:  # the round before warms up
                found[way].append(load)
    rows = []
    for way, loads in found.items():
        rate, cpu = (float(np.median([load[i] for load in loads])) for i in (0, 1))
        p50, p95 = np.percentile([1000 * each for load in loads for each in load[2]], [50, 95])
        facts = {"case": case.name, "way": way, "clients": clients, "rounds": rounds, "requests_per_s": round(rate, 1)}
        rows.append({**facts, "cpu_ms": round(cpu, 2), "p50_ms": round(float(p50), 1), "p95_ms": round(float(p95), 1)})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return the newest rows of each encoder, request and revision."""
    newest = latest_rows(rows, lambda row: (row.get("encoder", "mini"), row["case"], row["way"]))
    keys = {"encoder": "encoder", "case": "request", "way": "revision", "requests_per_s": "requests/s"}
    keys |= {"p95_ms": "95 %, ms", "cpu_ms": "CPU ms a request"}
    lines = [[str({"encoder": "mini", **row}[key]) for key in keys] for row in newest]
    return markdown([*keys.values()], lines, left=3)


@click.command()
@click.option("--against", type=click.Path(path_type=Path, exists=True, resolve_path=True), help="Another revision.")
@click.option("--encoder", default="mini", show_default=True)
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads of a server.")
@click.option("--clients", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--seconds", type=click.FloatRange(min=1), default=5, show_default=True, help="Of each load.")
@click.option("--rounds", type=click.IntRange(min=1), default=6, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Rows to add to.")
def main(
    against: Path | None, encoder: str, threads: int, clients: int, seconds: float, rounds: int, output: Path | None
) -> None:
    """Load the server of this revision, and of another one in turns; print the table, and keep the rows."""
    roots = {**({"before": against} if against else {}), "now": Path(__file__).parents[2]}
    with serving(roots, encoder, threads) as servers:
        rows = [row for case in CASES for row in measure(servers, case, clients, seconds, rounds)]
    rows = [{"encoder": encoder, **row, "threads": threads, **provenance()} for row in rows]
    append_rows(output or RESULTS / "serving.jsonl", rows)
    click.echo(table(rows))


if __name__ == "__main__":
    main()
