"""The client that most programs use: the package `openai`, with nothing set but the address."""

import numpy as np
import pytest

from helpers.documents import blocks
from helpers.serving import running

pytestmark = pytest.mark.slow  # the client takes two seconds to import

TEXTS = ["Where is the key?", "Der Schlüssel liegt unter der Matte."]
TOKEN = "a-token-of-the-tests"


@pytest.fixture(scope="module")
def openai():
    return pytest.importorskip("openai", reason="openai is missing: pip install -r requirements-dev.lock")


@pytest.fixture(scope="module")
def locked(searcher):
    with running(searcher, TOKEN, inputs=3) as found:
        yield found


@pytest.fixture
def client(openai, locked):
    with openai.OpenAI(base_url=f"{locked.address}/v1", api_key=TOKEN, max_retries=0) as found:
        yield found


@pytest.mark.parametrize("kind", [{}, {"encoding_format": "float"}, {"encoding_format": "base64"}])
def test_it_gets_the_vectors_of_the_encoder(client, searcher, kind):
    answer = client.embeddings.create(model="mini", input=TEXTS, **kind)
    found = [row.embedding for row in answer.data]
    if kind.get("encoding_format") == "base64":  # asked for by name, it is left as it came
        assert all(isinstance(each, str) for each in found)
    else:
        np.testing.assert_allclose(found, searcher.encoder.encode(TEXTS, "candidate"), atol=1e-6)
    assert answer.usage.total_tokens == searcher.encoder.lengths(TEXTS, "candidate").sum()


def test_it_raises_its_own_errors_with_our_words(openai, client, locked):
    with pytest.raises(openai.NotFoundError, match="this server has 'mini'"):
        client.embeddings.create(model="text-embedding-3-small", input="a")
    with pytest.raises(openai.UnprocessableEntityError, match="a request may have 3"):
        client.embeddings.create(model="mini", input=["a"] * 4)
    with pytest.raises(openai.AuthenticationError, match="the token is missing or wrong"):
        client.with_options(api_key="another").embeddings.create(model="mini", input="a")
    with pytest.raises(openai.NotFoundError, match="the path is /v1/embeddings"):
        client.with_options(base_url=locked.address).embeddings.create(model="mini", input="a")


def test_the_example_of_the_documentation_runs(locked, searcher):
    (text,) = [text for text in blocks("docs/serving.md", "") if "openai" in text]
    names = {}
    text = text.replace("http://localhost:8000", locked.address)
    exec(text.replace("the token, or anything where none is asked for", TOKEN), names)
    found = names["answer"].data[0].embedding
    np.testing.assert_allclose(found, searcher.encoder.encode(TEXTS[:1], "question")[0], atol=1e-6)
