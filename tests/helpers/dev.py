"""The dev score of a stage on a few pairs, with an untrained encoder."""

import copy
from functools import cache

import numpy as np

from metasearch.algorithms.distill import Distill
from metasearch.config.recipe import Loss
from metasearch.config.roles import MaxLength
from metasearch.data.records import ScoredPair, Translation
from metasearch.encoders.builtin import tiny
from metasearch.episodes.batches import Batches
from metasearch.pipelines.distill.stage import StageEvaluator

# An untrained encoder finds a translation that shares words with its source, and misses most of the others.
GERMAN = [
    ("the house is old", "the house is alt"),
    ("a dog runs", "ein Hund läuft"),
    ("where is the key", "wo ist der Schlüssel"),
    ("two cats sleep under the table", "zwei Katzen schlafen unter dem Tisch"),
    ("taxi", "taxi"),
]
GREEK = [("a dog runs", "ένας σκύλος τρέχει"), ("yes", "ναι"), ("radio one", "radio ένα")]
PAIRS = [*(Translation(s, t, ("en", "de")) for s, t in GERMAN), *(Translation(s, t, ("en", "el")) for s, t in GREEK)]
SCORED = [
    *(
        ScoredPair("en-en", ("en", "en"), a, b, score, f"row {i}")
        for i, (a, b, score) in enumerate(
            [("a dog", "a dog runs", 0.9), ("a cat", "the key", 0.1), ("yes", "no", 0.3), ("one two", "two one", 0.7)]
        )
    ),
    *(
        ScoredPair("de-en", ("de", "en"), a, b, score, f"row {i}")
        for i, (a, b, score) in enumerate([("ein Hund", "a dog", 0.8), ("ja", "the key", 0.2), ("taxi", "taxi", 1.0)])
    ),
]
KINDS = {"en-en": SCORED[:4], "de-en": SCORED[4:]}


@cache
def untrained(seed=0):
    """Return the built-in encoder, which nothing may change."""
    return tiny.build(MaxLength(text=12), seed=seed)


def fresh():
    """Return an encoder that may be changed."""
    return copy.deepcopy(untrained())


class Given:
    """Targets that are another encoder's vectors; remembers which texts it was asked for."""

    def __init__(self, output):
        self.encoder, self.output, self.asked = untrained(1), output, set()

    def vectors(self, texts):
        self.asked.update(texts)
        return self.encoder.encode(texts, "text", self.output)


def dev(learner, pairs, monitor, output="pooled", size=3):
    batches = Batches(pairs, [1] * len(pairs), size, seed=0, name="dev")
    return StageEvaluator(learner, pairs, batches, monitor, output)


def distilled(encoder, output="pooled", **options):
    return Distill(encoder, Loss(), Distill.Options(output=output, **options), Given(output))


def cosine(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))
