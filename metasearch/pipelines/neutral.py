"""Stage `neutralise` in a run: the projection that removes language bias, estimated from the task's train part."""

import logging
from functools import partial

import numpy as np
from numpy.typing import NDArray

from metasearch.config.postprocessing import NeutralSettings
from metasearch.config.recipe import Recipe
from metasearch.data.benchmark import Benchmark
from metasearch.data.texts_by_language import Tagged, tagged_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import NeutralMap, append, check, estimate, is_neutral, require_none
from metasearch.encoders.protocols import TextEncoder, report_progress
from metasearch.errors import ConfigError
from metasearch.runs.callbacks import SILENT, Callback

log = logging.getLogger(__name__)


def vectors_of(
    encoder: Encoder, texts: Tagged, callback: Callback = SILENT, through: TextEncoder | None = None
) -> dict[str, NDArray[np.float32]]:
    """Return language → the unit vectors of its texts `(n, D)`, each encoded in its role.

    `through` gives the encoder's vectors in its place, such as cached ones.
    """
    vectors = {}
    for language, tagged in texts.items():
        rows: dict[int, NDArray[np.float32]] = {}
        with report_progress(encoder, partial(callback.on_encode, f"texts in {language}")):
            for role in dict.fromkeys(role for role, _ in tagged):
                places = [i for i, (own, _) in enumerate(tagged) if own == role]
                found = (through or encoder).encode([tagged[i][1] for i in places], role)
                rows.update(zip(places, found, strict=True))
        vectors[language] = np.stack([rows[i] for i in range(len(tagged))])
    return vectors


def train_map(
    encoder: Encoder,
    benchmark: Benchmark,
    settings: NeutralSettings,
    callback: Callback = SILENT,
    through: TextEncoder | None = None,
) -> NeutralMap:
    """Return a projection for an unchanged encoder, estimated from a benchmark's train part, without labels.

    `through` is as in `vectors_of`.
    """
    texts = train_texts(benchmark, settings)
    return estimate(vectors_of(encoder, texts, callback, through), settings.rank)


def train_texts(benchmark: Benchmark, settings: NeutralSettings) -> Tagged:
    """Return a benchmark's train texts without labels; `ConfigError` or `DataError` if they cannot give an estimate."""
    texts = tagged_of(benchmark.part("train"), settings.texts, settings.languages)
    check({language: len(found) for language, found in texts.items()}, settings.rank)
    return texts


def neutralise(encoder: Encoder, benchmark: Benchmark, settings: NeutralSettings, callback: Callback = SILENT) -> None:
    """Append the projection of `train_map` to an encoder; raises as `train_map`, and `EncoderError` if it has one."""
    require_none(encoder)
    neutral = train_map(encoder, benchmark, settings, callback)
    append(encoder, neutral)
    say(neutral, benchmark, settings)


def say(neutral: NeutralMap, benchmark: Benchmark, settings: NeutralSettings) -> None:
    """Log the data behind a projection of `train_map`."""
    count = sum(map(len, train_texts(benchmark, settings).values()))
    log.info(
        f"neutralise: {len(neutral.directions)} directions from {count} texts of the training split in "
        f"{', '.join(neutral.languages)}"
    )


def require_map(encoder: Encoder, recipe: Recipe) -> Encoder:
    """Return an encoder; `ConfigError` where a recipe trains through a map and the encoder has none."""
    if recipe.neutralise and recipe.neutralise.when == "before" and not is_neutral(encoder):
        raise ConfigError(
            f"recipe '{recipe.recipe}' trains through a projection, which the encoder does not have; call "
            "metasearch.neutralise(encoder, benchmark, recipe.neutralise) before make_learner"
        )
    return encoder
