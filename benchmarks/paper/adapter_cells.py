"""The cells of `adaptation`: learners, modes and rates of query adapters on frozen vectors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product

from benchmarks.common.rows import RESULTS, Row, by_keys
from metasearch.config.library import Library
from metasearch.config.recipe import Recipe
from metasearch.pipelines.factory import resolved

ROWS = RESULTS / "adapter_learners.jsonl"
OUTER, INNER = (3e-4, 1e-3, 3e-3), (0.02, 0.2, 2.0)
"""Rates of the outer optimiser, and of inner steps, where Meta-SGD's begin. The best outer rate is looked for at the
second inner rate, then the best inner rate. A best value at an edge extends the grid."""
MOST = 6
"""Values of a rate that are tried at most."""
STEPS, BATCH, EVERY = 50, 2, 25
"""Outer steps, episodes in each, and steps between two dev scores, of which the best is kept."""
_TERMS = "learner=maml-align-terms"
"""A plug-in of `benchmarks.learners`."""
VARIANTS = {
    "fine-tune": ("fine-tune",),
    "maml": ("maml",),
    "meta-sgd": ("meta-sgd",),
    "reptile": ("reptile",),
    "align": ("maml-align",),
    "align kd=0": ("maml-align", "options.kd_weight=0"),
    "align gap share=0.3": ("maml-align", _TERMS, "options.kd_share=0.3"),
    "align scores share=0.3": ("maml-align", _TERMS, "options.distil=scores", "options.kd_share=0.3"),
    "align embeddings share=0.3": ("maml-align", _TERMS, "options.distil=embeddings", "options.kd_share=0.3"),
}
LEARNERS = tuple(VARIANTS)[:5]
"""Arms whose rates are chosen; other forms of MAML-Align take the rates of `align`."""
CHAIN = "mono-bi-multi"
"""The mode of MAML-Align, which chooses the rates of all modes."""
MODES = {
    "lareqa-sentences": ("mono-mono", "mono-bi", "mono-multi", "bi-multi", "mixt"),
    "stsb": ("mono-mono", "mono-bi"),
}
"""Modes with two links by task. `trans` is left out: without episodes from dev it equals `mono-bi`."""
FOLDS = range(5)
STOPPED = "stopped; finished cells are kept, and the same command continues"


@dataclass(frozen=True)
class Cell:
    """A training; without `test` it gives a dev score alone."""

    task: str
    variant: str
    fold: int
    outer: float
    inner: float | None
    mode: str = CHAIN
    seed: int = 0
    test: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """What its row is known by."""
        return tuple(asdict(self).values())

    @property
    def recipe(self) -> Recipe:
        """The recipe with these settings."""
        learner, *options = VARIANTS[self.variant]
        budget = (
            f"budget.meta_train={STEPS * BATCH}",
            "budget.meta_valid=0",
            f"budget.meta_batch={BATCH}",
            f"budget.eval_every={EVERY}",
        )
        rates = (f"outer.lr={self.outer}", *([] if self.inner is None else [f"options.inner_lr={self.inner}"]))
        return resolved(Library().choose_recipe(CHAIN, "e5", None, f"{learner}-adapter", (*budget, *rates, *options)))


key_of = by_keys(*Cell.__dataclass_fields__, scores="test")
"""Identity of a row, as `Cell.key`."""


def search(score: Callable[[float, float | None], float], inner: bool) -> None:
    """Try rates, outer and inner ones, as `OUTER` says; without inner steps outer ones alone."""
    outer = _best(lambda rate: score(rate, INNER[1] if inner else None), OUTER)
    if inner:
        _best(lambda rate: score(outer, rate), INNER)


def _best(score: Callable[[float], float], values: Sequence[float]) -> float:
    found = {value: score(value) for value in values}
    while True:
        best, low, high = max(found, key=lambda value: found[value]), min(found), max(found)
        if low < best < high or len(found) == MOST:
            return best
        factor = values[1] / values[0]
        # Three digits, as a rate is part of a row's identity.
        value = float(f"{best * factor if best == high else best / factor:.3g}")
        found[value] = score(value)


def best_rates(rows: Iterable[Row], task: str, variant: str, fold: int) -> tuple[float, float | None]:
    """Return the point of the grid with the best dev score of a fold; forms of MAML-Align have that of `align`."""
    own = variant if variant in LEARNERS else "align"
    found = {
        (row["outer"], row["inner"]): row["dev"]
        for row in rows
        if (row["task"], row["variant"], row["fold"]) == (task, own, fold) and not row["test"]
    }
    return max(found, key=lambda point: found[point])


def test_cells(rows: Sequence[Row], task: str, seeds: range, mode_seeds: range) -> Iterator[Cell]:
    """Yield the trainings that are tested, one seed after the other; the grid has to be done."""
    best = {(v, fold): best_rates(rows, task, v, fold) for v, fold in product(VARIANTS, FOLDS)}
    for seed, fold, variant in product(seeds, FOLDS, VARIANTS):
        yield Cell(task, variant, fold, *best[variant, fold], seed=seed, test=True)
    for seed, mode, fold, variant in product(mode_seeds, MODES[task], FOLDS, LEARNERS[:4]):
        yield Cell(task, variant, fold, *best[variant, fold], mode, seed, test=True)
