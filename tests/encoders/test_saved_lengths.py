"""A saved encoder cuts texts in plain sentence-transformers where they were cut in training."""

import copy
import json
import logging
from types import SimpleNamespace

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from helpers.backbones import POSITIONS, make
from helpers.tiers import others_slow
from metasearch.compress.static import make_static
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.lengths import length_of
from metasearch.encoders.open import open_checkpoint
from metasearch.spec.recipe import MaxLength

ROLES = ("question", "candidate", "text")
LENGTHS = {"question": 8, "candidate": 20, "text": 12}
TEXTS = ["the key", "where is the key under the mat", "the key is here " * 20]
"""As short as the shortest length; longer; and longer than the longest."""


def methods(model):
    """Return the method of sentence-transformers for each role."""
    return dict(zip(ROLES, (model.encode_query, model.encode_document, model.encode), strict=True))


def plain(folder):
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


def assert_alike(encoder, folder):
    """Assert that plain sentence-transformers gives the vectors of all texts in all roles."""
    for role, encode in methods(plain(folder)).items():
        np.testing.assert_allclose(encode(TEXTS), encoder.encode(TEXTS, role), atol=1e-6, err_msg=role)


def settings(folder):
    return json.loads((folder / "sentence_bert_config.json").read_text())


@pytest.mark.parametrize("published", [4, 12, POSITIONS])
@pytest.mark.parametrize("name", others_slow(["document", "passage", "corpus"]))
def test_each_role_is_cut_at_its_own_length_whatever_the_model_was_published_with(tmp_path, caplog, name, published):
    model = make("bert").model
    model.prompts, model.max_seq_length = {"query": "q: ", name: "d: "}, published
    encoder = Encoder(model, "trained", MaxLength(**LENGTHS))
    encoder.save(tmp_path / "model")
    assert_alike(encoder, tmp_path / "model")
    read = {role: len(encoder.tokens(TEXTS[2:], role)[0][0]) for role in ROLES}
    assert read == LENGTHS  # the last text is longer than all of them
    assert not caplog.records


def test_the_lengths_stand_in_the_settings_of_sentence_transformers(tmp_path):
    Encoder(make("bert").model, "trained", MaxLength(**LENGTHS)).save(tmp_path)
    written = settings(tmp_path)
    assert (written["query_length"], written["document_length"]) == (8, 20)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["model_max_length"] == 12


def test_a_model_is_not_saved_with_more_than_it_can_take(tmp_path):
    Encoder(make("bert").model, "trained", MaxLength(question=8, candidate=4000, text=4000)).save(tmp_path)
    assert (settings(tmp_path)["document_length"], plain(tmp_path).max_seq_length) == (POSITIONS, POSITIONS)


@pytest.mark.parametrize(
    ("declared", "limits"),
    [
        ({"question": 8, "candidate": 20}, {"question": 8, "candidate": 20, "text": 20}),
        ({"text": 12}, {"question": 12, "candidate": 12, "text": 12}),
        (LENGTHS, LENGTHS),
    ],
)
def test_roles_that_a_task_does_not_have_are_read_as_far_as_its_longest(tmp_path, declared, limits):
    """So `encode`, which many call for all texts, reads no more of a text than was ever trained, and no less."""
    encoder = Encoder(make("bert").model, "trained", MaxLength(**declared))
    assert {role: encoder.limit(role) for role in ROLES} == limits
    encoder.save(tmp_path)
    assert_alike(encoder, tmp_path)


def test_a_length_in_the_options_of_its_tokenizer_does_not_go_before_them(tmp_path):
    model = make("bert").model
    model[0].processing_kwargs = {"text": {"max_length": 5, "truncation": True}}
    encoder = Encoder(model, "trained", MaxLength(**LENGTHS))
    encoder.save(tmp_path)
    assert_alike(encoder, tmp_path)


@pytest.mark.parametrize("lengths", [LENGTHS, {"text": 150}, {"question": 7, "candidate": 130}])
def test_an_encoder_that_is_opened_without_lengths_has_those_that_it_was_saved_with(tmp_path, lengths):
    Encoder(make("bert").model, "trained", MaxLength(**lengths)).save(tmp_path)
    expected = {role: min(length_of(MaxLength(**lengths), role), POSITIONS) for role in ROLES}
    opened = open_checkpoint(str(tmp_path))
    assert {role: opened.limit(role) for role in ROLES} == expected
    opened.write(tmp_path / "again")  # as `metasearch export` and `neutralise` do
    again = open_checkpoint(str(tmp_path / "again"))
    assert {role: again.limit(role) for role in ROLES} == expected


def test_a_published_model_without_lengths_for_roles_is_opened_with_the_defaults(tmp_path):
    make("bert").write(tmp_path)
    assert open_checkpoint(str(tmp_path)).max_length == MaxLength()


def test_a_model_without_a_table_of_positions_is_opened_with_all_its_saved_lengths(tmp_path, monkeypatch):
    Encoder(make("bert").model, "trained", MaxLength(**LENGTHS)).save(tmp_path)
    monkeypatch.setattr("metasearch.encoders.transformer.native_config", lambda model: SimpleNamespace())
    opened = open_checkpoint(str(tmp_path), MaxLength(**LENGTHS))
    assert {role: opened.limit(role) for role in ROLES} == LENGTHS


@pytest.fixture(scope="module")
def static():
    return make_static(make("bert"), "words")


def test_a_static_encoder_is_saved_with_the_longest_length_and_a_line(static, tmp_path, caplog):
    encoder = Encoder(copy.deepcopy(static.model), "words", MaxLength(**LENGTHS))
    with caplog.at_level(logging.WARNING):
        encoder.save(tmp_path)
    assert caplog.messages == [
        f"{tmp_path}: words: sentence-transformers will cut all texts at 20 tokens, and not each role at its own: "
        "question 8, candidate 20, text 12"
    ]
    longest = Encoder(static.model, "words", MaxLength(question=20, candidate=20, text=20))
    for role, encode in methods(plain(tmp_path)).items():
        found = encode(TEXTS)
        np.testing.assert_allclose(found, longest.encode(TEXTS, role), atol=1e-6)
        np.testing.assert_allclose(found[:2], encoder.encode(TEXTS[:2], role), atol=1e-6)  # not longer than its length
    assert not np.allclose(plain(tmp_path).encode(TEXTS)[2], encoder.encode(TEXTS, "text")[2], atol=1e-3)


def test_a_static_encoder_of_one_length_is_cut_alike_everywhere_and_opened_with_it(static, tmp_path, caplog):
    encoder = Encoder(copy.deepcopy(static.model), "words", MaxLength(text=12))
    encoder.save(tmp_path)
    assert_alike(encoder, tmp_path)
    assert not caplog.records
    opened = open_checkpoint(str(tmp_path))
    assert {role: opened.limit(role) for role in ROLES} == dict.fromkeys(ROLES, 12)
    assert open_checkpoint(str(tmp_path), MaxLength(text=30)).limit("text") == 30


def test_a_module_with_code_of_its_own_is_cut_at_the_longest_length():
    model = make("bert").model
    module = model[0]
    module.__class__ = type("Transformer", (type(module),), {"__module__": "custom_code"})
    encoder = Encoder(model, "custom", MaxLength(**LENGTHS))
    limits = {role: encoder.limit(role) for role in ROLES}
    assert not encoder.input.cut_at(limits)
    assert (module.max_seq_length, module.query_length, module.document_length) == (20, None, None)


def test_a_tokenizer_that_cuts_on_the_left_does_so_where_it_is_saved(tmp_path):
    model = make("bert").model
    model.tokenizer.truncation_side = "left"
    encoder = Encoder(model, "left", MaxLength(**LENGTHS))
    encoder.save(tmp_path)
    assert_alike(encoder, tmp_path)
    rest = encoder.model.tokenizer("key here " * 3)["input_ids"]
    assert encoder.tokens(["mat " * 30 + "key here " * 3], "question")[0][0].tolist() == [rest[0], *rest[-7:]]
