"""Adds folds, seeds and arms to a study, and refuses to change what its cells have in common."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from metasearch.errors import ConfigError
from metasearch.jobs import compose
from metasearch.jobs.distill.checks import resolved as resolved_distillation
from metasearch.spec.distill_run import DistillConfig
from metasearch.spec.study import StudyConfig

_GROWING = ("trained", "distilled", "folds", "seeds")
_LEFT = ("threads", "engine")
T = TypeVar("T")


def merged(old: StudyConfig, new: StudyConfig, path: Path) -> StudyConfig:
    """Return a study with what another configuration adds to it.

    Every arm is then done on all folds with all seeds of both.

    Args:
        old: of the study that is there.
        new: what is asked for; `threads` or `engine` None leaves them as they are.
        path: of the study.

    Raises:
        ConfigError: they differ in something that all cells share, or in an arm that both have; it is named.
    """
    new = new.model_copy(update={key: getattr(old, key) for key in _LEFT if getattr(new, key) is None})
    old, new = resolved(old), resolved(new)
    shared = {key: (getattr(old, key), getattr(new, key)) for key in StudyConfig.model_fields if key not in _GROWING}
    arms = {arm.arm: arm for arm in old.trained}
    made = {each.recipe.recipe: each for each in old.distilled}
    both: list[tuple[str, Any, Any]] = [(key, *values) for key, values in shared.items()]
    both += [(arm.arm, arms[arm.arm], arm) for arm in new.trained if arm.arm in arms]
    both += [
        (name, before, _as_cell(each, before))
        for each in new.distilled
        if (before := made.get(name := each.recipe.recipe))
    ]
    for name, before, now in both:
        for key, one, other in _differences(before, now):
            raise ConfigError(
                f"{path}: the study has {'.'.join([name, *key])} {_shown(one)}, not {_shown(other)}; "
                "choose another folder for another study with -o"
            )
    return old.model_copy(
        update={
            "trained": (*old.trained, *(arm for arm in new.trained if arm.arm not in arms)),
            "distilled": (*old.distilled, *(each for each in new.distilled if each.recipe.recipe not in made)),
            "folds": tuple(sorted({*old.folds, *new.folds})),
            "seeds": _union(old.seeds, new.seeds),
        }
    )


def _as_cell(asked: DistillConfig, before: DistillConfig) -> DistillConfig:
    """Return a distillation with what its cells have from the study: seed and engine."""
    return asked.model_copy(update={"seed": before.seed, "engine": before.engine})


def resolved(config: StudyConfig) -> StudyConfig:
    """Return a configuration with all options of all learners spelt out; `ConfigError` where one is wrong."""
    trained = tuple(arm.model_copy(update={"recipe": compose.resolved(arm.recipe)}) for arm in config.trained)
    distilled = tuple(resolved_distillation(each) for each in config.distilled)
    return config.model_copy(update={"trained": trained, "distilled": distilled})


def _union(first: Sequence[T], more: Iterable[T]) -> tuple[T, ...]:
    """Return both in their order, each once: the scores of the first seed are those that others take over."""
    return tuple(dict.fromkeys([*first, *more]))


def _differences(one: Any, other: Any) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield dotted key and both values of everything in which two settings differ."""
    trees = [value.model_dump(mode="json") if hasattr(value, "model_dump") else value for value in (one, other)]
    if all(isinstance(tree, dict) for tree in trees):
        for key in {**trees[0], **trees[1]}:
            if key != "sources":
                for at, *values in _differences(trees[0].get(key), trees[1].get(key)):
                    yield (str(key), *at), *values  # type: ignore[misc]
    elif trees[0] != trees[1]:
        yield (), *trees  # type: ignore[misc]


def _shown(value: Any) -> str:
    if value in (None, [], ""):
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else f"'{value}'"
