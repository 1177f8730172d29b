"""Labelled queries of an index: the formula in plain arithmetic, and the same gains in every form of the record."""

import numpy as np
import pytest

from metasearch.search.index.labelled_queries import LabelledQueries

D = 64
KEYS = np.arange(4 * 16, dtype=np.uint8).reshape(4, 16)
PAGES = [[0, 1], [2], [1], [3]]
"""The first query and the third share page 1."""


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def labelled():
    vectors = np.random.default_rng(2).standard_normal((4, D))
    vectors[2] += 2 * vectors[0]
    return LabelledQueries.of(unit(vectors), PAGES, KEYS)


def test_the_pages_of_the_nearest_query_gain_by_the_formula_written_out(labelled):
    stored = labelled.vectors.astype(np.float64)
    apart = [float(stored[i] @ stored[j]) for i, j in ((0, 1), (0, 3), (1, 2), (1, 3), (2, 3))]
    mean = sum(apart) / 5
    spread = (sum((each - mean) ** 2 for each in apart) / 5) ** 0.5
    query = unit(stored[:1] + 0.1 * stored[1:2])
    z = [(float(query[0] @ each) - mean) / spread for each in stored]
    assert z[0] > z[2] > max(z[1], z[3]) + 1  # the third shares a page with the first, and is no rival
    ((pages, gain),) = labelled.recall(query)
    assert pages.tolist() == [0, 1]
    assert gain == pytest.approx(2 * (z[0] - max(3, max(z[1], z[3]) + 1)), rel=1e-4)
    assert gain > 0


def test_a_query_between_two_pages_or_like_no_label_finds_nothing(labelled):
    between, unlike = unit(labelled.vectors[:1] + labelled.vectors[1:2]), -labelled.vectors[:1]
    assert [(len(pages), gain) for pages, gain in labelled.recall(np.concatenate([between, unlike]))] == [(0, 0.0)] * 2
    assert LabelledQueries.of(labelled.vectors[:2], [[0], [0]], KEYS) is None


def test_a_record_gives_the_same_gains(labelled):
    again = LabelledQueries.read(labelled.record)
    for (pages, gain), (own, same) in zip(*(each.recall(labelled.vectors) for each in (labelled, again)), strict=True):
        assert (pages.tolist(), gain) == (own.tolist(), same)
