"""`POST /v1/embeddings`: the encoder's own vectors, however they are asked for and whoever else asks."""

import base64

import numpy as np
import pytest

from helpers.serving import running

TEXTS = ["Where is the key?", "Der Schlüssel liegt unter der Matte.", "กุญแจอยู่ใต้พรม", "مفتاح", "a b c", "Ключ"]

ROLES = {"query": "question", "document": "candidate", "passage": "candidate", "text": "text"}


def vectors(answer):
    return np.array([row["embedding"] for row in answer["data"]], np.float32)


@pytest.mark.slow
def test_vectors_are_those_of_the_encoder_in_the_role_of_documents(served, searcher):
    status, answer = served.post("/v1/embeddings", {"input": TEXTS, "model": "mini"})
    assert status == 200
    assert [row["index"] for row in answer["data"]] == list(range(len(TEXTS)))
    np.testing.assert_allclose(vectors(answer), searcher.encoder.encode(TEXTS, "candidate"), atol=1e-6)


@pytest.mark.slow
def test_input_type_is_the_role(searcher):
    encoder = PromptedEncoder(searcher.encoder)
    with running(Of(encoder)) as server:
        for kind, role in ROLES.items():
            _, answer = server.post("/v1/embeddings", {"input": "a text", "input_type": kind})
            np.testing.assert_allclose(vectors(answer), encoder.encode(["a text"], role), atol=1e-6)
            others = {"question", "candidate", "text"} - {role}
            assert all(np.abs(vectors(answer) - encoder.encode(["a text"], other)).max() > 1e-3 for other in others)


class PromptedEncoder:
    """An encoder that reads each role in another way: with the role's name before the text."""

    def __init__(self, encoder):
        self.inner = encoder

    def encode(self, texts, role):
        return self.inner.encode([f"{role}: {text}" for text in texts], "text")

    def __getattr__(self, name):
        return getattr(self.inner, name)


class Of:
    """An index without passages."""

    def __init__(self, encoder):
        self.encoder, self.languages = encoder, {}

    def encode_queries(self, texts):
        return self.encoder.encode(texts, "question")

    def encode_documents(self, texts):
        return self.encoder.encode(texts, "candidate")


def test_base64_is_little_endian_float32(served):
    _, floats = served.post("/v1/embeddings", {"input": TEXTS})
    _, packed = served.post("/v1/embeddings", {"input": TEXTS, "encoding_format": "base64"})
    read = [np.frombuffer(base64.b64decode(row["embedding"]), "<f4") for row in packed["data"]]
    np.testing.assert_allclose(read, vectors(floats), atol=1e-6)


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
