"""Fewer layers: those that stay are as they were, one above the other."""

import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from helpers.backbones import CONFIGS, TEXTS, make
from helpers.commands import metasearch
from helpers.tiers import others_slow
from metasearch.compress.thinning import chosen_layers, thin
from metasearch.encoders.compressed import layers_of


@pytest.mark.parametrize("kind", others_slow(["bert", "distilbert", "mpnet", "modernbert"]))
def test_vectors_are_those_of_an_encoder_whose_other_layers_do_nothing(kind):
    encoder = make(kind)
    last = encoder.model[0].auto_model.config.num_hidden_layers
    shallow = thin(encoder, (1, last))
    stack = layers_of(encoder.model[0].auto_model)
    for layer in stack[1 : last - 1]:
        layer.forward = lambda hidden, *rest, **more: hidden if kind != "mpnet" else (hidden,)
    assert np.array_equal(shallow.encode(TEXTS, "text"), encoder.encode(TEXTS, "text"))


@pytest.mark.parametrize(
    ("count", "kept"), [(1, [1]), (2, [1, 12]), (3, [1, 7, 12]), (4, [1, 5, 8, 12]), (6, [1, 3, 5, 8, 10, 12])]
)
def test_of_a_number_the_first_and_the_last_stay_and_others_between_them(count, kept):
    config = CONFIGS["bert"](10)
    config.num_hidden_layers = 12
    assert chosen_layers(config, count) == kept


@pytest.mark.slow
def test_the_command_writes_a_stock_model_and_says_beforehand_what_it_weighs(tmp_path):
    make("bert").model.save_pretrained(str(tmp_path / "deep"))
    asked = ["compress", tmp_path / "deep", "--layers", "1,3", "--json"]
    planned = json.loads(metasearch(*asked, "--sizes-only").stdout)
    made = json.loads(metasearch(*asked, "-o", tmp_path / "shallow").stdout)
    assert made["after"] == planned["after"]
    assert made["after"]["layers"] == made["before"]["layers"] * 2 // 6
    plain = SentenceTransformer(str(tmp_path / "shallow"), device="cpu")
    expected = thin(make("bert"), (1, 3)).encode(TEXTS[:4], "text")
    np.testing.assert_allclose(plain.encode(TEXTS[:4]), expected, atol=1e-6)
