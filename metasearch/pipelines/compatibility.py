"""Whether learner, options, loss, mode and data of a training fit together, before any weights are loaded."""

import logging
from typing import Any

from metasearch.algorithms.base import Learner
from metasearch.algorithms.losses.base import fitting, losses_of
from metasearch.config import registry, yaml
from metasearch.config.arrangement import Pattern
from metasearch.config.recipe import Recipe
from metasearch.config.run import Checkpointing
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import RetrievalData, ScoredPair
from metasearch.episodes.episode import TRIPLET_ROLES
from metasearch.errors import ConfigError, require_known
from metasearch.pipelines.neutral import train_texts

log = logging.getLogger(__name__)


def learner_class(recipe: Recipe) -> type[Learner]:
    """Return a recipe's learner class."""
    kind: type[Learner] = registry.load("learners", recipe.learner).LEARNER
    return kind


def learner_options(recipe: Recipe) -> Any:
    """Return a recipe's checked learner options."""
    return yaml.check(recipe.options, learner_class(recipe).Options, f"recipe '{recipe.recipe}': options")


def check_fit(recipe: Recipe, benchmark: Benchmark, precision: str, checkpointing: Checkpointing = "auto") -> None:
    """Raise `ConfigError` unless learner, options, mode, precision and checkpointing fit together; loads no weights."""
    learner = learner_class(recipe)
    options = learner_options(recipe)
    check_loss(recipe, benchmark)
    if not benchmark.arrangements:
        raise ConfigError("training needs a transfer mode; load the benchmark with mode=...")
    first = benchmark.arrangements["meta-train"][0]
    if (links := len(first.variants)) not in learner.links:
        wanted = " or ".join(map(str, learner.links))
        there = [text for text in benchmark.task.arrangements if len(Pattern.parse(text).kinds) in learner.links]
        such = f", such as {there[0]}" if there else ""
        raise ConfigError(f"learner '{recipe.learner}' needs a mode of {wanted} links{such}; '{first}' has {links}")
    if recipe.budget.meta_train + recipe.budget.meta_valid == 0:
        raise ConfigError("budget.meta_train and budget.meta_valid are both 0: there is nothing to train on")
    _check_train(recipe, benchmark)
    require_known("precision", precision, ("float32", "bfloat16"))
    _check_order(learner, options, precision, checkpointing)


def _check_order(learner: type[Learner], options: Any, precision: str, checkpointing: Checkpointing) -> None:
    """Raise `ConfigError` if a second-order learner is combined with first-order features."""
    # Of a class, what is not False is the property, which asks the options.
    if getattr(learner, "second_order", True) is False or getattr(options, "first_order", False):
        return
    otherwise = ", or --set options.first_order=true" if hasattr(options, "first_order") else ""
    if precision == "bfloat16":
        raise ConfigError(f"--precision bfloat16 needs first order; use float32{otherwise}")
    if checkpointing == "gradcache":
        raise ConfigError(f"--checkpointing gradcache has no effect in second order; use layers{otherwise}")


def _check_train(recipe: Recipe, benchmark: Benchmark) -> None:
    """Raise `ConfigError` if the train part, or its used share, does not fit the recipe."""
    if recipe.labels and recipe.budget.meta_valid:
        raise ConfigError(
            f"labels={recipe.labels} limits only train, but meta-valid would use labels of dev: use --set "
            "budget.meta_valid=0"
        )
    if not recipe.translate and benchmark.task.translate is None:
        log.warning("translate=false has no effect: task '%s' declares no translations", benchmark.task.name)
    if recipe.neutralise:
        train_texts(benchmark, recipe.neutralise)
    if recipe.adapter and recipe.neutralise and recipe.neutralise.when == "after":
        raise ConfigError(
            "neutralise=after and adapter: an adapter is the last module; use neutralise=before, which it learns behind"
        )


def check_loss(recipe: Recipe, benchmark: Benchmark) -> None:
    """Raise `ConfigError` unless a loss fits the examples, and reads their translations just where there are some."""
    where, drawn = f"recipe '{recipe.recipe}'", recipe.episodes.translations
    losses = losses_of(recipe.loss, f"{where}: loss")
    reading = any("translation" in loss.needed for loss in losses)
    if not isinstance(benchmark.data, RetrievalData):
        if drawn or reading:
            key, off = ("episodes.translations", "false") if drawn else ("loss.align", "none")
            raise ConfigError(
                f"{where}: {key} is about translations of questions, and task '{benchmark.task.name}' has scored "
                f"pairs; --set {key}={off} leaves it out"
            )
        fitting(losses, ScoredPair.roles)
        return
    if reading and not drawn:
        raise ConfigError(
            f"{where}: the loss needs translated questions (loss.align); use --set episodes.translations=true"
        )
    loss = fitting(losses, [*TRIPLET_ROLES, *(["translation"] if drawn else [])])
    if drawn and "translation" not in loss.needed:
        raise ConfigError(
            f"{where}: episodes.translations: no loss would read them; --set loss.name=infonce --set loss.align=jsd "
            "(or infonce) does, and --set episodes.translations=false draws none"
        )
