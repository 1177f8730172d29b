"""The projection that removes language bias: as stage `neutralise` of a run, and as `metasearch neutralise`."""

import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config.projection import ProjectionSettings
from metasearch.config.recipe import Recipe
from metasearch.data.benchmark import Benchmark
from metasearch.data.texts import Tagged, tagged_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.maps import Projection, check_counts, estimate
from metasearch.encoders.neutral import append, is_neutral, require_none
from metasearch.encoders.protocols import TextEncoder, report_progress
from metasearch.errors import ConfigError
from metasearch.evaluation.study.bias import BiasFigures, measure_ranking_bias
from metasearch.io import atomic_write
from metasearch.io.output import claim, whole
from metasearch.pipelines.cards import CARD, Dataset, Scores, describe_task, find_base, make_card
from metasearch.pipelines.scorer import Scorer, with_lengths
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.markdown import by_language, markdown, percent
from metasearch.runs.per_query_results import DEPTH
from metasearch.runs.rows import Row

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


def require_projection(encoder: Encoder, recipe: Recipe) -> Encoder:
    """Return an encoder; `ConfigError` where a recipe trains through a projection and the encoder has none."""
    if recipe.neutralise and recipe.neutralise.when == "before" and not is_neutral(encoder):
        raise ConfigError(
            f"recipe '{recipe.recipe}' trains through a projection, which the encoder does not have; call "
            "metasearch.neutralise(encoder, benchmark, recipe.neutralise) before make_learner"
        )
    return encoder


# `metasearch neutralise`: write an encoder without language bias, and measure the effect.

BEFORE, AFTER = "before", "after"
_RANKED = {
    "bias": f"language bias of the top {DEPTH} (0 none, 100 as much as there can be)",
    "rank_correlation": f"rank correlation of translated questions, top {DEPTH} (100 alike)",
}
"""Figures of retrieval tasks → their description."""


def neutralise_encoder(
    encoder: Encoder,
    texts: Tagged,
    settings: ProjectionSettings,
    folder: Path,
    tasks: Sequence[Benchmark] = (),
    callback: Callback = SILENT,
) -> dict[str, Any]:
    """Write an encoder without language bias, which changes in place, to a new folder.

    Returns the effect as JSON: `directions`, `texts` (language → texts in the estimate), `results` (rows of scores on
    the test part of `tasks`, whose `learner` is `before` or `after`), and the figures of retrieval tasks, `bias` and
    `rank_correlation`, by task.
    """
    claim(folder)
    require_none(encoder)
    counts = {language: len(found) for language, found in texts.items()}
    check_counts(counts, settings.rank, encoder.dimension())
    for benchmark in tasks:
        if outside := sorted(benchmark.split.test.languages - set(counts)):
            log.warning(
                "%s: not in the estimate: %s; such languages profit less", benchmark.task.name, ", ".join(outside)
            )
    neutral = estimate(vectors_of(encoder, texts, callback), settings.rank)
    rows, ranked = _scores(encoder, tasks, BEFORE, callback)
    append(encoder, neutral)
    more, ranked_after = _scores(encoder, tasks, AFTER, callback)
    pairs = {task: {BEFORE: found, AFTER: ranked_after[task]} for task, found in ranked.items()}
    bias = {task: {when: found.bias for when, found in pair.items()} for task, pair in pairs.items()}
    correlation = {
        task: {when: found.correlation for when, found in pair.items()}
        for task, pair in pairs.items()
        if not isnan(pair[BEFORE].correlation)  # without translated questions
    }
    effect = {"directions": len(neutral.directions), "texts": counts, "bias": bias, "rank_correlation": correlation}
    effect["results"] = [*rows, *more]
    said = {"directions removed": str(len(neutral.directions)), "texts in the estimate": str(sum(counts.values()))}
    card = _card(encoder, said, counts, [*rows, *more], tasks, describe_effect(effect))
    with whole(folder) as partial:
        encoder.write(partial)
        atomic_write(partial / CARD, card)
        atomic_write(partial / "neutral.json", json.dumps(effect, ensure_ascii=False, indent=1))
    return effect


def describe_effect(effect: Mapping[str, Any]) -> str:
    """Return what `neutralise_encoder` returned in Markdown."""
    texts = ", ".join(f"{language} {count}" for language, count in effect["texts"].items())
    rows = [["directions removed", str(effect["directions"])], ["texts in the estimate", texts]]
    parts = [markdown(["projection", ""], rows, left=2)]
    for task in dict.fromkeys(row["task"] for row in effect["results"]):
        parts += [f"{task}:", by_language([row for row in effect["results"] if row["task"] == task], "test")]
        for key, description in _RANKED.items():
            if found := effect[key].get(task):
                parts.append(f"{description}: {percent(found[BEFORE])} → {percent(found[AFTER])}")
    return "\n\n".join(parts) + "\n"


def _scores(
    encoder: Encoder, tasks: Sequence[Benchmark], when: str, callback: Callback
) -> tuple[list[Row], dict[str, BiasFigures]]:
    """Return test scores on tasks, and language bias for multilingual pools."""
    rows: list[Row] = []
    ranked: dict[str, BiasFigures] = {}
    for benchmark in tasks:
        found = Scorer(callback=callback).score(when, with_lengths(encoder, benchmark), benchmark, "test")
        rows += found.rows
        if found.questions.ranking:
            ranked[benchmark.task.name] = measure_ranking_bias(found.questions.ranking)
    return rows, ranked


def _card(
    encoder: Encoder, facts: Mapping[str, str], counts: Mapping[str, int], rows: Sequence[Row],
    tasks: Sequence[Benchmark], shown: str,
) -> str:  # fmt: skip
    """Return the card for an encoder of `metasearch neutralise`.

    `counts` has the number of texts in the estimate by language, `rows` scores `before` and `after` on `tasks`, and
    `shown` their tables.
    """
    source = find_base("base", encoder.name)
    data = [Dataset("estimated from", "texts", f"{count} texts in {language}") for language, count in counts.items()]
    return make_card(
        encoder,
        (source,),
        [],
        command="neutralise",
        title=f"{source.short} without the language in its vectors",
        summary=f"The sentence encoder {source.name} with a linear module at its end, made by metasearch. The module "
        "removes language identity from the vectors, so that a search prefers no answer for its language.",
        data=[*data, *(describe_task("scored on", each.task, rows) for each in tasks)],
        languages=tuple(counts),
        scores=Scores(rows, "after", "before", shown) if rows else None,
        facts=facts,
        tags=("language-neutral",),
    )
