"""Shorter vectors: the first numbers, or the directions that texts need most; plain sentence-transformers agrees."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from helpers.backbones import TEXTS, make
from helpers.onnx_extra import neutral, small
from metasearch.compress.standard import leading, narrowed


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(
    "made",
    [small, lambda: make("bert", dense=True, layers=1), lambda: neutral(small())],
    ids=["bert", "dense", "neutral"],
)
def test_the_first_numbers_of_a_vector_stay_and_are_normalised(made):
    encoder = made()
    whole = encoder.encode(TEXTS, "text")
    short = narrowed(encoder, 3)
    assert short.dimension() == 3
    np.testing.assert_allclose(short.encode(TEXTS, "text"), unit(whole[:, :3]), atol=1e-6)
    np.testing.assert_array_equal(encoder.encode(TEXTS, "text"), whole)


def test_sentence_transformers_makes_the_short_vectors_without_an_option(tmp_path):
    short = narrowed(small(), 3)
    short.save(tmp_path)
    found = SentenceTransformer(str(tmp_path), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(found, short.encode(TEXTS, "text"), atol=1e-6)


def test_directions_are_orthonormal_and_keep_most_of_the_squared_lengths():
    # Rows along (3, 4) / 5 eight times as often as along (−4, 3) / 5, and nothing in the third direction.
    rows = np.array([[0.6, 0.8, 0]] * 8 + [[-0.8, 0.6, 0]], np.float32)
    found = leading(rows, 2).numpy()
    np.testing.assert_allclose(found @ found.T, np.eye(2), atol=1e-6)
    np.testing.assert_allclose(np.abs(found), [[0.6, 0.8, 0], [0.8, 0.6, 0]], atol=1e-6)


def test_with_texts_the_short_vectors_are_those_in_their_directions():
    encoder = small()
    vectors = encoder.encode(TEXTS, "text")
    basis = leading(vectors, 4).numpy()
    short = narrowed(encoder, 4, vectors)
    np.testing.assert_allclose(short.encode(TEXTS, "text"), unit(vectors @ basis.T), atol=1e-6)
