"""To how many numbers vectors were trained to be cut: a record that is saved with an encoder and read back."""

import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from helpers.backbones import HIDDEN, TEXTS, make
from metasearch.compress.export.truncate_dims import narrowed
from metasearch.compress.static import make_static
from metasearch.encoders.open import open_checkpoint
from metasearch.encoders.saved_layout import set_trained_dimensions, trained_dimensions
from metasearch.errors import EncoderError

FILE = "config_sentence_transformers.json"
MADE = {
    "bert": lambda: make("bert", layers=1),
    "mpnet": lambda: make("mpnet", layers=1),
    "static": lambda: make_static(make("bert", layers=1), "words"),
}


def noted(kind="bert", dimensions=(4, 8)):
    encoder = MADE[kind]()
    set_trained_dimensions(encoder.model, dimensions)
    return encoder


@pytest.mark.parametrize("kind", MADE)
def test_an_encoder_that_is_saved_and_opened_has_its_record_and_its_vectors(tmp_path, kind):
    encoder = noted(kind)
    encoder.save(tmp_path)
    found = open_checkpoint(str(tmp_path))
    assert trained_dimensions(found.model) == (4, 8)
    assert found.fingerprint == encoder.fingerprint


def test_sentence_transformers_passes_over_the_record_and_cuts_where_it_is_told_to(tmp_path):
    encoder = noted()
    encoder.save(tmp_path)
    whole = encoder.encode(TEXTS, "text")
    np.testing.assert_allclose(SentenceTransformer(str(tmp_path), device="cpu").encode(TEXTS), whole, atol=1e-6)
    cut = SentenceTransformer(str(tmp_path), device="cpu", truncate_dim=4)
    found = cut.encode(TEXTS, normalize_embeddings=True)
    expected = whole[:, :4] / np.linalg.norm(whole[:, :4], axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_first_numbers_keep_what_is_left_of_the_record_and_directions_of_texts_do_not():
    encoder = noted(dimensions=(2, 4, 8))
    assert trained_dimensions(narrowed(encoder, 4).model) == (2, 4)
    assert trained_dimensions(narrowed(encoder, 4, encoder.encode(TEXTS, "text")).model) == ()


@pytest.mark.parametrize("said", ["8", [4, HIDDEN + 1], [True]])
def test_a_record_that_is_no_list_of_numbers_of_the_vectors_is_refused_with_the_file(tmp_path, said):
    noted().save(tmp_path)
    settings = json.loads((tmp_path / FILE).read_text()) | {"matryoshka_dimensions": said}
    (tmp_path / FILE).write_text(json.dumps(settings))
    with pytest.raises(EncoderError, match=rf"{FILE}: matryoshka_dimensions: .* from 1 to {HIDDEN}$"):
        open_checkpoint(str(tmp_path))
