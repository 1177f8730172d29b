"""What is put before texts is what sentence-transformers puts before them, in memory and where the model is saved."""

from itertools import cycle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from helpers.backbones import make
from helpers.tiers import others_slow
from metasearch.encoders.open import open_checkpoint
from metasearch.encoders.prompts import prompt_of, replace_prompts, unused_prompts

PUBLISHED = {
    "none": ({}, None),
    "query and document": ({"query": "q: ", "document": "d: "}, None),
    "query and passage": ({"query": "q: ", "passage": "p: "}, None),
    "query alone": ({"query": "q: "}, None),
    "all three of a candidate": ({"corpus": "c: ", "passage": "p: ", "document": "d: "}, None),
    "a default": ({"task": "t: "}, "task"),
    "an empty default": ({"query": "q: ", "task": ""}, "task"),
    "an empty query beside a default": ({"query": "", "task": "t: "}, "task"),
    "a default that is the query's": ({"query": "q: "}, "query"),
}
ROLES = ("question", "candidate", "text")
TEXT = "the key is under the mat"


def assert_alike(encoder, model):
    methods = (model.encode_query, model.encode_document, model.encode)
    for role, encode in zip(ROLES, methods, strict=True):
        np.testing.assert_allclose(encoder.encode([TEXT], role)[0], encode([TEXT])[0], atol=1e-6, err_msg=role)


def opened(folder):
    return SentenceTransformer(str(folder), device="cpu")


@pytest.mark.parametrize("prompts", others_slow(PUBLISHED))
def test_prompts_that_are_set_on_a_model_are_those_of_the_folder_that_it_is_saved_to(prompts, tmp_path):
    """A model that is loaded has an empty prompt under a name that is not in its files, and one in memory has none."""
    encoder = make("bert")
    table, default = PUBLISHED[prompts]
    encoder.model.prompts, encoder.model.default_prompt_name = dict(table), default
    assert_alike(encoder, encoder.model)
    before = [prompt_of(encoder.model, role) for role in ROLES], encoder.fingerprint
    encoder.save(tmp_path / "saved")
    assert ([prompt_of(encoder.model, role) for role in ROLES], encoder.fingerprint) == before
    assert_alike(encoder, opened(tmp_path / "saved"))


NAMES = {
    "question": ("query", "question", "search_query"),
    "candidate": ("document", "passage", "corpus", "doc", "text", "search_document"),
}
TABLES = st.dictionaries(st.sampled_from([*sum(NAMES.values(), ()), "Classification"]), st.sampled_from(["", "a", "b"]))


@given(table=TABLES)
def test_the_first_prompt_of_a_role_that_is_not_empty_is_taken_and_others_are_named(table):
    model = SimpleNamespace(prompts=table, default_prompt_name=None)
    expected = {role: next(filter(None, map(table.get, names)), "") for role, names in NAMES.items()}
    assert {role: prompt_of(model, role) for role in NAMES} == expected
    assert unused_prompts(model) == [name for name, prompt in table.items() if prompt not in {"", *expected.values()}]


@pytest.mark.parametrize("place", others_slow([("candidate", "passage"), ("question", "question")]))
def test_a_published_prompt_is_read_under_its_other_names(place, tmp_path, caplog):
    """sentence-transformers saves an empty prompt under the first name."""
    role, name = place
    model = SentenceTransformer(modules=list(make("bert").model), prompts={name: "p: "}, device="cpu")
    model.save_pretrained(str(tmp_path / "published"), create_model_card=False)
    encoder = open_checkpoint(str(tmp_path / "published"))
    assert {each: encoder.prompt(each) for each in ROLES} == {**dict.fromkeys(ROLES, ""), role: "p: "}
    assert "no text is read" not in caplog.text
    encoder.save(tmp_path / "saved")
    assert_alike(encoder, opened(tmp_path / "saved"))


def test_prompts_under_unknown_names_are_one_line(tmp_path, caplog):
    prompts = {"query": "q: ", "document": "d: ", "Classification": "c: ", "same": "q: ", "s2s": "s: "}
    model = SentenceTransformer(modules=list(make("bert").model), prompts=prompts, device="cpu")
    model.save_pretrained(str(tmp_path), create_model_card=False)
    open_checkpoint(str(tmp_path))
    (line,) = [each.getMessage() for each in caplog.records if "prompts" in each.getMessage()]
    assert "no text is read with its prompts 'Classification', 's2s';" in line


REPLACED = ("query and passage", "all three of a candidate", "an empty default", "a default that is the query's")


@pytest.mark.slow
@pytest.mark.parametrize(("prompts", "role"), list(zip(REPLACED, cycle(ROLES), strict=False)))
def test_a_prompt_that_is_replaced_is_saved_and_leaves_those_of_other_roles_alone(prompts, role, tmp_path):
    encoder = make("bert")
    table, default = PUBLISHED[prompts]
    encoder.model.prompts, encoder.model.default_prompt_name = dict(table), default
    expected = {each: prompt_of(encoder.model, each) for each in ROLES} | {role: "new "}
    replace_prompts(encoder.model, {role: "new "})
    assert {each: prompt_of(encoder.model, each) for each in ROLES} == expected
    encoder.save(tmp_path / "saved")
    saved = opened(tmp_path / "saved")
    assert {each: prompt_of(saved, each) for each in ROLES} == expected
    assert_alike(encoder, saved)
