"""The projection that removes language bias: as stage `neutralise` of a run, and as `metasearch neutralise`."""

import json
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config.projection import ProjectionSettings
from metasearch.data.benchmark import Benchmark
from metasearch.data.texts import Tagged, tagged_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.maps import Projection, check_counts, estimate
from metasearch.encoders.neutral import append, require_none
from metasearch.encoders.protocols import TextEncoder, report_progress
from metasearch.io import atomic_write
from metasearch.io.output import claim, whole
from metasearch.pipelines.cards import CARD, Dataset, find_base, make_card
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


def train_projection(
    encoder: Encoder,
    benchmark: Benchmark,
    settings: ProjectionSettings,
    callback: Callback = SILENT,
    through: TextEncoder | None = None,
) -> Projection:
    """Return a projection for an unchanged encoder, estimated from a benchmark's train part, without labels.

    `through` is as in `vectors_of`.
    """
    texts = train_texts(benchmark, settings)
    return estimate(vectors_of(encoder, texts, callback, through), settings.rank)


def train_texts(benchmark: Benchmark, settings: ProjectionSettings) -> Tagged:
    """Return a benchmark's train texts without labels; `ConfigError` or `DataError` if they cannot give an estimate."""
    texts = tagged_of(benchmark.part("train"), settings.texts, settings.languages)
    check_counts({language: len(found) for language, found in texts.items()}, settings.rank)
    return texts


def neutralise(
    encoder: Encoder, benchmark: Benchmark, settings: ProjectionSettings, callback: Callback = SILENT
) -> None:
    """Append the projection of `train_projection`; raises its errors, and `EncoderError` if there is one already."""
    require_none(encoder)
    neutral = train_projection(encoder, benchmark, settings, callback)
    append(encoder, neutral)
    log_projection(neutral, benchmark, settings)


def log_projection(neutral: Projection, benchmark: Benchmark, settings: ProjectionSettings) -> None:
    """Log the data behind a projection of `train_projection`."""
    count = sum(map(len, train_texts(benchmark, settings).values()))
    log.info(
        f"neutralise: {len(neutral.directions)} directions from {count} texts of the training split in "
        f"{', '.join(neutral.languages)}"
    )


def neutralise_encoder(
    encoder: Encoder, texts: Tagged, settings: ProjectionSettings, folder: Path, callback: Callback = SILENT
) -> dict[str, Any]:
    """Write an encoder without language bias, which changes in place, to a new folder: `metasearch neutralise`.

    Returns `directions`, the number removed, and `texts`, language → texts in the estimate.
    """
    claim(folder)
    require_none(encoder)
    counts = {language: len(found) for language, found in texts.items()}
    check_counts(counts, settings.rank, encoder.dimension())
    neutral = estimate(vectors_of(encoder, texts, callback), settings.rank)
    append(encoder, neutral)
    made = {"directions": len(neutral.directions), "texts": counts}
    with whole(folder) as partial:
        encoder.write(partial)
        atomic_write(partial / CARD, _card(encoder, len(neutral.directions), counts))
        atomic_write(partial / "neutral.json", json.dumps(made, ensure_ascii=False, indent=1))
    return made


def _card(encoder: Encoder, directions: int, counts: Mapping[str, int]) -> str:
    """Return the card for an encoder of `metasearch neutralise`; `counts` has the number of texts by language."""
    source = find_base("base", encoder.name)
    return make_card(
        encoder,
        (source,),
        [],
        command="neutralise",
        title=f"{source.short} without the language in its vectors",
        summary=f"The sentence encoder {source.name} with a linear module at its end, made by metasearch. The module "
        "removes language identity from the vectors, so that a search prefers no answer for its language.",
        data=[Dataset("estimated from", "texts", f"{count} texts in {language}") for language, count in counts.items()],
        languages=tuple(counts),
        facts={"directions removed": str(directions), "texts in the estimate": str(sum(counts.values()))},
        tags=("language-neutral",),
    )
