"""The map that takes the language out of vectors: what it removes, and an encoder that has it.

Yang et al. 2021 ("A Simple and Effective Method To Eliminate the Self Language Bias in Multilingual Representations"),
Libovický et al. 2020 ("On the Language Neutrality of Pre-trained Multilingual Representations").
"""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from helpers.backbones import HIDDEN, TEXTS, make
from metasearch.compress.student import make_student
from metasearch.encoders.int8 import write_stored
from metasearch.encoders.maps import estimate
from metasearch.encoders.neutral import append
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import ConfigError, DataError, EncoderError

SHIFTS = {"ar": (3.0, 0, 0), "de": (0, 2.0, 0), "el": (0, 0, 1.0), "hi": (-3.0, -2.0, -1.0)}
"""What each language adds to the first three dimensions; 0 in sum."""


def spoken(width=8, texts=40):
    """Return language → vectors that are the same contents in each language, plus its shift and one for all."""
    contents = np.random.default_rng(0).normal(size=(texts, width)) + 5
    return {language: contents + np.pad(shift, (0, width - 3)) for language, shift in SHIFTS.items()}


def affine(neutral, vectors):
    """Return vectors after the map, before they are normalised."""
    return vectors @ neutral.weight + neutral.bias


def test_with_one_direction_less_than_languages_all_languages_have_the_same_mean_and_contents_stay():
    vectors = spoken()
    neutral = estimate(vectors)
    assert neutral.directions.shape == (4 - 1, 8)
    means = [affine(neutral, found).mean(0) for found in vectors.values()]
    assert max(np.linalg.norm(one - other) for one in means for other in means) < 1e-12
    # Language is in the first three dimensions alone; the others keep their contents less the mean.
    contents = vectors["ar"][:, 3:]
    for found in vectors.values():
        np.testing.assert_allclose(affine(neutral, found)[:, 3:], contents - contents.mean(0), atol=1e-12)
        np.testing.assert_allclose(affine(neutral, found)[:, :3], 0, atol=1e-12)


def test_a_lower_rank_takes_out_the_largest_principal_components_of_the_means():
    vectors = spoken()
    for rank in (1, 2):
        neutral = estimate(vectors, rank=rank)
        means = np.array(list(SHIFTS.values()))
        left = means - means @ neutral.directions[:, :3].T @ neutral.directions[:, :3]
        # Eckart and Young 1936: what is left is the sum of the squares of the smaller singular values.
        assert np.square(left).sum() == pytest.approx(np.square(np.linalg.svd(means)[1][rank:]).sum())


@pytest.mark.parametrize(
    ("languages", "texts", "settings", "error", "message"),
    [
        (["ar"], 40, (), DataError, "texts of ar alone"),
        ([], 40, (), DataError, "texts of no language"),
        (["ar", "de"], 4, (), DataError, "ar has 4 texts; the mean of a language needs 5"),
        (["ar", "de", "el"], 40, (3,), ConfigError, "rank 3 is out of range, 1 to 2"),
    ],
)
def test_what_cannot_be_estimated_is_refused(languages, texts, settings, error, message):
    vectors = spoken(texts=texts)
    with pytest.raises(error, match=message):
        estimate({language: vectors[language] for language in languages}, *settings)


@pytest.fixture
def neutral():
    """A map of the width of small encoders, whose languages differ in directions of vectors of unit length."""
    drawn = np.random.default_rng(1).normal(size=(3, 30, HIDDEN)) + np.eye(3, HIDDEN)[:, None]
    return estimate(dict(zip("abc", drawn / np.linalg.norm(drawn, axis=2, keepdims=True), strict=True)))


def test_an_encoder_gives_the_mapped_vectors_and_plain_sentence_transformers_loads_it(neutral, tmp_path):
    encoder = make("bert")
    before = encoder.encode(TEXTS, "question")
    append(encoder, neutral)
    after = encoder.encode(TEXTS, "question")
    np.testing.assert_allclose(after, neutral(before), atol=1e-6)
    assert np.abs(after - before).max() > 0.05
    encoder.save(tmp_path)
    plain = SentenceTransformer(str(tmp_path), device="cpu")
    np.testing.assert_allclose(plain.encode(TEXTS, prompt_name="query"), after, atol=1e-6)
    opened = open_checkpoint(str(tmp_path), encoder.max_length)
    np.testing.assert_array_equal(opened.encode(TEXTS, "question"), after)
    assert opened.neutral
    assert opened.fingerprint == encoder.fingerprint


def test_the_pooled_vector_is_what_the_last_module_that_normalises_is_given(neutral):
    encoder = make("bert")
    unit = encoder.encode(TEXTS, "text").astype(np.float64)
    append(encoder, neutral)
    pooled = encoder.encode(TEXTS, "text", "pooled")
    np.testing.assert_allclose(pooled, affine(neutral, unit), atol=1e-5)
    lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.encode(TEXTS, "text"), pooled / lengths, atol=1e-5)


def test_a_map_is_put_there_once_and_taken_away_again(neutral):
    encoder = make("bert")
    before = encoder.fingerprint
    append(encoder, neutral)
    assert encoder.fingerprint != before
    with pytest.raises(EncoderError, match="already has a language-neutral projection; name the encoder"):
        append(encoder, neutral)
    del encoder.model[-2:]
    assert encoder.fingerprint == before


def test_a_student_and_an_encoder_in_int8_keep_the_map(neutral, tmp_path):
    encoder = make("bert")
    append(encoder, neutral)
    student = make_student(encoder, bottleneck=6, recurrent=3)
    assert student.neutral
    dense = [each.model[-2].linear for each in (encoder, student)]
    assert torch.equal(dense[0].weight, dense[1].weight)
    write_stored(encoder, tmp_path / "int8")
    stored = open_checkpoint(str(tmp_path / "int8"))
    assert stored.neutral
    assert torch.equal(stored.model[-2].linear.weight, dense[0].weight)
