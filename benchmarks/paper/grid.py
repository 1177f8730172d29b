"""The points of a small study: a base recipe, and what is changed of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from metasearch.config.library import Library
from metasearch.config.recipe import Recipe
from metasearch.errors import ConfigError
from metasearch.evaluation.study.read import digest, select_settings
from metasearch.pipelines.factory import resolved


@dataclass(frozen=True)
class Point:
    """One run of a small study: a resolved recipe with changes along an axis; `base` changes nothing."""

    axis: str
    changes: tuple[str, ...]
    recipe: Recipe

    def key(self, **shared: Any) -> str:
        """Return the identity of a result: everything it depends on but the revision of the code."""
        recipe = _without_later(self.recipe.model_dump())
        return digest({**select_settings({"recipe": recipe}), **{k: str(v) for k, v in shared.items()}})


def _without_later(recipe: dict[str, Any]) -> dict[str, Any]:
    """Return a recipe without the settings that came after the first kept rows, where they have their defaults."""
    later = {
        "episodes": {"translations": False}
        | ({} if recipe["episodes"]["negatives"] == "mined" else {"relative_margin": 0.05}),
        "loss": {"name": None},
        "budget": {"shards": 1},
    }
    unset = {"neutralise": None, "translate": True, "labels": None}
    kept = {key: value for key, value in recipe.items() if unset.get(key, ...) != value}
    for section, defaults in later.items():
        kept[section] = {key: value for key, value in kept[section].items() if defaults.get(key, ...) != value}
    return kept


def points(
    mode: str, encoder: str, learner: str, axes: Sequence[str], base: Sequence[str], crossed: bool = False
) -> list[Point]:
    """Return the base and the points around it, each setting once.

    Args:
        mode: transfer mode.
        encoder: chooses the recipe, as when training.
        learner: chooses the recipe, too.
        axes: a setting and its values, such as `outer.lr=1e-5,1e-4`.
        base: settings of all points.
        crossed: all combinations of the axes, not one change at a time.
    """
    named = dict(map(_values, axes))
    if crossed:
        changes = [(" × ".join(named), chosen) for chosen in product(*named.values())]
    else:
        changes = [(axis, (value,)) for axis, values in named.items() for value in values]
    library = Library()
    distinct: dict[str, Point] = {}
    for axis, chosen in [("base", ()), *changes]:
        recipe = resolved(library.choose_recipe(mode, encoder, learner, None, [*base, *chosen]))
        point = Point(axis, chosen, recipe)
        distinct.setdefault(point.key(), point)
    return list(distinct.values())


def _values(axis: str) -> tuple[str, tuple[str, ...]]:
    key, equals, values = axis.partition("=")
    if not equals:
        raise ConfigError(f"--axis {axis}: expected a setting and its values, such as outer.lr=1e-5,1e-4")
    return key.strip(), tuple(f"{key.strip()}={value.strip()}" for value in values.split(","))
