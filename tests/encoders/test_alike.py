"""An encoder gives the vectors of sentence-transformers' three methods, or refuses the model and says why."""

import logging
from typing import ClassVar

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling

from helpers.backbones import HIDDEN, LENGTHS, make
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.open import open_checkpoint
from metasearch.encoders.prompts import replace_prompts
from metasearch.errors import EncoderError

TEXTS = ["where is the key?", "a mat", "the key is under the mat by the door"]
PROMPTS = {"query": "query: ", "document": "passage: "}


def model(pooling="mean", include_prompt=True, prompts=None, unit=False, further=(), **settings):
    """Return a model as its publisher has it; one that ends in unit vectors where `unit` says so."""
    modules = [make("bert").model[0], Pooling(HIDDEN, pooling, include_prompt), *further, *[Normalize()] * unit]
    return SentenceTransformer(modules=modules, device="cpu", prompts=prompts, **settings)


SAME = {
    "a default prompt": lambda: model(prompts={**PROMPTS, "sts": "text: "}, default_prompt_name="sts"),
    "last token": lambda: model("lasttoken", prompts=PROMPTS),
    "two poolings": lambda: model(("cls", "max")),
    "prompts that are not pooled, none of them": lambda: model(include_prompt=False),
    "a dense layer": lambda: model(further=[Dense(HIDDEN, 5)], unit=True),
    "all of its numbers, by dot product": lambda: model(truncate_dim=HIDDEN, similarity_fn_name="dot"),
    "dot product of unit vectors": lambda: model(similarity_fn_name="dot", unit=True),
    "euclidean": lambda: model(similarity_fn_name="euclidean"),
    "manhattan of unit vectors": lambda: model(similarity_fn_name="manhattan", unit=True),
}
ROLES = {"question": "encode_query", "candidate": "encode_document", "text": "encode"}


ALONE = ("dot product of unit vectors", "euclidean", "manhattan of unit vectors")
"""Cases whose every part another one has too."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SAME if name not in ALONE])
def test_each_role_has_the_vectors_of_its_method_before_and_after_saving(tmp_path, name):
    made = SAME[name]()
    made.save_pretrained(str(tmp_path / "published"), create_model_card=False)
    published = SentenceTransformer(str(tmp_path / "published"), device="cpu")
    encoder = open_checkpoint(str(tmp_path / "published"), LENGTHS)
    encoder.save(tmp_path / "saved")
    saved = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    for role, method in ROLES.items():
        expected = getattr(published, method)(TEXTS, normalize_embeddings=True)
        np.testing.assert_allclose(encoder.encode(TEXTS, role), expected, atol=1e-6, err_msg=role)
        np.testing.assert_allclose(getattr(saved, method)(TEXTS), expected, atol=1e-6, err_msg=role)


@pytest.mark.parametrize(
    ("name", "line", "saved"),
    [
        ("dot product of unit vectors", None, "dot"),
        ("euclidean", "m: vectors are normalised: its similarity 'euclidean' becomes cosine", "cosine"),
        ("manhattan of unit vectors", "m: its similarity 'manhattan' becomes cosine", "cosine"),
    ],
)
def test_a_similarity_that_becomes_cosine_is_said_once(tmp_path, caplog, name, line, saved):
    with caplog.at_level(logging.WARNING):
        encoder = Encoder(SAME[name](), "m", LENGTHS)
        Encoder(encoder.model, "again", LENGTHS)
    assert caplog.messages == ([] if line is None else [f"{line}, here and where it is saved"])
    encoder.save(tmp_path)
    opened = SentenceTransformer(str(tmp_path), device="cpu")
    assert opened.similarity_fn_name == saved
    first, second = opened.encode(TEXTS[:2])
    assert float(opened.similarity(first, second)) == pytest.approx(float(first @ second), abs=1e-6)


class ForTasks(Dense):
    forward_kwargs: ClassVar = {"task"}


def changed(**settings):
    """Return a model whose transformer has other settings."""
    made = model()
    for name, value in settings.items():
        setattr(made[0], name, value)
    return made


@pytest.mark.parametrize(
    ("make_model", "says"),
    [
        (lambda: model(truncate_dim=8), r"m: truncate_dim \(first 8 of 16 dimensions\) is not supported"),
        (lambda: model(further=[ForTasks(HIDDEN, 5)]), "m: task-specific modules"),
        (lambda: changed(query_expansion={"strategy": "fixed", "length": 20}), "m: query_expansion is not supported"),
        (lambda: changed(modality_config={"message": {"method": "forward"}}), "m: chat templates are not supported"),
        (
            lambda: changed(processing_kwargs={"text": {"add_special_tokens": False}}),
            "m: .* with add_special_tokens=False",
        ),
        (lambda: changed(processing_kwargs={"text": {"truncation": False}}), "m: its tokenizer is .* truncation=False"),
    ],
)
def test_a_model_that_would_have_other_vectors_is_refused_with_the_reason(make_model, says):
    with pytest.raises(EncoderError, match=says) as caught:
        Encoder(make_model(), "m", LENGTHS)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 6


def test_prompts_that_are_not_to_be_pooled_are_refused_where_they_are_in_use(tmp_path):
    made = model(include_prompt=False, prompts={"query": "query: "})
    made.save_pretrained(str(tmp_path), create_model_card=False)
    says = (
        f"{tmp_path}: its pooling leaves out the tokens of prompts (include_prompt: false), which is not supported, "
        "and 'query: ' stands before each query; take its prompts away with --prompt query="
    )
    with pytest.raises(EncoderError) as caught:
        load_encoder(str(tmp_path), LENGTHS, device="cpu")
    assert str(caught.value) == says
    encoder = open_checkpoint(str(tmp_path), LENGTHS)
    with pytest.raises(EncoderError, match="include_prompt: false"):
        encoder.encode(TEXTS, "question")
    np.testing.assert_allclose(
        encoder.encode(TEXTS, "candidate"), made.encode_document(TEXTS, normalize_embeddings=True), atol=1e-6
    )
    replace_prompts(encoder.model, {"question": ""})
    np.testing.assert_allclose(encoder.encode(TEXTS, "question"), encoder.encode(TEXTS, "candidate"), atol=1e-6)
    load_encoder(str(tmp_path), LENGTHS, device="cpu", prompts={"question": ""})


def test_another_prompt_stands_before_every_text_whatever_was_encoded_when_it_was_opened(tmp_path):
    model(prompts={"query": "query: "}).save_pretrained(str(tmp_path), create_model_card=False)
    encoder = load_encoder(str(tmp_path), LENGTHS, device="cpu", prompts={"text": "query: "})
    np.testing.assert_array_equal(encoder.tokens(["a"], "text")[0], encoder.tokens(["a"], "question")[0])
