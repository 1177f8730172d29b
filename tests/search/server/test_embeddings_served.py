"""`POST /v1/embeddings`: the encoder's own vectors, however they are asked for and whoever else asks."""

import base64

import numpy as np
import pytest

from helpers.serving import demo_passages, running, searcher_of
from metasearch.encoders.load import load_encoder

TEXTS = ["Where is the key?", "Der Schlüssel liegt unter der Matte.", "กุญแจอยู่ใต้พรม", "مفتاح", "a b c", "Ключ"]

ROLES = {"query": "question", "document": "candidate", "passage": "candidate", "text": "text"}


def vectors(answer):
    return np.array([row["embedding"] for row in answer["data"]], np.float32)


@pytest.mark.slow
def test_input_type_is_the_role(tmp_path):
    """The encoder reads each role with a prompt of its own."""
    prompts = {"query": "q: ", "document": "d: ", "text": "t: "}
    encoder = load_encoder("tiny", device="cpu", prompts=prompts)
    with running(searcher_of(tmp_path / "index", demo_passages("de")[:3], encoder)) as server:
        for kind, role in ROLES.items():
            _, answer = server.post("/v1/embeddings", {"input": "a text", "input_type": kind})
            np.testing.assert_allclose(vectors(answer), encoder.encode(["a text"], role), atol=1e-6)
            others = {"question", "candidate", "text"} - {role}
            assert all(np.abs(vectors(answer) - encoder.encode(["a text"], other)).max() > 1e-3 for other in others)


def test_vectors_are_those_of_the_encoder_in_the_role_of_documents_and_base64_is_little_endian_float32(
    served, searcher
):
    expected = searcher.encoder.encode(TEXTS, "candidate")
    _, floats = served.post("/v1/embeddings", {"input": TEXTS, "model": "mini"})
    assert [row["index"] for row in floats["data"]] == list(range(len(TEXTS)))
    np.testing.assert_allclose(vectors(floats), expected, atol=1e-6)
    _, packed = served.post("/v1/embeddings", {"input": TEXTS, "encoding_format": "base64"})
    read = [np.frombuffer(base64.b64decode(row["embedding"]), "<f4") for row in packed["data"]]
    np.testing.assert_allclose(read, expected, atol=1e-6)


@pytest.mark.slow
def test_tokens_are_counted_and_what_was_cut_is_named(served, searcher):
    limit = searcher.encoder.limit("candidate")
    long = "word " * 2 * limit
    _, answer = served.post("/v1/embeddings", {"input": ["short", long, "short too"]})
    tokens = int(searcher.encoder.lengths(["short", "short too"], "candidate").sum()) + limit
    assert answer["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    assert (answer["truncated"], answer["max_tokens"]) == ([1], limit)


@pytest.mark.slow
def test_who_wants_nothing_cut_is_told_so(served):
    status, answer = served.post("/v1/embeddings", {"input": ["short", "word " * 999], "truncate": False})
    assert (status, answer["error"]["code"]) == (422, "input_too_long")
    assert "input[1]" in answer["error"]["message"]


def test_the_encoder_keeps_no_text_that_was_served(served, searcher):
    served.post("/v1/embeddings", {"input": "a text that is served once"})
    assert ("candidate", "a text that is served once") not in searcher.encoder._tokens


def test_the_model_is_listed_by_the_name_that_requests_use(searcher):
    with running(searcher, name="shop/v2") as server:
        assert server.get("/v1/models")[1]["data"][0]["id"] == "shop/v2"
        assert server.get("/v1/models/shop/v2")[1]["id"] == "shop/v2"
        assert server.post("/v1/embeddings", {"input": "a", "model": "shop/v2"})[1]["model"] == "shop/v2"
        status, answer = server.post("/v1/embeddings", {"input": "a", "model": "mini"})
    assert status == 404
    assert answer["error"]["message"] == "there is no model 'mini'; this server has 'shop/v2'"
