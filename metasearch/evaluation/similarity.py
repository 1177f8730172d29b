"""Correlates cosine similarity with gold on each language pair (SemEval-2017 task 1; MAML-Align paper, section 5)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from metasearch.data.records import SimilarityData
from metasearch.encoders.vectors import EncodesTexts
from metasearch.errors import DataError, MetasearchError
from metasearch.evaluation.metrics.base import function_of
from metasearch.evaluation.scores import Evaluation, Score
from metasearch.runs.questions import Cell, QuestionResults
from metasearch.spec.measure import Measure


def evaluate_similarity(encoder: EncodesTexts, data: SimilarityData, measures: Sequence[Measure]) -> Evaluation:
    """Return the scores of every language pair."""
    if not data.pairs:
        raise DataError("there are no pairs to evaluate on")
    first = encoder.encode([pair.text1 for pair in data.pairs], "text")
    second = encoder.encode([pair.text2 for pair in data.pairs], "text")
    return correlate(data, first, second, measures)


def correlate(
    data: SimilarityData, first: NDArray[np.float32], second: NDArray[np.float32], measures: Sequence[Measure]
) -> Evaluation:
    """Return the scores of every language pair from unit vectors of both texts of each pair, `(N, D)`.

    Raises:
        ConfigError: a measure is for another kind of task.
        DataError: the scores of a language pair are constant.
        NonFiniteError: a vector is not finite.
    """
    functions = {measure: function_of(measure, "similarity") for measure in measures}
    # Of unit vectors. Summed in float64, so that rounding does not reorder pairs of nearly equal cosine.
    cosines = np.einsum("nd,nd->n", first, second, dtype=np.float64)
    gold = np.array([pair.score for pair in data.pairs])
    names = np.array([pair.pair for pair in data.pairs])
    groups = np.array([pair.group for pair in data.pairs])
    scores: list[Score] = []
    units: dict[Cell, tuple[str, ...]] = {}
    columns: dict[tuple[str, *Cell], NDArray[np.float64]] = {}
    for name in map(str, dict.fromkeys(names)):
        member = names == name
        cell = ("pairs", name, "")
        units[cell] = tuple(map(str, groups[member]))
        columns |= {("predicted", *cell): cosines[member], ("gold", *cell): gold[member]}
        for measure, function in functions.items():
            try:
                value = function(cosines[member], gold[member])
            except MetasearchError as error:
                # Of the same class, which decides the exit code; only the place is added.
                raise type(error)(f"pairs {name}: {error}") from None
            scores.append(Score(str(measure), "pairs", name, "", value, int(member.sum())))
    return Evaluation(tuple(scores), QuestionResults(units, columns, articles={}))
