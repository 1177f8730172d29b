"""A saved encoder truncates each role where it did in training; plain sentence-transformers, at the longest length."""

import copy
import json
import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from helpers.backbones import POSITIONS, make
from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.lengths import complete
from metasearch.encoders.load import load_encoder
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError

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
    """Assert that a saved encoder has the same vectors, in plain sentence-transformers those of its longest length."""
    longest = dict.fromkeys(ROLES, max(encoder.limit(role) for role in ROLES))
    whole, opened = Encoder(copy.deepcopy(encoder.model), "whole", MaxLength(**longest)), open_checkpoint(str(folder))
    for role, encode in methods(plain(folder)).items():
        np.testing.assert_allclose(encode(TEXTS), whole.encode(TEXTS, role), atol=1e-6, err_msg=role)
        np.testing.assert_allclose(opened.encode(TEXTS, role), encoder.encode(TEXTS, role), atol=1e-6, err_msg=role)


def test_each_role_is_cut_at_its_own_length_whatever_the_model_was_published_with(tmp_path, caplog):
    model = make("bert").model
    model.prompts, model.max_seq_length = {"query": "q: ", "corpus": "d: "}, 4
    encoder = Encoder(model, "trained", MaxLength(**LENGTHS))
    caplog.set_level(logging.INFO)
    encoder.save(tmp_path / "model")
    assert caplog.messages == [
        f"{tmp_path / 'model'}: plain sentence-transformers truncates all texts at 20 tokens; metasearch: "
        "question 8, candidate 20, text 12"
    ]
    assert_alike(encoder, tmp_path / "model")
    read = {role: len(encoder.tokens(TEXTS[2:], role)[0][0]) for role in ROLES}
    assert read == LENGTHS  # the last text is longer than all of them
    assert [each for each in caplog.records if each.levelno > logging.INFO] == []


def test_a_length_that_leaves_no_word_is_refused():
    model = make("bert").model
    model.max_seq_length = 2
    with pytest.raises(EncoderError, match=r"published: it reads 2 tokens of a \w+ \(max_seq_length"):
        Encoder(model, "published")


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(ROLES, st.integers(3, 999))))
def test_a_role_has_its_declared_length_then_the_longest_of_the_other_kind_of_task_then_its_own(declared):
    own = {"question": 1001, "candidate": 1002, "text": 1003}
    found = complete(MaxLength(**declared), MaxLength(**own)).model_dump()
    retrieval = [declared[role] for role in ("question", "candidate") if role in declared]
    for role in ROLES:
        if role in declared:
            assert found[role] == declared[role]
        elif role == "text" and retrieval:
            assert found[role] == max(retrieval)
        elif role != "text" and not retrieval and "text" in declared:
            assert found[role] == declared["text"]
        else:
            assert found[role] == own[role]
    assert complete(None, MaxLength(**own)).model_dump() == own


def test_a_text_of_exactly_as_many_tokens_as_the_limit_is_not_truncated():
    encoder = load_encoder("tiny", MaxLength(question=10, candidate=12), device="cpu")
    texts = ["word " * count for count in range(1, 30)]
    tokens = [len(row) for row in encoder.input.tokenise(texts, 1000)["input_ids"]]
    for role, limit in (("question", 10), ("candidate", 12)):
        assert limit in tokens
        assert encoder.is_truncated(texts, role).tolist() == [count > limit for count in tokens]


def test_truncation_is_logged_once_for_each_role_unless_the_caller_asked_for_it(caplog):
    caplog.set_level(logging.INFO)
    texts = ["key " * count for count in range(1, 7)]
    model = make("bert").model
    model.prompts = {}
    limit = len(model.tokenizer(texts[2])["input_ids"])
    encoder = Encoder(model, "bert", MaxLength(question=limit, candidate=limit))
    encoder.encode(texts[:3], "question")
    assert caplog.messages == []
    encoder.encode(texts[2:5], "question")
    encoder.encode(texts[5:], "question")
    assert caplog.messages == [f"bert: 2 of 2 questions are truncated at {limit} tokens"]
    assert encoder.is_truncated(texts[3:4], "candidate").tolist() == [True]
    encoder.encode(texts[4:], "candidate")
    assert len(caplog.messages) == 1


def test_a_tokenizer_that_cuts_on_the_left_does_so_where_it_is_saved(tmp_path):
    model = make("bert").model
    model.tokenizer.truncation_side = "left"
    encoder = Encoder(model, "left", MaxLength(**LENGTHS))
    encoder.save(tmp_path)
    assert_alike(encoder, tmp_path)
    rest = encoder.model.tokenizer("key here " * 3)["input_ids"]
    assert encoder.tokens(["mat " * 30 + "key here " * 3], "question")[0][0].tolist() == [rest[0], *rest[-7:]]


def settings(folder, name="sentence_bert_config.json"):
    return json.loads((folder / name).read_text())


def test_a_model_is_not_saved_with_more_than_it_can_take(tmp_path):
    Encoder(make("bert").model, "trained", MaxLength(question=8, candidate=4000, text=4000)).save(tmp_path)
    assert settings(tmp_path) == {"max_seq_length": POSITIONS, "do_lower_case": False}
    assert plain(tmp_path).max_seq_length == POSITIONS
    assert settings(tmp_path, "config_sentence_transformers.json")["max_length"] == {
        "question": 8, "candidate": POSITIONS, "text": POSITIONS,
    }  # fmt: skip


@pytest.mark.parametrize("said", [8, {"question": 8, "candidate": 0, "text": 9}])
def test_lengths_that_are_no_tokens_of_each_role_are_refused(tmp_path, said):
    make("bert").write(tmp_path)
    path = tmp_path / "config_sentence_transformers.json"
    path.write_text(json.dumps({**settings(tmp_path, path.name), "max_length": said}))
    with pytest.raises(EncoderError, match=r"max_length: .*: expected tokens of question, candidate, text"):
        open_checkpoint(str(tmp_path))


def test_an_encoder_that_is_opened_without_lengths_has_those_that_it_was_saved_with(tmp_path):
    lengths = {"question": 7, "candidate": 130}
    Encoder(make("bert").model, "trained", MaxLength(**lengths)).save(tmp_path)
    own = MaxLength(**dict.fromkeys(ROLES, POSITIONS))
    expected = {role: min(length, POSITIONS) for role, length in complete(MaxLength(**lengths), own)}
    opened = open_checkpoint(str(tmp_path))
    assert {role: opened.limit(role) for role in ROLES} == expected
    opened.write(tmp_path / "again")  # as `metasearch export` and `neutralise` do
    again = open_checkpoint(str(tmp_path / "again"))
    assert {role: again.limit(role) for role in ROLES} == expected


def test_one_role_alone_may_have_a_length_of_its_own(tmp_path):
    own = {"document_length": 6}
    made = make("bert")
    made.model.max_seq_length = 20
    made.write(tmp_path)
    path = tmp_path / "sentence_bert_config.json"
    path.write_text(json.dumps(settings(tmp_path) | own))
    opened = open_checkpoint(str(tmp_path))
    assert {role: opened.limit(role) for role in ROLES} == {"question": 20, "candidate": 6, "text": 20}
    for role, encode in methods(plain(tmp_path)).items():
        np.testing.assert_allclose(encode(TEXTS), opened.encode(TEXTS, role), atol=1e-6, err_msg=role)
