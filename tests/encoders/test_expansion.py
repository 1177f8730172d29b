"""Document expansion: candidates move towards the nearest ones in other languages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.encoders import pool_scores
from metasearch.encoders.pool_scores import expanded


def unit(rows):
    rows = np.array(rows, np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def drawn(languages, each=5, width=6, seed=0):
    """Return vectors of some texts in each language, and the number of the language of each."""
    vectors = unit(np.random.default_rng(seed).normal(size=(languages * each, width)))
    return vectors, np.repeat(np.arange(languages), each)


def by_hand(vectors, languages, alpha):
    """Return the formula of the docstring, candidate by candidate, in float64."""
    vectors = vectors.astype(np.float64)
    means = {code: vectors[languages == code].mean(0) for code in set(languages.tolist())}
    centred = [v - means[code] for v, code in zip(vectors, languages.tolist(), strict=True)]
    rows = []
    for i in range(len(vectors)):
        moved = vectors[i].copy()
        for code in means:
            if code != languages[i]:
                others = np.flatnonzero(languages == code)
                cosines = [
                    centred[i] @ centred[j] / np.linalg.norm(centred[i]) / np.linalg.norm(centred[j]) for j in others
                ]
                moved += max(0.0, max(cosines)) ** alpha * vectors[others[int(np.argmax(cosines))]]
        rows.append(moved / np.linalg.norm(moved))
    return np.array(rows)


@pytest.mark.parametrize("alpha", [1.0, 3.0])
@pytest.mark.parametrize("cells", [2**24, 7])  # the second one row at a time
def test_radenovic_et_al_2019_the_nearest_of_each_other_language_counts_by_a_power_of_its_cosine(
    alpha, cells, monkeypatch
):
    monkeypatch.setattr(pool_scores, "_CELLS", cells)
    vectors, languages = drawn(3)
    np.testing.assert_allclose(expanded(vectors, languages, alpha), by_hand(vectors, languages, alpha), atol=1e-6)


def test_a_lone_text_of_a_language_has_no_direction_beside_its_mean_and_moves_nothing():
    vectors, languages = drawn(1, each=4)
    lone = np.concatenate([vectors, unit([[1, 2, 3, 4, 5, 6]])])
    np.testing.assert_allclose(expanded(lone, np.append(languages, 1)), lone, atol=1e-7)


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 5))
def test_vectors_have_length_one_whatever_the_order_of_candidates(languages, each, seed):
    vectors, codes = drawn(languages, each, seed=seed)
    order = np.random.default_rng(seed).permutation(len(vectors))
    moved = expanded(vectors, codes)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(expanded(vectors[order], codes[order]), moved[order], atol=1e-5)
