"""The cells of a study: which runs it is made of, and which of them wait for which."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from metasearch.spec.distill_run import DistillConfig
from metasearch.spec.recipe import DEFAULT_ENGINE, NEUTRAL, ZERO_SHOT
from metasearch.spec.run import RunConfig, ScoreConfig
from metasearch.spec.study import StudyConfig

CellConfig = ScoreConfig | RunConfig | DistillConfig
Kind = Literal["score", "train", "distill"]
_SHARED = ("task", "encoder", "prompts", "trim", "fold_seed", "device", "data", "include", "trust_remote_code")
_TRAINS = ("max_steps", "precision", "checkpointing", "engine")


@dataclass(frozen=True)
class Cell:
    """One run of a study, done in a process of its own.

    Attributes:
        name: name of its folder below `cells/`, such as `maml-trans/fold-0-seed-1`.
        kind: `score` an encoder as it is, `train`, or `distill`.
        config: configuration of the run.
        arm: first part of the name.
        needs: cells that must be done before.
        origin: the one of them whose scores of an untrained encoder are taken over, where they are the same to the bit.
    """

    name: str
    kind: Kind
    config: CellConfig
    arm: str
    needs: tuple[str, ...] = ()
    origin: str | None = None

    @property
    def listed(self) -> bool:
        """Whether the cell has scores on the study's task, and so belongs to its tables."""
        return self.kind != "distill"


def plan(config: StudyConfig, folder: Path) -> list[Cell]:
    """Return the cells of a study in the order in which they are begun.

    Zero-shot comes first, for everything is compared with it, then the neutral encoder; then all arms of a fold before
    those of the next one, so that what is done when a study stops early can be compared.

    Args:
        config: of the study.
        folder: of the study, in which distilled models will lie.
    """
    shared = {key: getattr(config, key) for key in _SHARED}
    # None leaves a stored study's engine as it is (see `merge`); a cell needs a name.
    config = config.model_copy(update={"engine": config.engine or DEFAULT_ENGINE})
    untrained = [*_untrained(config, ScoreConfig(**shared))]
    if config.neutral:
        untrained += _untrained(config, ScoreConfig(**shared, label=NEUTRAL, neutralise=config.neutral))
    return [*untrained, *_distillations(config), *_arms(config, shared, folder)]


def _untrained(config: StudyConfig, asked: ScoreConfig) -> Iterator[Cell]:
    for seed, fold in _runs(config):
        first = _named(asked.label, fold, config.seeds[0])
        # The other seeds wait for the first one: where the encoder is the same, they take over its scores.
        needs = () if seed == config.seeds[0] else (first,)
        own = asked.model_copy(update={"fold": fold, "seed": seed})
        yield Cell(_named(own.label, fold, seed), "score", own, own.label, needs, needs[0] if needs else None)


def _distillations(config: StudyConfig) -> Iterator[Cell]:
    for seed in config.seeds:
        # One for all folds: a distillation learns from corpora, which the folds of the task do not touch.
        own = {"seed": seed, "engine": config.engine}
        for each in config.distilled:
            arm = each.recipe.recipe
            yield Cell(_distillation(arm, seed), "distill", each.model_copy(update=own), arm)


def _arms(config: StudyConfig, shared: dict[str, Any], folder: Path) -> Iterator[Cell]:
    trains = {key: getattr(config, key) for key in _TRAINS}
    for seed, fold in _runs(config):
        for arm in config.trained:
            run = RunConfig(**shared, **trains, mode=arm.mode, recipe=arm.recipe, fold=fold, seed=seed)
            origin = _named(ZERO_SHOT, fold, seed)
            yield Cell(_named(arm.arm, fold, seed), "train", run, arm.arm, (origin,), origin)
        for each in config.distilled:
            name, distillation = each.recipe.recipe, _distillation(each.recipe.recipe, seed)
            model = str(folder.resolve() / "cells" / distillation / "model")
            asked = ScoreConfig(**{**shared, "encoder": model}, label=name, fold=fold, seed=seed)
            yield Cell(_named(name, fold, seed), "score", asked, name, (distillation,))


def _runs(config: StudyConfig) -> Iterator[tuple[int, int]]:
    return ((seed, fold) for seed in config.seeds for fold in config.folds)


def _named(arm: str, fold: int, seed: int) -> str:
    return f"{arm}/fold-{fold}-seed-{seed}"


def _distillation(arm: str, seed: int) -> str:
    return f"{arm}/seed-{seed}"
