"""What is put before texts is what sentence-transformers puts before them."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from helpers.backbones import make
from metasearch.encoders.prompts import prompt_of, replace_prompts

TABLES = {
    "none": ({}, None),
    "query and document": ({"query": "q: ", "document": "d: "}, None),
    "query and passage": ({"query": "q: ", "passage": "p: "}, None),
    "corpus alone": ({"corpus": "c: "}, None),
    "a default": ({"task": "t: "}, "task"),
    "a default beside a query's": ({"query": "q: ", "task": "t: "}, "task"),
}


def methods(model):
    """Return each role and the method of sentence-transformers for it."""
    return ("question", model.encode_query), ("candidate", model.encode_document), ("text", model.encode)


@pytest.mark.parametrize("prompts", TABLES)
def test_each_role_is_encoded_as_by_the_method_for_it(prompts, tmp_path):
    encoder = make("bert")
    encoder.model.save(str(tmp_path / "plain"), create_model_card=False)
    table, default = TABLES[prompts]
    model = SentenceTransformer(str(tmp_path / "plain"), prompts=table, default_prompt_name=default, device="cpu")
    encoder.model.prompts, encoder.model.default_prompt_name = model.prompts, model.default_prompt_name
    text = "the key is under the mat"
    for role, encode in methods(model):
        np.testing.assert_allclose(encoder.encode([text], role)[0], encode([text])[0], atol=1e-6)


def test_replaced_prompts_are_saved_with_the_model(tmp_path):
    encoder = make("bert")
    replace_prompts(encoder.model, {"question": "a ", "candidate": "b ", "text": "c "})
    encoder.save(tmp_path / "saved")
    saved = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert [prompt_of(saved, role) for role in ("question", "candidate", "text")] == ["a ", "b ", "c "]
    for role, encode in methods(saved):
        np.testing.assert_allclose(encoder.encode(["the key"], role)[0], encode(["the key"])[0], atol=1e-6)
