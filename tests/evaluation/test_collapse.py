"""A collapse is told with its likely cause, and healthy vectors are left in peace."""

import numpy as np
import pytest

from metasearch.config.seeding import stream
from metasearch.encoders.builtin import tiny
from metasearch.evaluation.collapse import RANK_SHARE, SPREAD_SHARE, EmbeddingHealth, diagnose, health

N, D = 200, 64


def cloud(towards=0.0, directions=D, seed=0):
    """Make vectors of random directions, all drawn `towards` one point, within the first few dimensions."""
    vectors = stream(seed, "cloud").normal(size=(N, D)) / np.sqrt(D)
    vectors[:, directions:] = 0
    vectors[:, 0] += towards
    return vectors


HEALTHY = health(cloud())
POINT = health(cloud(towards=20))
FLAT = health(cloud(directions=2))


def sentences(real_data):
    """Return the first 200 different English sentences of a parallel corpus."""
    lines = (real_data / "parallel" / "en-de.tsv").read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys(line.split("\t")[0] for line in lines))[:200]


def test_random_directions_are_healthy_at_step_0_and_later():
    assert diagnose(HEALTHY, None, D) is None
    assert diagnose(health(cloud(seed=1)), HEALTHY, D) is None


def test_vectors_in_a_narrow_cone_are_healthy_when_they_were_so_at_step_0():
    """Untrained and plain language models are so: a cosine of 0.9 and yet all directions."""
    cone = health(cloud(towards=3))
    assert cone.cosine > 0.85
    assert diagnose(cone, None, D) is None
    assert diagnose(cone, cone, D) is None


def test_vectors_that_fall_into_a_narrow_cone_in_training_are_told():
    assert "all vectors are nearly the same" in diagnose(health(cloud(towards=4)), HEALTHY, D)


def test_one_point_after_a_healthy_start_is_the_learning_rate_or_constant_targets():
    warning = diagnose(POINT, HEALTHY, D)
    assert "all vectors are nearly the same" in warning
    assert "learning rate is too high" in warning
    assert "too small a tau" in warning


def test_few_directions_after_a_healthy_start_are_targets_that_are_not_matched():
    warning = diagnose(FLAT, HEALTHY, D)
    assert "a few directions only" in warning
    assert "dimension and normalisation of teacher and student" in warning
    assert "learning rate" not in warning


@pytest.mark.parametrize("state", [POINT, FLAT])
def test_at_step_0_it_is_the_encoder_as_it_was_made(state):
    warning = diagnose(state, None, D)
    assert "nothing is trained yet" in warning
    assert "wrong tokenizer, embeddings or pooling" in warning


@pytest.mark.parametrize("state", [POINT, FLAT])
def test_a_collapse_that_training_does_not_change_is_said_to_be_from_step_0(state):
    assert "it was so at step 0" in diagnose(state, state, D)


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (EmbeddingHealth(0.5, 0.9 * SPREAD_SHARE + 0.01, 50), False),
        (EmbeddingHealth(0.5, 0.9 * SPREAD_SHARE - 0.01, 50), True),
        (EmbeddingHealth(0.5, 0.9, 50 * RANK_SHARE + 0.1), False),
        (EmbeddingHealth(0.5, 0.9, 50 * RANK_SHARE - 0.1), True),
    ],
)
def test_shares_of_step_0_have_these_bounds(now, told):
    assert (diagnose(now, EmbeddingHealth(0.2, 0.9, 50), D) is not None) == told


def test_a_rank_that_the_dimension_does_not_allow_is_not_asked_for():
    circle = np.array([[np.cos(angle), np.sin(angle)] for angle in np.linspace(0, 2 * np.pi, 100, endpoint=False)])
    assert health(circle).rank == pytest.approx(2)
    assert diagnose(health(circle), None, 2) is None


def test_an_encoder_that_is_blind_to_its_text_is_told(real_data):
    """With a constant where its words and places were, every text of a length is the same."""
    encoder = tiny.build()
    before = health(encoder.encode(sentences(real_data), "text"))
    embeddings = encoder.model[0].auto_model.embeddings
    embeddings.word_embeddings.weight.data[:] = 1.0
    embeddings.position_embeddings.weight.data[:] = 0.0
    vectors = encoder.encode(sentences(real_data), "text")
    assert "all vectors are nearly the same" in diagnose(health(vectors), before, vectors.shape[1])
