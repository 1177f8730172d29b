"""Statistics of embeddings by arithmetic, and the warning about a collapse with its likely cause."""

import itertools
import math
import re
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from metasearch.config.seeding import stream
from metasearch.encoders.builtin import tiny
from metasearch.errors import NonFiniteError
from metasearch.evaluation.collapse import RANK_SHARE, SPREAD_SHARE, EmbeddingHealth

N, D = 200, 64


def cloud(towards=0.0, directions=D, seed=0):
    """Make vectors of random directions, all drawn `towards` one point, within the first few dimensions."""
    vectors = stream(seed, "cloud").normal(size=(N, D)) / np.sqrt(D)
    vectors[:, directions:] = 0
    vectors[:, 0] += towards
    return vectors


HEALTHY = EmbeddingHealth.of(cloud())
POINT = EmbeddingHealth.of(cloud(towards=20))
FLAT = EmbeddingHealth.of(cloud(directions=2))


def sentences(real_data):
    """Return the first 50 different English sentences of a parallel corpus."""
    lines = (real_data / "parallel" / "en-de.tsv").read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys(line.split("\t")[0] for line in lines))[:50]


CONE, NARROW = EmbeddingHealth.of(cloud(towards=3)), EmbeddingHealth.of(cloud(towards=4))
"""Of a cosine of 0.9 and yet all directions, as of untrained and plain language models; and a little narrower."""
ONE, FEW = "all vectors are nearly the same", "a few directions only"


@pytest.mark.parametrize(
    ("now", "before"), [(HEALTHY, None), (EmbeddingHealth.of(cloud(seed=1)), HEALTHY), (CONE, None), (CONE, CONE)]
)
def test_healthy_vectors_and_a_narrow_cone_from_step_0_are_not_told(now, before):
    assert CONE.cosine > 0.85
    assert now.diagnose(before, D) is None


@pytest.mark.parametrize(
    ("now", "before", "told", "cause"),
    [
        (NARROW, HEALTHY, ONE, r"learning rate is too high.*too small a tau"),
        (POINT, HEALTHY, ONE, r"learning rate is too high.*too small a tau"),
        (FLAT, HEALTHY, FEW, r"unmatched targets: compare dimension and normalisation of teacher and student"),
        (POINT, None, ONE, r"nothing is trained yet.*wrong tokenizer, embeddings or pooling"),
        (FLAT, None, FEW, r"nothing is trained yet.*wrong tokenizer, embeddings or pooling"),
        (POINT, POINT, ONE, "it was so at step 0"),
        (FLAT, FLAT, FEW, "it was so at step 0"),
    ],
)
def test_a_collapse_is_told_with_its_likely_cause(now, before, told, cause):
    assert re.search(f"{told} .*Likely cause: .*{cause}", now.diagnose(before, D))


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
    assert (now.diagnose(EmbeddingHealth(0.2, 0.9, 50), D) is not None) == told


def test_a_rank_that_the_dimension_does_not_allow_is_not_asked_for():
    circle = np.array([[np.cos(angle), np.sin(angle)] for angle in np.linspace(0, 2 * np.pi, 100, endpoint=False)])
    assert EmbeddingHealth.of(circle).rank == pytest.approx(2)
    assert EmbeddingHealth.of(circle).diagnose(None, 2) is None


def test_an_encoder_that_is_blind_to_its_text_is_told(real_data):
    """With a constant where its words and places were, every text of a length is the same."""
    encoder = tiny.build()
    before = EmbeddingHealth.of(encoder.encode(sentences(real_data), "text"))
    embeddings = encoder.model[0].auto_model.embeddings
    embeddings.word_embeddings.weight.data[:] = 1.0
    embeddings.position_embeddings.weight.data[:] = 0.0
    vectors = encoder.encode(sentences(real_data), "text")
    assert "all vectors are nearly the same" in EmbeddingHealth.of(vectors).diagnose(before, vectors.shape[1])


# Statistics.


RIGHT = [1.0, 0.0, 0.0]
# Entries of a fair size, so that the reference, which squares them, stays in range.
entries = st.floats(0.01, 100) | st.floats(-100, -0.01)
clouds = st.tuples(st.integers(2, 12), st.integers(1, 8)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=entries)
)


def measured(vectors):
    return astuple(EmbeddingHealth.of(np.array(vectors)))


def close(*values):
    return pytest.approx(values, abs=1e-12)


def test_equal_vectors_have_cosine_one_no_spread_and_rank_zero():
    assert measured([[0.3, -0.7, 0.1]] * 5) == close(1, 0, 0)


@pytest.mark.parametrize("count", [2, 3, 16])
def test_an_orthonormal_basis_has_cosine_zero_and_loses_one_rank_to_the_mean(count):
    assert measured(np.eye(count)) == close(0, math.sqrt(1 - 1 / count), count - 1)


def test_unequal_singular_values_count_by_their_entropy():
    # Already centred; the columns have norms √2 and √6 / 2, shares p and 1 − p of their sum.
    tilt = [[math.sqrt(1 / 4), math.sqrt(3 / 4)], [-math.sqrt(1 / 4), -math.sqrt(3 / 4)]]
    vectors = [*tilt, [-tilt[0][0], tilt[0][1]], [tilt[0][0], -tilt[0][1]]]
    first, second = math.sqrt(4 * 1 / 4), math.sqrt(4 * 3 / 4)
    p, q = first / (first + second), second / (first + second)
    assert EmbeddingHealth.of(np.array(vectors)).rank == pytest.approx(
        math.exp(-p * math.log(p) - q * math.log(q)), abs=1e-12
    )


@given(clouds)
def test_the_mean_cosine_is_that_of_all_pairs_one_by_one(vectors):
    pairs = [a @ b / math.sqrt((a @ a) * (b @ b)) for a, b in itertools.combinations(vectors, 2)]
    assert EmbeddingHealth.of(vectors).cosine == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)


@given(clouds, st.floats(0.001, 1000))
def test_only_directions_count(vectors, scale):
    lengths = np.linspace(1, scale, len(vectors))[:, None]
    assert measured(vectors * lengths)[:2] == pytest.approx(measured(vectors)[:2], abs=1e-7)


def test_what_has_no_direction_is_refused_by_its_number():
    with pytest.raises(NonFiniteError, match="vector 1 of 2 is not finite, or has length 0"):
        EmbeddingHealth.of(np.array([RIGHT, [0.0, np.nan, 0.0]]))
    with pytest.raises(NonFiniteError, match="vector 1 of 2 is not finite, or has length 0"):
        EmbeddingHealth.of(np.array([RIGHT, [0.0, 0.0, 0.0]]))
