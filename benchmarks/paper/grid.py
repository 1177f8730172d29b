"""The points of a small study: a base recipe, and what is changed of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from metasearch.errors import ConfigError, nearest
from metasearch.jobs.compose import resolved
from metasearch.spec import registry
from metasearch.spec.library import choose_recipe
from metasearch.spec.recipe import Recipe
from metasearch.spec.task import Kind
from metasearch.study.arms import digest, settings_of

AXES: Mapping[str, tuple[str, ...]] = {
    "outer-lr": ("outer.lr=1e-5", "outer.lr=3e-5", "outer.lr=1e-4", "outer.lr=3e-4"),
    "inner-lr": ("options.inner_lr=1e-4", "options.inner_lr=1e-3", "options.inner_lr=1e-2", "options.inner_lr=1e-1"),
    "inner-steps": (
        "options.inner_steps=1",
        "options.inner_steps=3",
        "options.inner_steps=5",
        "options.inner_steps=10",
    ),
    "order": ("options.first_order=true", "options.first_order=false"),
    "meta-tasks": (
        "budget.meta_train=56 budget.meta_valid=16",
        "budget.meta_train=224 budget.meta_valid=64",
        "budget.meta_train=896 budget.meta_valid=256",
        "budget.meta_train=7000 budget.meta_valid=2000",
    ),
    "meta-batch": ("budget.meta_batch=1", "budget.meta_batch=4", "budget.meta_batch=8"),
    "negatives": tuple(f"episodes.negatives={name}" for name in ("random", "easy", "semi-hard", "hard")),
    "n-neg": ("episodes.n_neg=1", "episodes.n_neg=3", "episodes.n_neg=8"),
    "queries": ("episodes.queries=random", "episodes.queries=similar"),
    "margin": ("loss.margin=0.1", "loss.margin=0.2", "loss.margin=0.5", "loss.margin=1.0"),
    "distance": ("loss.distance=euclidean", "loss.distance=cosine"),
    "dropout": ("dropout=false", "dropout=true"),
    "kd-weight": ("options.kd_weight=0", "options.kd_weight=0.5", "options.kd_weight=2"),
    "kd-reduction": ("options.kd_reduction=sum", "options.kd_reduction=mean"),
    "student-steps": ("options.student_inner_steps=0", "options.student_inner_steps=1"),
}
"""Name → values of it, each one or more settings. Meta-tasks are distinct episodes; how many are seen is the steps'."""
_TRIPLETS = ("negatives", "n-neg", "queries", "margin", "distance")


@dataclass(frozen=True)
class Point:
    """One run of a small study.

    Attributes:
        axis: that it is a point of; `base` changes nothing.
        changes: settings put over the base.
        recipe: with them, resolved.
    """

    axis: str
    changes: tuple[str, ...]
    recipe: Recipe

    def key(self, **shared: Any) -> str:
        """Return what a result is found again by: everything it depends on but the revision of the code."""
        return digest({**settings_of({"recipe": self.recipe.model_dump()}), **{k: str(v) for k, v in shared.items()}})


def points(
    mode: str, encoder: str, learner: str, axes: Sequence[str], base: Sequence[str], kind: Kind, crossed: bool = False
) -> list[Point]:
    """Return the base and the points around it, each setting once.

    Args:
        mode: transfer mode.
        encoder: chooses the recipe, as when training.
        learner: likewise.
        axes: names of `AXES`, or own ones such as `outer.lr=1e-5,1e-4`.
        base: settings put over the recipe for all points.
        kind: of the task; similarity has no triplets.
        crossed: every value of an axis with every one of the others, instead of one change at a time.

    Raises:
        ConfigError: an axis is unknown or the learner does not have it.
    """
    named = {axis.partition("=")[0].strip(): _values(axis, learner, kind) for axis in axes}
    if crossed:
        changes = [(" × ".join(named), tuple(chosen)) for chosen in product(*named.values())]
    else:
        changes = [(axis, (value,)) for axis, values in named.items() for value in values]
    found: dict[str, Point] = {}
    for axis, chosen in [("base", ()), *changes]:
        flat = tuple(setting for value in chosen for setting in value.split())
        recipe = resolved(choose_recipe(mode, encoder, learner, None, [*base, *flat]))
        point = Point(axis, flat, recipe)
        found.setdefault(point.key(), point)
    return list(found.values())


def fitting(learner: str, kind: Kind) -> Iterator[str]:
    """Yield the names of the axes that a learner has on a task of a kind."""
    options = registry.load("learners", learner).LEARNER.Options
    for axis, values in AXES.items():
        keys = [setting.partition("=")[0] for setting in values[0].split()]
        known = all(key.removeprefix("options.") in options.model_fields for key in keys if key.startswith("options."))
        if known and not (kind == "similarity" and axis in _TRIPLETS):
            yield axis


def _values(axis: str, learner: str, kind: Kind) -> tuple[str, ...]:
    key, equals, written = axis.partition("=")
    if equals:
        return tuple(f"{key.strip()}={value.strip()}" for value in written.split(","))
    if axis not in AXES:
        raise ConfigError(f"--axis {axis}: no such axis.{nearest(axis, AXES)} Or KEY=VALUE,VALUE")
    if axis not in fitting(learner, kind):
        raise ConfigError(f"--axis {axis}: learner '{learner}' has none on a task of {kind}")
    return AXES[axis]
