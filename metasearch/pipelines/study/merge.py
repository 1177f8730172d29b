"""Adds folds, seeds and arms to a study, and refuses to change what its cells have in common."""

from pathlib import Path
from typing import Any

from metasearch.config.run import flat
from metasearch.config.study import StudyConfig
from metasearch.config.yaml import Tree, flatten
from metasearch.errors import ConfigError
from metasearch.pipelines import factory
from metasearch.pipelines.distill.checks import resolved as resolved_distillation

# What a study may grow in; its cells share everything else, and none of that may change.
_GROWING = ("trained", "distilled", "folds", "seeds")
_LEFT = ("threads", "neutral")


def merged(old: StudyConfig, new: StudyConfig, path: Path) -> StudyConfig:
    """Return a study with the additions of another configuration; every arm gets all folds and seeds of both."""
    new = new.model_copy(update={key: getattr(old, key) for key in _LEFT if getattr(new, key) is None})
    old = old.model_copy(update={"neutral": old.neutral or new.neutral})
    # With defaults spelt out, an option that is written and one that is left at the same value are equal.
    old, new = resolved(old), resolved(new)
    for before, now in zip(_settings(old), _settings(new), strict=True):
        for name in (each for each in before if each in now):
            one, other = flatten({name: before[name]}), flatten({name: now[name]})
            # A dict and no set: the difference that is named is the first in the order of the keys, every time.
            for key in {**one, **other}:
                if one.get(key) != other.get(key) and ".sources." not in key:
                    stored, given = _format_value(one.get(key)), _format_value(other.get(key))
                    raise ConfigError(
                        f"{path}: the study has {key} {stored}, not {given}; choose another folder with -o"
                    )
    trained, distilled = ([*each] for each in _settings(old)[1:])
    return old.model_copy(
        update={
            "trained": (*old.trained, *(arm for arm in new.trained if arm.arm not in trained)),
            "distilled": (*old.distilled, *(each for each in new.distilled if each.recipe.recipe not in distilled)),
            "folds": tuple(sorted({*old.folds, *new.folds})),
            # In this order: dict keeps the seeds of the study first.
            "seeds": tuple(dict.fromkeys([*old.seeds, *new.seeds])),
        }
    )


def resolved(config: StudyConfig) -> StudyConfig:
    """Return a configuration with all options of all learners spelt out; `ConfigError` where one is wrong."""
    trained = tuple(arm.model_copy(update={"recipe": factory.resolved(arm.recipe)}) for arm in config.trained)
    distilled = tuple(resolved_distillation(each) for each in config.distilled)
    return config.model_copy(update={"trained": trained, "distilled": distilled})


def _settings(config: StudyConfig) -> tuple[Tree, Tree, Tree]:
    """Return what all cells share, each trained arm and each distillation, as trees by name."""
    tree = config.model_dump(mode="json")
    # Without sections: a setting is named as its flag.
    shared = {key: value for key, value in flat(tree).items() if key not in _GROWING}
    # The cells of a distillation have seed and compute from the study.
    own = ("seed", "compute")
    distilled = [{key: value for key, value in each.items() if key not in own} for each in tree["distilled"]]
    return shared, {arm["arm"]: arm for arm in tree["trained"]}, {each["recipe"]["recipe"]: each for each in distilled}


def _format_value(value: Any) -> str:
    if value in (None, [], ""):
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else f"'{value}'"
