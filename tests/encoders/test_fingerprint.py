"""An encoder's fingerprint changes with whatever its vectors depend on, and with nothing else."""

import copy
import json
from functools import reduce
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


def swap_two_words(spec):
    vocabulary = spec["model"]["vocab"]
    first, second = [word for word in vocabulary if len(word) > 3 and not word.startswith("[")][:2]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]


def test_a_tokenizer_that_reads_texts_otherwise_counts(encoder):
    lower_case, no_special_tokens = {"normalizer": {"type": "Lowercase"}}, {"post_processor": None}
    for edit in (swap_two_words, lambda spec: spec.update(lower_case), lambda spec: spec.update(no_special_tokens)):
        changed = another(encoder)
        spec = json.loads(changed.model.tokenizer.backend_tokenizer.to_str())
        edit(spec)
        changed.model.tokenizer._tokenizer = Tokenizer.from_str(json.dumps(spec))
        assert changed.fingerprint != encoder.fingerprint, edit


def test_an_architecture_that_shows_in_no_weight_counts(encoder):
    for setting, value in (("hidden_act", "relu"), ("layer_norm_eps", 1e-3), ("num_attention_heads", 4)):
        changed = another(encoder)
        setattr(changed.model[0].auto_model.config, setting, value)
        assert changed.fingerprint != encoder.fingerprint, setting


SHORTER = {"max_seq_length": 7, "0.query_length": 5, "0.document_length": 6}
EDITS = [
    ({"tokenizer.truncation_side": "left"}, True),
    ({"prompts": {"query": "q: "}}, True),
    ({"prompts": {"task": "t: "}, "default_prompt_name": "task"}, True),
    ({"prompts": {"query": "", "document": ""}}, False),
    ({"1": Pooling(16, pooling_mode="cls")}, True),
    ({"1.include_prompt": False}, False),
    ({**SHORTER, "0.processing_kwargs": {"text": {"max_length": 4}}}, False),
    ({"similarity_fn_name": "dot"}, False),
    ({"truncate_dim": 16}, False),
]
"""Attributes of a model, in its modules by number, and whether its vectors depend on them."""


@pytest.mark.slow
def test_it_changes_exactly_with_what_changes_vectors(encoder):
    texts = ["the key", "where is the key under the mat? " * 9]

    def edited(changes):
        model = copy.deepcopy(encoder.model)
        model.prompts = {}
        for place, value in changes.items():
            *inside, name = place.split(".")
            setattr(reduce(getattr, inside, model), name, value)
        found = Encoder(model, "edited", encoder.max_length)
        return found.fingerprint, [found.encode(texts, role) for role in get_args(Role)]

    fingerprint, vectors = edited({})
    for edit, counts in EDITS:
        found = edited(edit)
        assert np.allclose(vectors, found[1], atol=1e-5) is not counts, edit
        assert (found[0] != fingerprint) is counts, edit
