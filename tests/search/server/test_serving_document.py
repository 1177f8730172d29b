"""What docs/serving.md says holds: its requests are answered, its limits are those of the command, its paths exist."""

import json
import re
from pathlib import Path

import pytest

from helpers.documents import DOCUMENTS, blocks, names, table
from metasearch.cli import main
from metasearch.search.server import schemas
from metasearch.search.server.settings import Limits

DOCUMENT = "docs/serving.md"
CURLS = re.findall(r"^curl localhost:8000(\S+) .*?-d '(.*?)'", "".join(blocks(DOCUMENT, "sh")), flags=re.S | re.M)
FIELDS = {
    "max_inputs": "inputs", "max_bytes": "size", "max_hits": "hits", "max_waiting": "waiting", "timeout": "timeout",
    "grace": "grace", "batch_texts": "batch_texts", "batch_wait": "batch_wait",
}  # fmt: skip

MODEL = b'{"id":"mini","object":"model","created":0,"owned_by":"metasearch"}'


def test_there_are_requests():
    assert sorted(path for path, _ in CURLS) == ["/search", "/v1/embeddings"]


@pytest.mark.parametrize(("path", "body"), CURLS)
def test_a_request_is_answered(served, path, body):
    assert served.post(path, json.loads(body))[0] == 200


def test_the_answer_has_the_keys_that_are_shown(served):
    (shown,) = map(json.loads, blocks(DOCUMENT, "json"))
    _, answer = served.post("/search", {"query": "Where is the key?"})
    assert answer.keys() == shown.keys()
    assert answer["results"][0].keys() == shown["results"][0].keys()
    assert answer["results"][0]["hits"][0].keys() == shown["results"][0]["hits"][0].keys()
    assert answer["max_tokens"] == shown["max_tokens"]


@pytest.mark.parametrize("model", [schemas.SearchRequest, schemas.EmbeddingsRequest])
def test_every_key_of_a_body_is_described(model):
    tables = DOCUMENTS[DOCUMENT].split("\n| key | |\n")[1:]
    cells = [re.findall(r"^\| ([^|]+) \|", text.split("\n\n")[0], flags=re.M) for text in tables]
    listed = [{name for cell in column for name in names(cell)} for column in cells]
    assert set(model.model_fields) in listed


def test_every_path_is_described(served):
    text = " ".join(row[0] for row in table(DOCUMENT, "request"))
    paths = {name.split()[1].removesuffix("/NAME") for name in names(text)}
    for path in paths:
        assert served.send("OPTIONS", path)[0] == 405, path  # it is there, and takes another method


def test_the_defaults_are_those_of_the_command_and_of_the_server():
    options = {option.name: option.default for option in main.get_command(None, "serve").params}
    limits = Limits().model_dump()
    assert {name: options[name] for name in FIELDS} == {name: limits[field] for name, field in FIELDS.items()}
    flagged = [(names(flag)[0], default) for _, flag, default, _ in table(DOCUMENT, "limit") if flag]
    shown = {flag.removeprefix("--").replace("-", "_"): float(default.replace(",", "")) for flag, default in flagged}
    assert shown == {name: float(options[name]) for name in shown}


def test_every_status_is_one_that_is_described():
    listed = {int(code) for row in table(DOCUMENT, "status") for code in row[0].split(", ")}
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(schemas.__file__).parent.glob("*.py"))
    raised = set(map(int, re.findall(r"(?:RequestError\(\s*|status_code == )(\d{3})", sources)))
    assert raised - {499} == listed  # a client that has gone reads no answer


def test_the_openapi_document_describes_the_answer_of_every_path(served):
    _, document = served.get("/openapi.json")
    answers = {
        path: {status: answer["content"]["application/json"]["schema"] for status, answer in each["responses"].items()}
        for path, methods in document["paths"].items()
        for each in methods.values()
    }
    for path, schemas_of in answers.items():
        own = {"200", "default"} | ({"503"} if path == "/health" else set())
        assert set(schemas_of) == own, path
        assert all(set(schema) == {"$ref"} for schema in schemas_of.values()), path
    for path in ("/v1/models", "/v1/models/{name}", "/index", "/health", "/health/live"):
        name = answers[path]["200"]["$ref"].rpartition("/")[2]
        _, answer = served.get(path.replace("{name}", "mini"))
        assert answer.keys() == document["components"]["schemas"][name]["properties"].keys(), path


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/v1/models/mini", MODEL),
        ("/v1/models", b'{"object":"list","data":[' + MODEL + b"]}"),
        ("/health", b'{"status":"ready","model":"mini"}'),
        ("/health/live", b'{"status":"live"}'),
    ],
)
def test_facts_about_the_server_have_these_bytes(served, path, content):
    assert served.send("GET", path)[2] == content
