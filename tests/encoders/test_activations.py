"""Activations of Dense modules: read as they are published, and saved so that others read them, or refused."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling
from torch import nn
from transformers.activations import ACT2FN

from helpers.backbones import HIDDEN, make
from metasearch.encoders.activations import saveable
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


SAVED = {
    "none": None,
    "weights": nn.PReLU(init=0.7),
    "function": torch.tanh,
    "gelu": ACT2FN["gelu"],
}


@pytest.mark.parametrize("name", SAVED)
def test_plain_sentence_transformers_reads_a_saved_activation(name, tmp_path):
    made = model(SAVED[name])
    Encoder(made).save(tmp_path / "saved")
    expected = vectors(made)
    np.testing.assert_allclose(vectors(SentenceTransformer(str(tmp_path / "saved"), device="cpu")), expected, atol=1e-6)
    np.testing.assert_allclose(open_checkpoint(str(tmp_path / "saved")).encode(TEXTS, "text"), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["gelu", "laplace"])
def test_an_activation_of_transformers_is_opened_as_published(name, tmp_path, caplog):
    expected = vectors(published(ACT2FN[name], tmp_path / "published"))
    encoder = open_checkpoint(str(tmp_path / "published"))
    np.testing.assert_allclose(encoder.encode(TEXTS, "text"), expected, atol=1e-6)
    encoder.save(tmp_path / "saved")
    again = open_checkpoint(str(tmp_path / "saved"))
    np.testing.assert_allclose(again.encode(TEXTS, "text"), expected, atol=1e-6)
    assert again.fingerprint == encoder.fingerprint
    # Torch has a class of its own for the first alone.
    assert ("with trust_remote_code=True only" in caplog.text) == (name != "gelu")


def test_an_activation_that_cannot_be_opened_is_refused_and_never_another(tmp_path):
    published(nn.Tanh(), tmp_path)
    path = tmp_path / "2_Dense" / "config.json"
    for said, says in (
        ("else.where.Act", "is code of neither torch nor transformers; pass --trust-remote-code"),
        ("transformers.activations.Missing", "cannot be made"),
        ("transformers.activations.ClippedGELUActivation", "cannot be made"),  # it needs settings
        ("transformers.activations.ACT2FN", "cannot be made"),
    ):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"activation_function": said}))
        with pytest.raises(EncoderError, match=rf"its activation '{said}' {says}[^\n]*$"):
            open_checkpoint(str(tmp_path))


def test_an_activation_whose_settings_would_not_be_saved_is_refused():
    refused = r"^model: its Dense module has the activation [^\n]+ without the settings"
    several, own = nn.Sequential(nn.ReLU(), nn.Tanh()), lambda inputs: inputs**2
    for activation in (nn.LeakyReLU(0.5), nn.GELU(approximate="tanh"), several, own):
        with pytest.raises(EncoderError, match=refused):
            Encoder(model(activation))


def test_weights_of_an_activation_that_is_opened_as_another_are_refused():
    with pytest.raises(EncoderError, match="has the activation XIELUActivation"):
        saveable(Dense(2, 2, activation_function=ACT2FN["xielu"]))


@given(slope=st.floats(0, 1))
def test_a_slope_is_saved_or_refused(slope):
    """Of the class alone, the slope is 0.01."""
    dense = Dense(2, 2, activation_function=nn.LeakyReLU(slope))
    try:
        saved = saveable(dense).activation_function
    except EncoderError:
        return
    made = type(saved)()
    inputs = torch.linspace(-3, 3, 7)
    torch.testing.assert_close(made(inputs), dense.activation_function(inputs))


def test_a_warning_of_the_libraries_is_one_line(tmp_path, caplog):
    published(nn.Tanh(), tmp_path)
    path = tmp_path / "2_Dense" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"colour": "red"}))
    open_checkpoint(str(tmp_path))
    (line,) = [each for each in caplog.records if "colour" in each.getMessage()]
    assert line.name == "metasearch.encoders.open"
    assert line.getMessage().startswith(f"encoder '{tmp_path}': Ignoring")
    assert "\n" not in line.getMessage()
