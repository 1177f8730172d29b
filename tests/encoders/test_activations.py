"""Activations of Dense modules: read as they are published, and saved so that others read them, or refused."""

import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling
from torch import nn
from transformers.activations import ACT2FN

from helpers.backbones import HIDDEN, make
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError

TEXTS = ["where is the key?", "the key is under the mat by the door"]


def model(activation):
    modules = [make("bert").model[0], Pooling(HIDDEN), Dense(HIDDEN, 5, activation_function=activation)]
    return SentenceTransformer(modules=modules, device="cpu")


def vectors(plain):
    return plain.encode(TEXTS, normalize_embeddings=True)


def published(activation, folder):
    made = model(activation)
    made.save_pretrained(str(folder), create_model_card=False)
    return made


@pytest.mark.parametrize("activation", [None, nn.PReLU(init=0.7), nn.GELU()], ids=["none", "weights", "gelu"])
def test_plain_sentence_transformers_reads_a_saved_activation(activation, tmp_path):
    made = model(activation)
    Encoder(made).save(tmp_path / "saved")
    expected = vectors(made)
    np.testing.assert_allclose(vectors(SentenceTransformer(str(tmp_path / "saved"), device="cpu")), expected, atol=1e-6)
    np.testing.assert_allclose(open_checkpoint(str(tmp_path / "saved")).encode(TEXTS, "text"), expected, atol=1e-6)


@pytest.mark.parametrize("said", ["else.where.Act", "transformers.activations.GELUActivation"])
def test_an_activation_of_another_library_is_refused_and_never_another(said, tmp_path):
    published(nn.Tanh(), tmp_path)
    path = tmp_path / "2_Dense" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"activation_function": said}))
    with pytest.raises(EncoderError, match=rf"its activation '{said}' is not of torch; [^\n]*$"):
        open_checkpoint(str(tmp_path))


def test_an_activation_whose_settings_would_not_be_saved_is_refused():
    refused = r"^model: its Dense module has the activation [^\n]+ without the settings"
    several, own = nn.Sequential(nn.ReLU(), nn.Tanh()), lambda inputs: inputs**2
    for activation in (nn.LeakyReLU(0.5), nn.GELU(approximate="tanh"), several, own, ACT2FN["gelu"]):
        with pytest.raises(EncoderError, match=refused):
            Encoder(model(activation))


def test_a_warning_of_the_libraries_is_one_line(tmp_path, caplog):
    published(nn.Tanh(), tmp_path)
    path = tmp_path / "2_Dense" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"colour": "red"}))
    open_checkpoint(str(tmp_path))
    (line,) = [each for each in caplog.records if "colour" in each.getMessage()]
    assert line.name == "metasearch.encoders.open"
    assert line.getMessage().startswith(f"encoder '{tmp_path}': Ignoring")
    assert "\n" not in line.getMessage()
