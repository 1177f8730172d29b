"""The server that is measured: `metasearch serve` over the sentences of the embedded benchmark, in its own process."""

import queue
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from metasearch.data.benchmark import load_benchmark
from metasearch.errors import MetasearchError
from metasearch.pipelines.factory import load_encoder
from metasearch.retrieval.server.app import build_app
from metasearch.retrieval.server.schemas import Limits
from metasearch.retrieval.server.security import Hosts
from metasearch.retrieval.server.server import Server, bind
from metasearch.retrieval.server.service import Service

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Passage:
    """A sentence with its place, as passages of an index have one."""

    text: str
    file: str
    line: int
    language: str


@dataclass(frozen=True)
class Hit:
    """A passage that was found."""

    score: float
    passage: Passage


class InMemory:
    """Sentences of the embedded benchmark, scanned in float32."""

    def __init__(self, encoder: Any, passages: Sequence[Passage]) -> None:
        self.encoder = encoder
        self.languages = Counter(passage.language for passage in passages)
        self.passages = passages
        self.vectors = encoder.encode([passage.text for passage in passages], "candidate")

    def search(
        self, queries: Sequence[str], *, top: int = 10, languages: Collection[str] = (), **ways: bool
    ) -> list[list[Hit]]:
        """Return the best passages of each query; of other `ways` to rank, which are not measured, there is none."""
        scores = self.encoder.encode(queries, "question") @ self.vectors.T
        best = np.argsort(-scores, axis=1)[:, :top]
        return [[Hit(float(row[i]), self.passages[i]) for i in order] for row, order in zip(scores, best, strict=True)]

    def reopen(self) -> None:
        """Return None: the sentences do not change."""


def passages_of() -> list[Passage]:
    """Return the sentences of the embedded benchmark."""
    found = load_benchmark("demo").data.candidates
    return [Passage(each.shown, f"{each.language}.jsonl", i, each.language) for i, each in enumerate(found, 1)]


def serve(encoder: str, threads: int, said: Any) -> None:
    """Serve until SIGTERM; the port goes to a queue."""
    torch.set_num_threads(threads)
    service = Service(InMemory(load_encoder(encoder, device="cpu"), passages_of()), Limits())
    service.warm_up()
    with bind(HOST, 0) as bound:
        app = build_app(service, Hosts.parse(HOST, ()))
        Server(app, service.limits, lambda: said.put(bound.getsockname()[1])).run_on(bound)


def port_of(said: Any, process: Any) -> int:
    """Return the port that a server says; `MetasearchError` where it has ended before."""
    while True:
        try:
            return int(said.get(timeout=1))
        except queue.Empty:
            if not process.is_alive():
                raise MetasearchError(f"the server has ended with exit code {process.exitcode}") from None
