"""What is said to a server of Qdrant over HTTP, and what its refusals mean."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from helpers.indexes import made, queries, write_index
from metasearch.errors import RunFolderError
from metasearch.search.index.base import Scope
from metasearch.search.index.local import LocalStore
from metasearch.search.index.qdrant import KEY_VARIABLE, QdrantStore

pytest.importorskip("qdrant_client", reason="needs the extra qdrant")

from metasearch.search.index.qdrant import copy_to_qdrant


class Answers(BaseHTTPRequestHandler):
    """Keeps the metadata and points that it is given, as far as these tests ask for them again."""

    def log_message(self, *_):
        pass

    def _answer(self):
        size = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        path = self.path.partition("?")[0]
        self.server.heard.append((self.command, self.path, body, self.headers.get("api-key")))
        status = self.server.refuse if path != "/" else 0
        if path == "/":
            found = {"title": "qdrant - vector search engine", "version": "1.20.0"}
        else:
            found = {"error": "refused"} if status else {"result": self._result(self.command, path, body)}
        content = json.dumps({"time": 0.0, "status": "ok", **found}).encode()
        self.send_response(status or 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_PATCH = _answer

    def _result(self, method, path, body):
        own = self.server
        if path.endswith("/exists"):
            return {"exists": own.metadata is not None}
        if path == "/collections/help":
            if method != "GET":
                own.metadata = {**(own.metadata or {}), **body["metadata"]}
                return True
            return {
                "status": "green", "optimizer_status": "ok", "segments_count": 1, "payload_schema": {},
                "config": {
                    "params": {}, "metadata": own.metadata,
                    "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
                    "optimizer_config": {
                        "deleted_threshold": 0.2, "vacuum_min_vector_number": 1000, "default_segment_number": 0,
                        "flush_interval_sec": 5,
                    },
                },
            }  # fmt: skip
        if path.endswith("/scroll"):
            return {"points": [], "next_page_offset": None}
        if path.endswith("/facet"):
            return {"hits": [{"value": "de", "count": 2}, {"value": "el", "count": 1}]}
        payload = {"page": "p", "page_group": "g", "page_language": "de", "page_position": 0}
        if path.endswith("/query/batch"):
            return [{"points": [{"id": 7, "version": 1, "score": 0.5, "payload": payload}]} for _ in body["searches"]]
        if path.endswith("/count"):
            return {"count": 1}
        if (method, path) == ("POST", "/collections/help/points"):
            return [{"id": 7, "payload": payload}]
        return {"operation_id": 1, "status": "completed"}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv(KEY_VARIABLE, "secret")
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as found:
        found.heard, found.metadata, found.refuse = [], None, 0
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


@pytest.fixture
def address(server):
    return f"qdrant://127.0.0.1:{server.server_port}/help"


@pytest.fixture
def index(tmp_path):
    return LocalStore.open(write_index(tmp_path / "index", made(3)))


pytestmark = pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")


def test_the_calls_of_a_copy_and_of_a_search(server, address, index):
    copy_to_qdrant(index, address, lambda texts: [[3, 5, 5] for _ in texts])
    said = {(method, path.partition("?")[0]): body for method, path, body, _ in server.heard}
    made_with = said["PUT", "/collections/help"]
    assert made_with["vectors"]["dense"] == {"size": 24, "distance": "Dot", "on_disk": True}
    assert made_with["sparse_vectors"] == {"words": {"modifier": "idf"}}
    assert made_with["metadata"]["contents"] == ""
    indexed = [body for method, path, body, _ in server.heard if path.startswith("/collections/help/index")]
    assert indexed == [{"field_name": name, "field_schema": "keyword"} for name in ("language", "page_group")]
    first = said["PUT", "/collections/help/points"]["points"][0]
    assert (
        first["payload"].items() >= {"text": "passage 0.0", "language": "de", "file": "docs/0.txt", "line": 1}.items()
    )
    assert first["payload"]["page_position"] == 0
    # Two of three words are the same one: f / (f + k1) for texts of mean length.
    assert first["vector"]["words"] == {"indices": [3, 5], "values": [1 / 2.5, 2 / 3.5]}
    assert said["PATCH", "/collections/help"]["metadata"]["contents"] == index.contents
    assert {key for *_, key in server.heard} == {"secret"}

    store = QdrantStore(address)
    ((rows, scores),) = store.search(queries()[:1], top_k=4, groups=[["el", "de"]])
    assert (rows.tolist(), scores.tolist()) == ([[7]], [[0.5]])
    # The client asks for the version of the server meanwhile, in a thread of its own.
    ((asked,),) = (body["searches"] for *_, body, _ in server.heard if body and "searches" in body)
    assert (asked["using"], asked["limit"]) == ("dense", 4)
    inside = {"key": "language", "match": {"any": ["de", "el"]}}
    assert asked["filter"] == {"must": [inside]}

    server.heard.clear()
    table = store.score_pages(queries()[0], (rows[0], scores[0]), Scope(["el", "de"]))
    assert (table.rows.tolist(), table.scores.tolist(), table.starts.tolist()) == ([7], [0.5], [0])
    (counted,) = (body for _, path, body, _ in server.heard if path.startswith("/collections/help/points/count"))
    assert counted == {"filter": {"must": [{"key": "page_group", "match": {"any": ["g"]}}, inside]}, "exact": True}
    ((asked,),) = (body["searches"] for *_, body, _ in server.heard if body and "searches" in body)
    assert (asked["filter"], asked["limit"]) == (counted["filter"], 1)
    assert asked["params"] == {"exact": True, "quantization": {"ignore": True}}


@pytest.mark.parametrize(("status", "hint"), [(401, f"; the key is read from {KEY_VARIABLE}"), (500, "")])
def test_a_refusal_names_the_collection(server, address, index, status, hint):
    server.refuse = status
    with pytest.raises(RunFolderError, match=rf"{address}: the server answers {status} .*{hint}$"):
        copy_to_qdrant(index, address, lambda texts: [[] for _ in texts])


def test_a_server_that_is_not_there_is_named(server, address):
    server.shutdown()
    server.server_close()
    with pytest.raises(RunFolderError, match=rf"{address}: the server cannot be reached"):
        QdrantStore(address)
