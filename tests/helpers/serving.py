"""Servers of the tests: an index in memory, and a server in a thread."""

import http.client
import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

from helpers.indexes import Made
from metasearch.config.library import shipped
from metasearch.search.documents.passage import Passage
from metasearch.search.index.base import Kind, passage_keys
from metasearch.search.index.local import LocalStore
from metasearch.search.index.writer import writing
from metasearch.search.query.searcher import Searcher
from metasearch.search.server.app import build_app
from metasearch.search.server.security import Hosts
from metasearch.search.server.server import Server, bind
from metasearch.search.server.service import Service
from metasearch.search.server.settings import Limits


def demo_passages(*languages):
    """Return the sentences of the embedded benchmark as passages, each in the line where its paragraph stands."""
    found = []
    for language in languages:
        lines = (shipped() / "demo" / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            found += [Passage(text, f"{language}.jsonl", number, language) for text in json.loads(line)["sentences"]]
    return found


def searcher_of(folder, passages, encoder):
    """Return a searcher of an index of passages."""
    kind = Kind(encoder.name, encoder.fingerprint, encoder.dimension())
    content = Made(encoder.encode([each.text for each in passages], "candidate"), passages, passage_keys(passages))
    with writing(folder, kind) as store:
        store.upsert(content.vectors, content.passages, content.keys)
        store.finish(content.files())
    return Searcher(LocalStore.open(folder), encoder)


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


def counted(server, name, **labels):
    """Return a value of the metrics; 0 where it is not there yet."""
    wanted = ",".join(f'{key}="{value}"' for key, value in labels.items())
    lines = server.send("GET", "/metrics")[2].decode().splitlines()
    found = [line for line in lines if line.startswith(f"{name}{{{wanted}}} " if wanted else f"{name} ")]
    return float(found[0].split()[-1]) if found else 0.0


def eventually(holds, seconds=20):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
