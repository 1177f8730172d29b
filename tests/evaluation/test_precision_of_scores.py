"""Scores in bfloat16: the encoder alone is less precise, and float32 stays the default."""

import numpy as np
import pytest
import torch

from metasearch.config.measure import Measure
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.load import load_encoder
from metasearch.evaluation.evaluate import evaluate

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def both():
    """Return the results of the questions of `demo` in both precisions."""
    encoder, benchmark = load_encoder("tiny", device="cpu"), load_benchmark("demo")
    data, measures = benchmark.split.test.select(benchmark.split.test.groups[:2]), [Measure("map", 20)]
    return encoder, data, [evaluate(encoder, data, measures, precision=name) for name in ("float32", "bfloat16")]


def test_bf16_changes_scores_by_less_than_two_points_of_map(both):
    _, _, (exact, rounded) = both
    scores = [result.mean("map@20") for result in (exact, rounded)]
    assert scores[0] == pytest.approx(scores[1], abs=0.02)
    assert not np.array_equal(exact.questions.ranking.scores, rounded.questions.ranking.scores)


def test_vectors_in_bf16_are_compared_in_float32(both):
    encoder, data, (_, rounded) = both
    with torch.autocast("cpu", torch.bfloat16):
        languages = sorted(data.questions_by_language)
        vectors = [encoder.encode([q.text for q in data.questions_by_language[name]], "question") for name in languages]
        candidates = encoder.encode([candidate.text for candidate in data.candidates], "candidate")
    scores = np.concatenate(vectors) @ candidates.T
    # In bfloat16 a product of unit vectors would be off by 2⁻⁹.
    np.testing.assert_allclose(rounded.questions.ranking.scores[:, 0], scores.max(1), atol=1e-5)
