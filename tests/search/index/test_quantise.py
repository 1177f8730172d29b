"""Vectors as whole numbers."""

import numpy as np
import pytest

from metasearch.search.index.exact_search import split_queries, to_int8


def test_the_greatest_component_has_the_code_127_and_the_others_their_share_of_it():
    codes, _ = to_int8(np.array([[0.5, -0.25, 0.1, 0.0]], np.float32))
    assert codes.tolist() == [[127, round(-0.25 / 0.5 * 127), round(0.1 / 0.5 * 127), 0]]


def test_a_step_keeps_the_length_of_a_vector():
    vectors = np.random.default_rng(0).standard_normal((50, 33)).astype(np.float32)
    codes, steps = to_int8(vectors)
    rounded = codes.astype(np.float64) * steps[:, None]
    np.testing.assert_allclose(np.linalg.norm(rounded, axis=1), np.linalg.norm(vectors, axis=1), rtol=1e-6)
    plain = np.abs(vectors).max(1, keepdims=True) / 127
    assert (np.abs(codes * plain - vectors) <= 0.501 * plain).all()
    np.testing.assert_allclose(steps[:, None], plain, rtol=0.01)


def test_a_vector_is_rounded_alike_whatever_stands_beside_it():
    vectors = np.random.default_rng(1).standard_normal((64, 20)).astype(np.float32)
    codes, steps = to_int8(vectors)
    for i in range(64):
        alone = to_int8(vectors[i : i + 1])
        assert (alone[0][0] == codes[i]).all()
        assert alone[1][0] == steps[i]


@pytest.mark.parametrize("dimension", [1, 24, 1024, 1100, 4096])
def test_no_product_of_a_query_with_codes_leaves_32_bits(dimension):
    halves, _ = split_queries(np.ones((1, dimension), np.float32))
    numbers = 128 * halves[0].astype(np.int64) + halves[1]
    assert 2**29 * min(1, dimension / 1024) <= abs(numbers.sum() * 127) < 2**31
