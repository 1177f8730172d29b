"""What cannot be answered: a status and one JSON object that says why, in the form of OpenAI's interface."""

import http.client
import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.serving import running
from metasearch.search.server import schemas

EMBED, SEARCH = "/v1/embeddings", "/search"


def told(answer):
    status, content = answer
    assert set(content) == {"error"}
    assert set(content["error"]) == {"message", "type", "param", "code"}
    return status, content["error"]["message"]


@pytest.mark.parametrize(
    ("path", "content", "status", "says"),
    [
        (EMBED, b"", 422, "the body is empty: expected a JSON object"),
        (EMBED, b'{"input": "a"', 400, "not JSON"),
        (EMBED, b'{"input": "a\n"}', 400, "the body is not JSON: Invalid control character at column 13"),
        (EMBED, b'{"input": NaN}', 422, "input: input should be a valid list (got NaN)"),
        (EMBED, b'{"input": "a", "input": "b"}', 400, "the key 'input' is duplicated"),
        (EMBED, b'{"input": "\xff"}', 400, "can't decode byte 0xff in position 11"),
        (EMBED, b'{"input":' + b"[" * 9000, 400, "it nests too deep"),
        (EMBED, [], 422, "expected an object"),
        (EMBED, {}, 422, "input: missing key"),
        (EMBED, {"input": ["a", None]}, 422, "input[1]: input should be a valid string (got null)"),
        (EMBED, {"input": [1, 2]}, 422, "input: token ids belong to another tokenizer; send texts"),
        (EMBED, {"input": []}, 422, "input: the list is empty"),
        (EMBED, {"input": ["a", " "]}, 422, "input[1]: the text is blank"),
        (EMBED, {"input": ["a", "\u00ad\u2060"]}, 422, "input[1]: the text is blank"),
        (EMBED, b'{"input": ["a\\ud800"]}', 400, "can't encode character '\\ud800' in position"),
        (EMBED, {"input": ["a"] * 9}, 422, "input: 9 texts; a request may have 8 (--max-inputs)"),
        (EMBED, {"input": "a", "dimension": 3}, 422, "dimension: unknown key. Did you mean 'dimensions'?"),
        (EMBED, {"input": "a", "dimensions": 64}, 422, "dimensions: 64; embeddings of 'mini' have 384"),
        (EMBED, {"input": "a", "input_type": "question"}, 422, "input_type"),
        (EMBED, {"input": "a", "model": "text-embedding-3-small"}, 404, "this server has 'mini'"),
        (
            EMBED,
            {"input": "a" * 30_000},
            413,
            "the body has more than 20,000 bytes (--max-bytes); send fewer texts at a",
        ),
        (SEARCH, {"query": "a", "queries": ["b"]}, 422, "expected either query, a text, or queries, a list of texts"),
        (SEARCH, {"query": "\u200b\ufeff"}, 422, "queries[0]: the text is blank"),
        (SEARCH, {"query": "a", "where": ["price"]}, 422, "where: 'price': expected NAME=VALUE"),
        (SEARCH, {"query": "a", "where": {"price": [1]}}, 422, "where: 'price': expected a text, a number or a bool"),
        (SEARCH, {"query": "a", "where": ["a=b"] * 33}, 422, "where: 33 conditions; 32 at most"),
        # Of many wrong items or keys one is reported: a message for each would take seconds.
        (SEARCH, {"queries": ["a", 0, *[None] * 99]}, 422, "queries[1]: input should be a valid string (got 0)"),
        (SEARCH, {"query": "a", "languages": [[]] * 99}, 422, "languages[0]: input should be a valid string (got [])"),
        (SEARCH, {"query": "a", **dict.fromkeys(map(str, range(99)))}, 422, "body: 0: unknown key. Known: balance"),
        (SEARCH, b'{"query": "a", "\\uDC00": 1}', 400, "surrogates not allowed"),
        (SEARCH, {"query": "a", "top": 5}, 422, "top: unknown key. Did you mean 'top_k'?"),
        (SEARCH, {"query": "a", "top_k": 0}, 422, "top_k: input should be greater than or equal to 1 (got 0)"),
        (SEARCH, {"query": "a", "top_k": True}, 422, "top_k: input should be a valid integer (got true)"),
        (SEARCH, {"query": "a", "languages": ["dee"]}, 422, "no passage is in language 'dee'. Did you mean 'de'?"),
    ],
)
def test_a_wrong_body_is_refused(served, path, content, status, says):
    found, message = told(served.post(path, content))
    assert found == status
    assert says in message


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("languages", ["dee"], "unknown_language"),
        ("where", ["price<10"], "unknown_field"),
        ("rerank", True, "cannot_rerank"),
        ("top_k", 21, "invalid_top_k"),
        ("rerank", 101, "invalid_rerank"),
    ],
)
def test_a_refused_search_names_its_key_and_the_reason(served, key, value, code):
    status, answer = served.post(SEARCH, {"query": "a", key: value})
    assert (status, answer["error"]["param"], answer["error"]["code"]) == (422, key, code)
    assert answer["error"]["message"].startswith(f"{key}: ")


@pytest.mark.parametrize(
    ("schema", "path", "body"),
    [
        (schemas.EmbeddingsRequest, EMBED, {"input": "a"}),
        (schemas.SearchRequest, SEARCH, {"query": "a"}),
        (schemas.SearchRequest, SEARCH, {"queries": ["a"]}),
    ],
)
def test_null_in_an_optional_key_is_the_same_as_leaving_it_out(served, schema, path, body):
    optional = [key for key, field in schema.model_fields.items() if not field.is_required()]
    status, expected = served.post(path, body)
    assert status == 200
    assert served.post(path, dict.fromkeys(optional) | body) == (status, expected)


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        ("POST", "/embeddings", 404, "the path is /v1/embeddings"),
        ("GET", "/models", 404, "the path is /v1/models"),
        ("GET", "/serch", 404, "Did you mean '/search'?"),
        ("GET", "/v1/embeddings", 405, "it takes POST"),
        ("DELETE", "/v1/models", 405, "does not take DELETE"),
        ("GET", "/v1/models/other", 404, "this server has 'mini'"),
    ],
)
def test_a_wrong_path_names_the_right_one(served, method, path, status, says):
    found, _, body = served.send(method, path)
    assert found == status
    assert says in told((found, json.loads(body)))[1]


def test_the_types_of_forms_are_refused_which_other_sites_may_send(served):
    status, message = told(served.post(SEARCH, {"query": "a"}, content_type="text/plain"))
    assert status == 415
    assert "application/json" in message


class TestTooManyBytes:
    def test_whose_number_shows_while_they_come(self, served):
        parts = (b"a" * 1000 for _ in range(30))
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
        connection.request("POST", EMBED, parts, {"content-type": "application/json"}, encode_chunked=True)
        assert connection.getresponse().status == 413
        connection.close()

    def test_are_not_read_where_the_client_asks_first(self, served):
        head = f"POST {EMBED} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        head += "expect: 100-continue\r\ncontent-length: 9999999999\r\n\r\n"
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
            connection.sendall(head.encode())
            assert connection.recv(9999).startswith(b"HTTP/1.1 413")


def test_a_wrong_value_is_named_for_programs_too(served):
    _, answer = served.post(EMBED, {"input": ["a", 3]})
    assert answer["error"] == {
        "message": "input[1]: input should be a valid string (got 3)",
        "type": "invalid_request_error", "param": "input[1]", "code": "invalid_body",
    }  # fmt: skip


def test_a_body_that_does_not_come_is_not_waited_for(searcher):
    with running(searcher, timeout=0.2) as server:
        head = (
            f"POST {EMBED} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(head.encode())
            answer = b"".join(iter(lambda: connection.recv(9999), b""))
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"within 0.2 s (--timeout)" in answer


TEXTS = st.text(st.characters(), max_size=8) | st.sampled_from(["\ud83d", "\x00", "de", "query", "base64", "mini"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=5,
)
KEYS = (
    "input", "query", "queries", "top_k", "languages", "hybrid", "expand", "balance", "dimensions", "encoding_format",
    "truncate", "model",
)  # fmt: skip
BODIES = st.binary(max_size=40) | st.dictionaries(st.sampled_from(KEYS) | TEXTS, VALUES).map(
    lambda tree: json.dumps(tree).encode()
)


@given(path=st.sampled_from([EMBED, SEARCH]), body=BODIES)
def test_whatever_is_sent_is_answered_in_json_and_is_no_bug(served, path, body):
    status, answer = served.post(path, body)
    assert status in (200, 400, 404, 422), answer
    assert status == 200 or told((status, answer))[1]
