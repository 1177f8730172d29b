"""An encoder's fingerprint changes with whatever its vectors depend on, and with nothing else."""

import copy
import json
from typing import get_args

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Pooling
from tokenizers import Tokenizer

from helpers.backbones import make
from helpers.tokenizers import around
from metasearch.config.roles import Role
from metasearch.encoders.encoder import Encoder


@pytest.fixture(scope="module")
def encoder():
    return make("bert")


def another(encoder):
    """Return an equal encoder that shares nothing with the first."""
    return Encoder(copy.deepcopy(encoder.model), encoder.name, encoder.max_length)


def test_every_single_weight_counts():
    encoder = around("WordPiece")
    changed = another(encoder)
    for name, tensor in changed.model.state_dict().items():
        if not tensor.is_floating_point():
            continue
        place = tensor.view(-1)[-1:]
        kept = place.clone()
        place.copy_(torch.nextafter(kept, kept + 1))
        assert changed.fingerprint != encoder.fingerprint, name
        place.copy_(kept)
    assert changed.fingerprint == encoder.fingerprint


def swapped(encoder, edit):
    """Return a copy whose tokenizer was edited as the JSON that describes it."""
    changed = another(encoder)
    spec = json.loads(changed.model.tokenizer.backend_tokenizer.to_str())
    edit(spec)
    changed.model.tokenizer._tokenizer = Tokenizer.from_str(json.dumps(spec))
    return changed


def swap_two_words(spec):
    vocabulary = spec["model"]["vocab"]
    first, second = [word for word in vocabulary if len(word) > 3 and not word.startswith("[")][:2]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]


def lower_case(spec):
    spec["normalizer"] = {"type": "Lowercase"}


def no_special_tokens(spec):
    spec["post_processor"] = None


def test_a_tokenizer_that_reads_texts_otherwise_counts(encoder):
    for edit in (swap_two_words, lower_case, no_special_tokens):
        assert swapped(encoder, edit).fingerprint != encoder.fingerprint, edit


def test_an_architecture_that_shows_in_no_weight_counts(encoder):
    for setting, value in (("hidden_act", "relu"), ("layer_norm_eps", 1e-3), ("num_attention_heads", 4)):
        changed = another(encoder)
        setattr(changed.model[0].auto_model.config, setting, value)
        assert changed.fingerprint != encoder.fingerprint, setting


def cuts_left(model):
    model.tokenizer.truncation_side = "left"


def prompted(model):
    model.prompts = {"query": "q: "}


def prompted_by_default(model):
    model.prompts, model.default_prompt_name = {"task": "t: "}, "task"


def with_the_same_prompts_written_out(model):
    model.prompts = {"query": "", "document": ""}


def pooled_by_the_first_token(model):
    model[1] = Pooling(16, pooling_mode="cls")


def prompts_not_pooled(model):
    model[1].include_prompt = False


def saved_for_shorter_texts(model):
    model.max_seq_length, model[0].query_length, model[0].document_length = 7, 5, 6
    model[0].processing_kwargs = {"text": {"max_length": 4}}


def compared_by_dot_product(model):
    model.similarity_fn_name = "dot"


def truncated_to_all_numbers(model):
    model.truncate_dim = model.get_embedding_dimension()


EDITS = {
    cuts_left: True,
    prompted: True,
    prompted_by_default: True,
    with_the_same_prompts_written_out: False,
    pooled_by_the_first_token: True,
    prompts_not_pooled: False,
    saved_for_shorter_texts: False,
    compared_by_dot_product: False,
    truncated_to_all_numbers: False,
}


@pytest.mark.slow
def test_it_changes_exactly_with_what_changes_vectors(encoder):
    texts = ["the key", "where is the key under the mat? " * 9]

    def edited(edit):
        model = copy.deepcopy(encoder.model)
        model.prompts = {}
        edit(model)
        found = Encoder(model, "edited", encoder.max_length)
        return found.fingerprint, [found.encode(texts, role) for role in get_args(Role)]

    fingerprint, vectors = edited(lambda model: None)
    for edit, counts in EDITS.items():
        found = edited(edit)
        assert np.allclose(vectors, found[1], atol=1e-5) is not counts, edit
        assert (found[0] != fingerprint) is counts, edit
