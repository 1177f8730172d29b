"""Tables of `results/alignment.jsonl`: curves on dev, scores on test with intervals, labels, larger forms, episodes.

The script of the rows is in revision f20bdb5d (`benchmarks/README.md`, "Answered questions"). A row is a training of an
encoder through a projection in mode `mono-bi-multi` of `lareqa-sentences`, of all weights or the projection alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from statistics import fmean

import numpy as np

from benchmarks.common.rows import Row
from metasearch.evaluation.statistics.paired import student
from metasearch.runs.markdown import markdown

VARIANTS = (
    "fine-tune", "maml", "align", "align kd=0", "query-only", "maml fall=0.1", "maml fall=0.3", "align fall=0.3",
    "align gap share=0.3", "align gap share=0.3 fall=0.3", "align scores share=0.3",
    "align scores share=0.3 fall=0.1", "align scores share=0.3 fall=0.3", "align scores share=1 fall=0.3",
    "align embeddings share=0.3 fall=0.3", "align gap share=0.3 fall=0.3 second order",
)  # fmt: skip
"""Learners; `query-only` is fine-tuning on the query sets alone."""
LEARNERS, FAIR = VARIANTS[:3], VARIANTS[:5]
FORMS = (
    "maml fall=0.3",
    "align gap share=0.3 fall=0.3",
    "align scores share=0.3 fall=0.3",
    "align embeddings share=0.3 fall=0.3",
    "align gap share=0.3 fall=0.3 second order",
)
EPISODES = (
    ("random", "random"),
    ("similar", "random"),
    ("random", "easy"),
    ("random", "semi-hard"),
    ("random", "hard"),
)
"""Queries and negatives of the paper's Figures 5 and 6."""
GRID_STEPS, LONGER = 16, 64
"""Steps of the grid of rates, and of the part of it that is beyond its edge."""
STEPS = ("1", "2", "4", "8", "16", "32", "64")
NAMES = {"infonce": "InfoNCE", "margin1": "margin 1.0"}
GROUPS = (*((loss, GRID_STEPS) for loss in NAMES), ("infonce", LONGER))
"""Losses, and the longest training that counts."""
Folds = Mapping[int, float]
"""Fold → 100 × the mean over its seeds."""


def curves_table(rows: Sequence[Row]) -> str:
    """Return dev scores by rate, number of steps and learner, with margin 1.0 and all weights trained."""
    whole = [row for row in rows if row["loss"] == "margin1" and row["trained"] == "all"]
    found = {(row["rate"], row["variant"]): row["dev"] for row in whole if set(STEPS) <= row["dev"].keys()}
    lines = [
        [f"{rate:g}", step, *(f"{100 * found[rate, learner][step]:.2f}" for learner in LEARNERS)]
        for rate in sorted({rate for rate, _ in found})
        for step in ("0", *STEPS)
    ]
    return markdown(["rate", "steps", *LEARNERS], lines)


def variants_table(rows: Sequence[Row]) -> str:
    """Return the share of the distillation term and the dev scores of each variant at 2e-5, all weights trained."""
    lines = []
    for loss, variant in product(NAMES, VARIANTS):
        whole = [row for row in matching(rows, loss=loss, variant=variant, rate=2e-5) if row["trained"] == "all"]
        for row in whole:
            if "64" in row["dev"]:
                share = row.get("kd_share")
                shown = f"{100 * share:.2g} %" if share is not None else ""
                lines.append([variant, NAMES[loss], shown, *(f"{100 * row['dev'][step]:.2f}" for step in ("16", "64"))])
    return markdown(["variant", "loss", "λ L_kd / L_task", "16 steps", "64 steps"], lines, left=2)


def main_table(rows: Sequence[Row]) -> str:
    """Return test scores of learners that trained all weights, and their differences from fine-tuning."""
    chosen = [row for row in rows if row["test"] and not row["dev"] and not row["labels"] and row["trained"] == "all"]
    lines = []
    for loss, variant in product(NAMES, VARIANTS):
        scores = {name: by_fold(matching(chosen, loss=loss, variant=name)) for name in ("fine-tune", variant)}
        if len(scores[variant]) == len(scores["fine-tune"]) == 5:
            less = "" if variant == "fine-tune" else difference(scores[variant], scores["fine-tune"])
            lines.append([variant, loss, f"{fmean(scores[variant].values()):.2f}", less])
    return markdown(["map@20, five folds, three seeds", "loss", "mean", "Δ vs fine-tune [95 % CI]"], lines, left=2)


def grid_table(rows: Sequence[Row], encoder: str) -> str:
    """Return the best point of each variant on dev of fold 0, with the projection alone trained."""
    lines = []
    for loss, longest in GROUPS:
        best = best_points(rows, encoder, longest)
        own = matching(rows, encoder=encoder, trained="projection", loss=loss)
        dev = [row for row in own if row["dev"] and row["steps"] <= longest]
        for variant in in_grid(rows, encoder, loss, longest):
            rate, steps = best[variant, loss]
            at = [row for row in matching(dev, variant=variant, rate=rate) if str(steps) in row["dev"]]
            shares = [row["kd_share"] for row in at if row["kd_share"] is not None]
            share = f"{100 * fmean(shares):.2g} %" if shares else ""
            score = f"{100 * fmean(row['dev'][str(steps)] for row in at):.2f}"
            lines.append([variant, named(loss, longest), f"{rate:g}", str(steps), score, share])
    return markdown(["dev of fold 0", "loss", "rate", "steps", "map@20", "λ L_kd / L_task"], lines, left=2)


def fair_table(rows: Sequence[Row], encoder: str) -> str:
    """Return test scores with the projection alone trained, and differences from it untrained, fine-tuning and MAML."""
    lines = []
    for loss, longest in GROUPS:
        own = projections(rows, encoder, longest)
        against = {"": untrained(own), **{name: _learner(own, name, loss) for name in LEARNERS[:2]}}
        for variant in [name for name in in_grid(rows, encoder, loss, longest) if name in FAIR]:
            found = _learner(own, variant, loss)
            if len(found) == 5:
                cells = ["" if name == variant else difference(found, other) for name, other in against.items()]
                lines.append([variant, named(loss, longest), f"{fmean(found.values()):.2f}", *cells])
    heads = ["map@20", "Δ vs untrained", "Δ vs fine-tune", "Δ vs maml"]
    return markdown(["test, five folds, three seeds", "loss", *heads], lines, left=2)


def labels_table(rows: Sequence[Row], encoder: str, variants: Iterable[str] = LEARNERS) -> str:
    """Return test scores with few labels, and differences from the untrained projection, fine-tuning and MAML."""
    own = projections(rows, encoder)
    lines = []
    for labels, loss, variant in product((8, 32, 128), NAMES, variants):
        found = _learner(own, variant, loss, labels)
        against = {"": untrained(own), **{name: _learner(own, name, loss, labels) for name in LEARNERS[:2]}}
        if len(found) == 5:
            cells = ["" if name == variant else difference(found, other) for name, other in against.items()]
            lines.append([str(labels), NAMES[loss], variant, *cells])
    heads = ["Δ vs untrained", "Δ vs fine-tune", "Δ vs maml"]
    return markdown(["labels", "loss", "variant", *heads], lines, left=3)


def forms_table(rows: Sequence[Row], encoder: str) -> str:
    """Return differences of the larger forms from MAML and fine-tuning, on all labels and on few."""
    own = projections(rows, encoder)
    lines = []
    for loss, variant, labels in product(NAMES, FORMS, (None, 32, 8)):
        found = _learner(own, variant, loss, labels)
        against = [_learner(own, name, loss, labels) for name in ("fine-tune", "maml")]
        if len(found) == 5 and all(len(other) == 5 for other in against):
            score = f"{fmean(found.values()):.2f}"
            lines.append([variant, NAMES[loss], str(labels or "all"), score, *(difference(found, o) for o in against)])
    return markdown(["variant", "loss", "labels", "map@20", "Δ vs fine-tune", "Δ vs maml"], lines, left=3)


def episodes_table(rows: Sequence[Row], encoder: str) -> str:
    """Return what other queries and negatives change for MAML (the paper's Figures 5 and 6), with margin 1.0."""
    own = matching(projections(rows, encoder), loss="margin1", variant="maml", labels=None)
    by_episodes = {drawn: by_fold(matching(own, queries=drawn[0], negatives=drawn[1])) for drawn in EPISODES}
    lines = []
    for drawn, found in by_episodes.items():
        if len(found) == 5:
            less = "" if drawn == EPISODES[0] else difference(found, by_episodes[EPISODES[0]])
            lines.append([*drawn, f"{fmean(found.values()):.2f}", difference(found, untrained(own)), less])
    heads = ["maml, map@20", "Δ vs untrained", "Δ vs random, random"]
    return markdown(["queries", "negatives", *heads], lines, left=2)


def in_grid(rows: Sequence[Row], encoder: str, loss: str, longest: int) -> list[str]:
    """Return the variants whose projection has dev scores of trainings with so many steps."""
    own = matching(rows, encoder=encoder, trained="projection", loss=loss, steps=longest)
    known = {row["variant"] for row in own if row["dev"]}
    return [name for name in (*FAIR, *FORMS) if name in known]


def named(loss: str, longest: int) -> str:
    """Return a loss in words, with the steps where they are beyond the grid."""
    return NAMES[loss] if longest == GRID_STEPS else f"{NAMES[loss]}, up to {longest} steps"


def best_points(
    rows: Sequence[Row], encoder: str, longest: int = GRID_STEPS
) -> dict[tuple[str, str], tuple[float, int]]:
    """Return variant, loss → the rate and steps with the best dev score of a projection, the mean of its seeds.

    Args:
        rows: rows of the study.
        encoder: whose projection was trained.
        longest: steps of the longest training that counts.
    """
    scores: dict[tuple[str, str], dict[tuple[float, int], list[float]]] = {}
    for row in rows:
        own = (row["encoder"], row["trained"]) == (encoder, "projection")
        if own and row["dev"] and row["steps"] <= longest:
            points = scores.setdefault((row["variant"], row["loss"]), {})
            for step, score in row["dev"].items():
                if step != "0":
                    points.setdefault((row["rate"], int(step)), []).append(score)
    return {name: max(points, key=lambda point: fmean(points[point])) for name, points in scores.items()}


def projections(rows: Sequence[Row], encoder: str, longest: int = GRID_STEPS) -> list[Row]:
    """Return the rows with test scores of an encoder whose projection alone was trained, at the best points.

    Args:
        rows: rows of the study.
        encoder: whose projection was trained.
        longest: steps of the longest training that counts in the choice of the best points.
    """
    best = best_points(rows, encoder, longest)
    own = [row for row in matching(rows, encoder=encoder, trained="projection") if row["test"]]
    return [row for row in own if best.get((row["variant"], row["loss"])) == (row["rate"], row["steps"])]


def matching(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """Return the rows with these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def by_fold(rows: Sequence[Row], scores: str = "test") -> dict[int, float]:
    """Return fold → 100 × the mean over seeds, of folds that have three."""
    found: dict[int, list[float]] = {}
    for row in sorted(rows, key=lambda row: row["fold"]):
        found.setdefault(row["fold"], []).append(100 * row[scores]["mean"])
    return {fold: fmean(values) for fold, values in found.items() if len(values) >= 3}


def untrained(rows: Sequence[Row]) -> dict[int, float]:
    """Return fold → 100 × the score before training."""
    return {row["fold"]: 100 * row["untrained"]["mean"] for row in sorted(rows, key=lambda row: row["fold"])}


def difference(one: Folds, other: Folds) -> str:
    """Return the mean difference of the folds that both have, with its interval over folds; empty without two."""
    folds = sorted(one.keys() & other.keys())
    if len(folds) < 2:
        return ""
    test = student(np.array([one[fold] - other[fold] for fold in folds]), largest=100.0)
    return f"{test.mean:+.2f} [{test.low:+.2f}, {test.high:+.2f}]"


def _learner(rows: Sequence[Row], variant: str, loss: str, labels: int | None = None) -> dict[int, float]:
    """Return the scores of a variant by fold, on random queries and negatives."""
    wanted = {"variant": variant, "loss": loss, "labels": labels, "queries": "random", "negatives": "random"}
    return by_fold(matching(rows, **wanted))
