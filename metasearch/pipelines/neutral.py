"""The projection that removes language bias: as stage `neutralise` of a run, and as `metasearch neutralise`."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.compress.output import claim, whole
from metasearch.config.postprocessing import NeutralSettings
from metasearch.config.recipe import Recipe
from metasearch.data.benchmark import Benchmark
from metasearch.data.texts_by_language import Tagged, tagged_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import NeutralMap, append, check, estimate, is_neutral, require_none
from metasearch.encoders.protocols import TextEncoder, report_progress
from metasearch.errors import ConfigError
from metasearch.evaluation.study.bias import DEPTH, BiasFigures, measure_ranking_bias
from metasearch.pipelines.cards import neutral_card
from metasearch.pipelines.publish import CARD
from metasearch.pipelines.run import Row
from metasearch.pipelines.scorer import Scorer, with_lengths
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.markdown import by_language, markdown, percent

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
    log_projection(neutral, benchmark, settings)


def log_projection(neutral: NeutralMap, benchmark: Benchmark, settings: NeutralSettings) -> None:
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


# `metasearch neutralise`: write an encoder without language bias, and measure the effect.


BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class NeutraliseResult:
    """What `neutralise_encoder` did.

    Attributes:
        neutral: the projection.
        counts: language → texts in the estimate.
        removed: share of the variance of these texts' vectors in the removed directions.
        rows: scores before and after; `learner` says which.
        bias: task → language bias before and after, of retrieval tasks.
        correlation: task → rank correlation of translated questions before and after, if a task has some.
        outside: task → its languages that are not in the estimate.
    """

    neutral: NeutralMap
    counts: Mapping[str, int]
    removed: float
    rows: Sequence[Row]
    bias: Mapping[str, tuple[float, float]]
    correlation: Mapping[str, tuple[float, float]]
    outside: Mapping[str, tuple[str, ...]]

    def tree(self) -> dict[str, Any]:
        """Return everything as JSON."""
        bias, correlation = (
            {task: {BEFORE: before, AFTER: after} for task, (before, after) in found.items()}
            for found in (self.bias, self.correlation)
        )
        facts = {"directions": len(self.neutral.directions), "texts": dict(self.counts)}
        outside = {task: list(languages) for task, languages in self.outside.items() if languages}
        ranked = {"bias": bias, "rank_correlation": correlation}
        return {**facts, "removed": self.removed, **ranked, "outside": outside, "results": list(self.rows)}

    def report(self) -> str:
        """Return it in Markdown."""
        shown = ", ".join(f"{language} {count}" for language, count in self.counts.items())
        facts = [
            ["directions taken out", str(len(self.neutral.directions))],
            ["share of variance in them", f"{percent(self.removed)} %"],
            ["texts in the estimate", shown],
        ]
        parts = [markdown(["map", ""], facts, left=2)]
        for task in dict.fromkeys(row["task"] for row in self.rows):
            rows = [row for row in self.rows if row["task"] == task]
            parts += [f"{task}:", by_language(rows, rows[0]["split"])]
            if task in self.bias:
                before, after = (percent(value) for value in self.bias[task])
                parts.append(
                    f"language bias of the top {DEPTH} (0 none, 100 as much as there can be): {before} → {after}"
                )
            if task in self.correlation:
                before, after = (percent(value) for value in self.correlation[task])
                parts.append(f"rank correlation of translated questions, top {DEPTH} (100 alike): {before} → {after}")
            if outside := self.outside[task]:
                parts.append(f"not in the estimate: {', '.join(outside)}; such languages profit less")
        return "\n\n".join(parts) + "\n"


def neutralise_encoder(
    encoder: Encoder,
    texts: Tagged,
    settings: NeutralSettings,
    folder: Path,
    tasks: Sequence[tuple[Benchmark, str]] = (),
    callback: Callback = SILENT,
) -> NeutraliseResult:
    """Write an encoder without language bias, which changes in place, to a new folder; score it before and after."""
    claim(folder)
    require_none(encoder)
    counts = {language: len(found) for language, found in texts.items()}
    check(counts, settings.rank, encoder.dimension())
    vectors = vectors_of(encoder, texts, callback)
    neutral = estimate(vectors, settings.rank)
    rows, ranked = _scores(encoder, tasks, BEFORE, callback)
    append(encoder, neutral)
    more, ranked_after = _scores(encoder, tasks, AFTER, callback)
    outside = {b.task.task: tuple(sorted(b.part(part).languages - set(counts))) for b, part in tasks}
    bias = {task: (found.bias, ranked_after[task].bias) for task, found in ranked.items()}
    correlation = {
        task: (found.correlation, ranked_after[task].correlation)
        for task, found in ranked.items()
        if not isnan(found.correlation)
    }
    done = NeutraliseResult(neutral, counts, neutral.removed(vectors), [*rows, *more], bias, correlation, outside)
    facts = {"directions taken out": str(len(neutral.directions)), "texts in the estimate": str(sum(counts.values()))}
    card = neutral_card(encoder, facts, counts, done.rows, [benchmark for benchmark, _ in tasks], done.report())
    tree = json.dumps(done.tree(), ensure_ascii=False, indent=1)
    with whole(folder) as partial:
        encoder.write(partial)
        for name, text in ((CARD, card), ("neutral.json", tree)):
            (partial / name).write_text(text, encoding="utf-8")
    return done


def _scores(
    encoder: Encoder, tasks: Sequence[tuple[Benchmark, str]], when: str, callback: Callback
) -> tuple[list[Row], dict[str, BiasFigures]]:
    """Return scores on parts of tasks, and language bias for multilingual pools."""
    rows: list[Row] = []
    ranked: dict[str, BiasFigures] = {}
    for benchmark, part in tasks:
        found = Scorer(callback=callback).score(when, with_lengths(encoder, benchmark), benchmark, part)
        rows += found.rows
        if found.questions.ranking:
            ranked[benchmark.task.task] = measure_ranking_bias(found.questions.ranking)
    return rows, ranked
