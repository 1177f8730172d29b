"""The cells of `alignment`: which variants are trained, on what, at which rates and for how many steps."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from statistics import fmean
from typing import Any

from benchmarks.common.rows import RESULTS, Row, by_keys
from metasearch.config.library import Library
from metasearch.config.recipe import Recipe
from metasearch.pipelines.factory import resolved

ROWS = RESULTS / "alignment.jsonl"
SHARED = ("neutralise.when=before", "neutralise.texts=150", "budget.meta_batch=2", "budget.patience=0")
CONSTANT = ("outer.warmup=0", "outer.decay=none")
LOSSES = {"infonce": (), "margin1": ("loss.name=triplet", "loss.temperature=null", "loss.margin=1.0")}
RATES = {"infonce": (2e-5,), "margin1": (1e-5, 2e-5, 5e-5)}
GRID = (3e-4, 1e-3, 3e-3)
"""Rates of a projection."""
GRID_STEPS, LONGER = 16, 64
"""Steps of the grid, and of the part of it that is beyond its edge: InfoNCE is best at the longest and slowest."""
LONGER_GRID = (1e-4, 3e-4)
_TERMS, _FALLS = ("maml-align-e5", "learner=maml-align-terms"), ("maml-e5", "learner=maml-fall")
"""Recipes with the plug-in learners of `benchmarks.learners`."""
_SCORES, _GAP, _FALL = "options.distil=scores", "options.kd_share=0.3", "options.inner_fall=0.3"
_SECOND = "options.first_order=false"
VARIANTS = {
    "fine-tune": ("fine-tune-e5",),
    "maml": ("maml-e5",),
    "align": ("maml-align-e5",),
    "align kd=0": ("maml-align-e5", "options.kd_weight=0"),
    "query-only": ("maml-e5", "options.inner_lr=1e-12"),  # fine-tuning on the query sets alone
    "maml fall=0.1": (*_FALLS, "options.inner_fall=0.1"),
    "maml fall=0.3": (*_FALLS, _FALL),
    "align fall=0.3": (*_TERMS, _FALL),
    "align gap share=0.3": (*_TERMS, _GAP),
    "align gap share=0.3 fall=0.3": (*_TERMS, _GAP, _FALL),
    "align scores share=0.3": (*_TERMS, _SCORES, _GAP),
    "align scores share=0.3 fall=0.1": (*_TERMS, _SCORES, _GAP, "options.inner_fall=0.1"),
    "align scores share=0.3 fall=0.3": (*_TERMS, _SCORES, _GAP, _FALL),
    "align scores share=1 fall=0.3": (*_TERMS, _SCORES, "options.kd_share=1", _FALL),
    "align embeddings share=0.3 fall=0.3": (*_TERMS, "options.distil=embeddings", _GAP, _FALL),
    "align gap share=0.3 fall=0.3 second order": (*_TERMS, _GAP, _FALL, _SECOND),
}
LEARNERS = ("fine-tune", "maml", "align")
FAIR = (*LEARNERS, "align kd=0", "query-only")
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
PARTS = {
    "all": ("curves", "variants", "main", "labels"),
    "projection": ("grid", "main", "labels", "forms", "forms-labels", "figures", "longer-grid", "longer"),
}


@dataclass(frozen=True)
class Cell:
    """One training.

    Attributes:
        trained: `all` weights, or the `projection` alone.
        steps: outer steps; with all weights on all labels the last quarter of the episodes is of meta-valid.
        dev: train on meta-train alone, and score dev after 1, 2, 4 … steps.
    """

    variant: str
    loss: str
    rate: float
    steps: int
    fold: int = 0
    seed: int = 0
    labels: int | None = None
    dev: bool = False
    encoder: str = "e5"
    trained: str = "all"
    queries: str = "random"
    negatives: str = "random"

    @property
    def key(self) -> tuple[object, ...]:
        """What its row is known by."""
        return tuple(asdict(self).values())

    @property
    def settings(self) -> tuple[str, ...]:
        """Settings over the recipe, with two episodes a step."""
        held = 0 if self.dev or self.labels or self.trained == "projection" else self.steps // 2
        size = min(16, self.labels or 16)
        drawn = (f"episodes.queries={self.queries}", f"episodes.negatives={self.negatives}")
        other = drawn if drawn != ("episodes.queries=random", "episodes.negatives=random") else ()
        sets = (f"episodes.k={size}", f"episodes.q={size}", f"budget.eval_every={int(self.dev)}", *other)
        budget = (f"outer.lr={self.rate}", f"budget.meta_train={2 * self.steps - held}", f"budget.meta_valid={held}")
        few = (f"labels={self.labels}",) if self.labels else ()
        return (*SHARED, *CONSTANT, *sets, *budget, *few, *LOSSES[self.loss], *VARIANTS[self.variant][1:])

    @property
    def recipe(self) -> Recipe:
        """The recipe with these settings."""
        name = VARIANTS[self.variant][0]
        return resolved(Library().choose_recipe("mono-bi-multi", self.encoder, None, name, self.settings))


key_of = by_keys(*Cell.__dataclass_fields__, scores="dev")
"""Identity of a row, as `Cell.key`."""


def cells(part: str) -> Iterator[Cell]:
    """Yield the cells of a part that trains all weights of `e5`, one seed after the other."""
    if part == "curves":
        for learner, rate in product(LEARNERS, RATES["margin1"]):
            yield Cell(learner, "margin1", rate, 64, dev=True)
    elif part == "variants":
        for variant, loss in product(list(VARIANTS)[5:15], LOSSES):
            yield Cell(variant, loss, 2e-5, 64, dev=True)
    elif part == "main":
        for seed, fold, variant in product(range(3), range(5), FAIR):
            yield Cell(variant, "infonce", 2e-5, 64, fold, seed)
            yield Cell(variant, "margin1", 1e-5, 16, fold, seed)
    else:
        for labels, seed, fold, learner in product((8, 32, 128), range(3), range(5), LEARNERS):
            yield Cell(learner, "infonce", 2e-5, 16, fold, seed, labels)


def projection_cells(part: str, encoder: str, rows: Sequence[Row]) -> Iterator[Cell]:
    """Yield the cells of a part that trains the projection alone; all but the grids need the rows of these."""
    own: dict[str, Any] = {"encoder": encoder, "trained": "projection"}
    if part == "grid":
        for variant, loss, rate in product((*FAIR, *FORMS), LOSSES, GRID):
            yield Cell(variant, loss, rate, GRID_STEPS, dev=True, **own)
        return
    if part == "longer-grid":
        for rate, variant in product(LONGER_GRID, LEARNERS):
            yield Cell(variant, "infonce", rate, LONGER, dev=True, **own)
        return
    best = best_points(rows, encoder, LONGER if part == "longer" else GRID_STEPS)
    chosen = {"main": FAIR, "forms": FORMS, "forms-labels": FORMS[1:4], "figures": LEARNERS[1:2]}
    labels = {"labels": (8, 32, 128), "forms-labels": (8, 32)}.get(part, (None,))
    drawn = EPISODES if part == "figures" else EPISODES[:1]
    losses = {"figures": ("margin1",), "longer": ("infonce",)}.get(part, tuple(LOSSES))
    for count, (queries, negatives), variant, loss in product(labels, drawn, chosen.get(part, LEARNERS), losses):
        rate, steps = best[variant, loss]
        for seed, fold in product(range(3), range(5)):
            yield Cell(variant, loss, rate, steps, fold, seed, count, queries=queries, negatives=negatives, **own)


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
