"""Looks for the translation of each text among those of its language (Tatoeba as LASER and XTREME score it).

Both directions are scored, since papers differ or do not say: XTREME takes `xx-en` alone. `both` is their mean.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from metasearch.data.translation import TranslationData
from metasearch.encoders.vectors import EncodesTexts
from metasearch.errors import DataError, MetasearchError
from metasearch.evaluation.metrics.base import function_of
from metasearch.evaluation.scores import Evaluation, Score
from metasearch.runs.questions import Cell, QuestionResults
from metasearch.spec.measure import Measure, Pool


def evaluate_translation(encoder: EncodesTexts, data: TranslationData, measures: Sequence[Measure]) -> Evaluation:
    """Return the scores of every language in both directions and their mean, the default pool `both`."""
    if not data.pairs:
        raise DataError("there are no translations to evaluate on")
    functions = {measure: function_of(measure, "translation") for measure in measures}
    # The files share many of their texts in the pivot language; each is encoded once.
    pivots = {text: i for i, text in enumerate(dict.fromkeys(pair.source for pair in data.pairs))}
    pivot_vectors = encoder.encode(list(pivots), "text")
    scores: list[Score] = []
    units: dict[Cell, tuple[str, ...]] = {}
    columns: dict[tuple[str, *Cell], NDArray[np.float64]] = {}
    for language, pairs in data.by_language.items():
        sources = pivot_vectors[[pivots[pair.source] for pair in pairs]]
        targets = encoder.encode([pair.target for pair in pairs], "text")
        for measure, function in functions.items():
            try:
                # `xx-en` asks with the translations and searches the pivot texts; `en-xx` is the reverse.
                into, out = function(targets, sources), function(sources, targets)
            except MetasearchError as error:
                raise type(error)(f"language {language}: {error}") from None
            directions: list[tuple[Pool, str, NDArray[np.float64]]] = [
                ("both", "", (into + out) / 2),
                ("xx-en", pairs[0].languages[0], into),
                ("en-xx", language, out),
            ]
            for pool, candidates, values in directions:
                # The languages share most of their texts in the pivot language, and are resampled together by it.
                units[pool, language, candidates] = tuple(pair.source for pair in pairs)
                columns[str(measure), pool, language, candidates] = values
                scores.append(Score(str(measure), pool, language, candidates, float(values.mean()), len(values)))
    return Evaluation(tuple(scores), QuestionResults(units, columns, articles={}), data.named)
