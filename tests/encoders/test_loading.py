"""Weights that do not fit their model: refused, and never replaced by random ones."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from helpers.backbones import LAYERS, LENGTHS, TEXTS, make
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError


def renamed(folder, change, **config):
    """Write an encoder whose weights are changed by a function of all of them."""
    make("bert").save(folder)
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, {"format": "pt"})
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(settings | config), encoding="utf-8")
    return str(folder)


def assert_as_made(folder):
    found, made = open_checkpoint(folder, LENGTHS), make("bert")
    np.testing.assert_array_equal(found.encode(TEXTS, "text"), made.encode(TEXTS, "text"))


def added(name):
    return lambda weights: {**weights, name: torch.zeros(3)}


def without(part):
    return lambda weights: {name: weight for name, weight in weights.items() if part not in name}


LAYER = 16
"""Weights and biases of a layer of BERT: six linear maps and two LayerNorms."""


@pytest.mark.parametrize(
    ("change", "config", "says"),
    [
        # As DistributedDataParallel and lightning save.
        (lambda weights: {f"module.{name}": weight for name, weight in weights.items()}, {},
         r"\d+ weights missing, the first 'embeddings\.\S+'; \d+ weights unexpected, the first 'module\.embeddings"),
        (without("layer.3."), {}, rf"{LAYER} weights missing, the first '\w+\.layer\.3\.\S+', and random numbers"),
        (without("LayerNorm.bias"), {}, r"weights? missing, the first '\S+LayerNorm\.bias'"),
        (added("embeddings.colour_embeddings.weight"), {},
         r"1 weight unexpected, the first 'embeddings\.colour_embeddings\.weight'\. Were"),
        (dict, {"num_hidden_layers": LAYERS + 2}, rf"{2 * LAYER} weights missing"),
        (dict, {"num_hidden_layers": LAYERS - 1}, rf"{LAYER} weights unexpected"),
    ],
    ids=["prefix", "layer-missing", "biases-missing", "unknown-name", "more-layers", "fewer-layers"],
)  # fmt: skip
def test_weights_that_do_not_fit_are_refused_and_never_drawn(change, config, says, tmp_path):
    folder = renamed(tmp_path / "model", change, **config)
    with pytest.raises(EncoderError, match=f"encoder '{folder}' cannot be loaded: its weights do not fit .*{says}"):
        open_checkpoint(folder)


@pytest.mark.parametrize(
    "change", [without("pooler"), added("embeddings.position_ids")], ids=["no-pooler", "positions-of-older-releases"]
)
def test_a_pooler_that_no_vector_depends_on_may_be_missing(change, tmp_path, caplog):
    assert_as_made(renamed(tmp_path / "model", change))
    assert "beside the encoder" not in caplog.text


def test_weights_of_a_head_are_passed_over_and_a_line_says_so(tmp_path, caplog):
    assert_as_made(renamed(tmp_path / "model", added("cls.predictions.bias")))
    assert "ignored 1 weight beside the encoder, the first 'cls.predictions.bias'" in caplog.text
