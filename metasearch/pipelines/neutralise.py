"""`metasearch neutralise`: remove language bias from an encoder, and measure the effect."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from metasearch.compress.output import claim, whole
from metasearch.config.postprocessing import NeutralSettings
from metasearch.data.benchmark import Benchmark
from metasearch.data.texts_by_language import Tagged
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import NeutralMap, append, check, estimate, require_none
from metasearch.evaluation.study.bias import DEPTH, BiasFigures, measure_ranking_bias
from metasearch.pipelines.cards import neutral_card
from metasearch.pipelines.neutral import vectors_of
from metasearch.pipelines.publish import CARD
from metasearch.pipelines.run import Row
from metasearch.pipelines.scorer import Scorer, with_lengths
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.markdown import by_language, markdown, percent

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
            ranked[benchmark.task.task] = measure_ranking_bias(found.questions.ranking).figures
    return rows, ranked
