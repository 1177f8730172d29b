"""Servers of the tests: an index in memory, and a server in a thread."""

import http.client
import json
import math
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metasearch.config.library import shipped
from metasearch.data.documents.passage import Passage
from metasearch.encoders.pool_scores import balance as balanced
from metasearch.encoders.pool_scores import expanded
from metasearch.errors import ConfigError
from metasearch.retrieval.index.base import Hit
from metasearch.retrieval.server.app import build_app
from metasearch.retrieval.server.schemas import Limits
from metasearch.retrieval.server.security import Hosts
from metasearch.retrieval.server.server import Server, bind
from metasearch.retrieval.server.service import Service

K1, B, RANKS = 1.5, 0.75, 60
"""Parameters of BM25 (Robertson & Zaragoza 2009) and of reciprocal rank fusion (Cormack et al. 2009)."""


def demo_passages(*languages):
    """Return the sentences of the embedded benchmark as passages, each in the line where its paragraph stands."""
    found = []
    for language in languages:
        lines = (shipped() / "demo" / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            found += [Passage(text, f"{language}.jsonl", number, language) for text in json.loads(line)["sentences"]]
    return found


class MemorySearcher:
    """Scans the float vectors of passages in memory."""

    def __init__(self, passages, encoder):
        self.passages = list(passages)
        self.encoder = encoder
        self.projected, self.reranker = encoder, None
        self.vectors = encoder.encode([passage.text for passage in self.passages], "candidate")
        self.languages = dict(sorted(Counter(passage.language for passage in self.passages).items()))

    def search(self, queries, *, top=10, languages=(), hybrid=False, expand=False, balance=False, rerank=0, where=()):
        assert not rerank
        allowed = np.array([not languages or passage.language in languages for passage in self.passages])
        vectors = expanded(self.vectors, self.codes) if expand else self.vectors
        scores = self.encoder.encode(queries, "question") @ vectors.T
        if balance:
            of_language = [np.flatnonzero(self.codes == code) for code in range(len(self.languages))]
            scores = scores.astype(np.float32)
            balanced(scores, of_language)
        if hybrid:
            scores = np.stack([_fused(row, self.words(query)) for query, row in zip(queries, scores, strict=True)])
        found = []
        for row in np.where(allowed, scores, -np.inf):
            best = np.argsort(-row, kind="stable")[: min(top, allowed.sum())]
            found.append([Hit(float(row[i]), self.passages[i]) for i in best])
        return found

    def reopen(self):
        return None

    def require_rerankable(self, top, rerank):
        raise ConfigError("there is no reranker; name a cross-encoder with --rerank MODEL")

    def require_expandable(self):
        if len(self.languages) < 2:
            raise ConfigError("no other language")

    @property
    def codes(self):
        return np.array([list(self.languages).index(passage.language) for passage in self.passages])

    @cached_property
    def bags(self):
        return [Counter(passage.text.lower().split()) for passage in self.passages]

    def words(self, query):
        """Return the score of each passage by BM25, `(N,)`."""
        mean, scores = sum(bag.total() for bag in self.bags) / len(self.bags), np.zeros(len(self.bags))
        for word in query.lower().split():
            inside = sum(word in bag for bag in self.bags)
            idf = math.log(1 + (len(self.bags) - inside + 0.5) / (inside + 0.5))
            for i, bag in enumerate(self.bags):
                scores[i] += idf * bag[word] * (K1 + 1) / (bag[word] + K1 * (1 - B + B * bag.total() / mean))
        return scores


def _fused(*scores):
    """Return the sum over rankings of 1 / (60 + rank), `(N,)`."""
    return sum(1 / (RANKS + 1 + np.argsort(np.argsort(-row, kind="stable"))) for row in scores)


@dataclass
class Running:
    """A server in a thread.

    Attributes:
        port: on 127.0.0.1.
        service: what answers.
        server: its end is `should_exit`.
        server_thread: in which it runs.
    """

    port: int
    service: Service
    server: Server
    server_thread: threading.Thread

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def send(self, method, path, body=None, headers=None):
        """Return status, headers and body of the answer to a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path, **headers):
        """Return status and JSON of the answer to GET."""
        status, _, body = self.send("GET", path, headers={name.replace("_", "-"): v for name, v in headers.items()})
        return status, json.loads(body)

    def post(self, path, content, **headers):
        """Return status and JSON of the answer to POST; bytes are sent as they are."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        status, _, answer = self.send("POST", path, body, {"content-type": "application/json", **named})
        return status, json.loads(answer)


@contextmanager
def running(searcher, token=None, hosts=(), name=None, **limits):
    """Run a server on a free port."""
    service = Service(searcher, Limits(**limits), name)
    with bind("127.0.0.1", 0) as bound:
        ready = threading.Event()
        server = Server(build_app(service, Hosts.parse("127.0.0.1", hosts), token), service.limits, ready.set)
        thread = threading.Thread(target=server.run_on, args=(bound,))
        thread.start()
        assert ready.wait(60)
        try:
            yield Running(bound.getsockname()[1], service, server, thread)
        finally:
            server.should_exit = True
            thread.join(60)


def eventually(holds, seconds=20):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
