"""Measures an encoder on data of any kind."""

from collections.abc import Sequence
from contextlib import nullcontext

import torch

from metasearch.data.records import Data, RetrievalData, SimilarityData
from metasearch.encoders.vectors import EncodesTexts
from metasearch.evaluation.retrieval import evaluate_retrieval
from metasearch.evaluation.scores import Evaluation
from metasearch.evaluation.similarity import evaluate_similarity
from metasearch.evaluation.translation import evaluate_translation
from metasearch.spec.measure import Measure, Pool
from metasearch.spec.run import Precision


def evaluate(
    encoder: EncodesTexts,
    data: Data,
    measures: Sequence[Measure],
    pools: Sequence[Pool] = ("multilingual",),
    precision: Precision = "fp32",
) -> Evaluation:
    """Return all scores; `pools` matters to retrieval only.

    With `bf16` the encoder runs in bfloat16 where that is safe (torch autocast); vectors are compared in float32.

    Raises:
        ConfigError: there is no such pool, or a measure is for another kind of task.
        DataError: there is nothing to evaluate on, a question has no relevant candidate in a pool, or the scores of a
            language pair are constant.
        NonFiniteError: the encoder gives vectors that are not finite.
    """
    with torch.autocast(encoder.device.type, torch.bfloat16) if precision == "bf16" else nullcontext():
        if isinstance(data, RetrievalData):
            return evaluate_retrieval(encoder, data, measures, pools)
        if isinstance(data, SimilarityData):
            return evaluate_similarity(encoder, data, measures)
        return evaluate_translation(encoder, data, measures)
