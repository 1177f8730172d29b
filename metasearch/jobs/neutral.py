"""The stage `neutralise` of a run: the map that takes the language out of vectors, fitted on a task's train part."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from metasearch.data.benchmark import Benchmark
from metasearch.data.tagged import Tagged, tagged_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import NeutralMap, append, check, estimate, is_neutral, remove
from metasearch.errors import ConfigError
from metasearch.runs.listener import SILENT, Listener
from metasearch.spec.recipe import NeutralSettings, Recipe

log = logging.getLogger(__name__)


def vectors_of(encoder: Encoder, texts: Tagged, listener: Listener = SILENT) -> dict[str, NDArray[np.float32]]:
    """Return language → the unit vectors of its texts `(n, D)`, each encoded in its role."""
    vectors = {}
    for language, tagged in texts.items():
        rows: dict[int, NDArray[np.float32]] = {}
        encoder.on_progress = lambda done, total, what=f"texts in {language}": listener.on_encode(what, done, total)  # type: ignore[misc]
        try:
            for role in dict.fromkeys(role for role, _ in tagged):
                places = [i for i, (own, _) in enumerate(tagged) if own == role]
                rows.update(zip(places, encoder.encode([tagged[i][1] for i in places], role), strict=True))
        finally:
            encoder.on_progress = None
        vectors[language] = np.stack([rows[i] for i in range(len(tagged))])
    return vectors


def fitted(encoder: Encoder, texts: Tagged, settings: NeutralSettings, listener: Listener = SILENT) -> NeutralMap:
    """Return the map of an encoder as it is, estimated from texts; raises as `estimate` does."""
    return estimate(vectors_of(encoder, texts, listener), settings.method, settings.rank)


def train_texts(benchmark: Benchmark, settings: NeutralSettings) -> Tagged:
    """Return the texts of a benchmark's train part that an estimate takes, without their labels.

    Raises:
        ConfigError: all of the task is test, or the rank is out of range.
        DataError: there are too few texts or languages.
    """
    texts = tagged_of(benchmark.part("train"), settings.texts, settings.languages)
    check({language: len(found) for language, found in texts.items()}, settings.method, settings.rank)
    return texts


def neutralise(encoder: Encoder, benchmark: Benchmark, settings: NeutralSettings, listener: Listener = SILENT) -> None:
    """Put a map at the end of an encoder that is fitted on the train part of a benchmark; no label is read.

    Raises:
        DataError: the train part has too few texts or languages.
        ConfigError: the rank does not fit them.
        EncoderError: it has a map already.
    """
    append(encoder, train_map(encoder, benchmark, settings, listener))


def train_map(
    encoder: Encoder, benchmark: Benchmark, settings: NeutralSettings, listener: Listener = SILENT
) -> NeutralMap:
    """Return the map of an encoder as it is, estimated from the train part of a benchmark; raises as `neutralise`."""
    texts = train_texts(benchmark, settings)
    neutral = fitted(encoder, texts, settings, listener)
    count = sum(map(len, texts.values()))
    log.info(
        f"neutralise: {settings.method}, {len(neutral.directions)} directions from {count} texts of the train part in "
        f"{', '.join(texts)}"
    )
    return neutral


def require_map(encoder: Encoder, recipe: Recipe) -> Encoder:
    """Return an encoder; `ConfigError` where a recipe trains through a map and the encoder has none."""
    if recipe.neutralise and recipe.neutralise.when == "before" and not is_neutral(encoder):
        raise ConfigError(
            f"recipe '{recipe.recipe}' trains through a map that the encoder does not have; call "
            "metasearch.neutralise(encoder, benchmark, recipe.neutralise) before make_learner"
        )
    return encoder


@contextmanager
def as_delivered(encoder: Encoder, benchmark: Benchmark, recipe: Recipe) -> Iterator[Encoder]:
    """Give an encoder as a run of the recipe leaves it: with a map that is fitted anew, where one comes after."""
    if recipe.neutralise is None or recipe.neutralise.when == "before":
        yield encoder
        return
    texts = train_texts(benchmark, recipe.neutralise)
    append(encoder, fitted(encoder, texts, recipe.neutralise))
    try:
        yield encoder
    finally:
        remove(encoder)
