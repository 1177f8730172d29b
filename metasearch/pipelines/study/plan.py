"""The cells of a study: which runs it is made of, and which of them wait for which."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from metasearch.config.distill_run import DistillConfig
from metasearch.config.postprocessing import NeutralSettings
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
from metasearch.config.run import ComputeConfig, RunConfig, ScoreConfig
from metasearch.config.study import StudyConfig

CellConfig = ScoreConfig | RunConfig | DistillConfig
Kind = Literal["score", "train", "distill"]


@dataclass(frozen=True)
class Cell:
    """One run of a study, done in a process of its own.

    Attributes:
        name: name of its folder below `cells/`, such as `maml-trans/fold-0-seed-1`.
        kind: `score` an encoder as it is, `train`, or `distill`.
        config: configuration of the run.
        arm: first part of the name.
        needs: cells that must be done before.
    """

    name: str
    kind: Kind
    config: CellConfig
    arm: str
    needs: tuple[str, ...] = ()

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
    untrained = [*_untrained(config, ZERO_SHOT)]
    if config.neutral:
        untrained += _untrained(config, NEUTRAL, config.neutral)
    return [*untrained, *_distillations(config), *_arms(config, folder)]


def _untrained(config: StudyConfig, label: str, neutralise: NeutralSettings | None = None) -> Iterator[Cell]:
    for seed, fold in _runs(config):
        own = _scored(config, fold, seed, label).model_copy(update={"neutralise": neutralise})
        yield Cell(_cell_name(label, fold, seed), "score", own, label)


def _scored(config: StudyConfig, fold: int, seed: int, label: str) -> ScoreConfig:
    # Scores are computed in float32, so precision and checkpointing are those of every study.
    compute = ComputeConfig(device=config.compute.device)
    return ScoreConfig(data=config.on(fold), encoder=config.encoder, compute=compute, label=label, seed=seed)


def _distillations(config: StudyConfig) -> Iterator[Cell]:
    for seed in config.seeds:
        # One for all folds: a distillation learns from corpora, which the folds of the task do not touch.
        own = {"seed": seed, "compute": config.compute}
        for each in config.distilled:
            arm = each.recipe.recipe
            yield Cell(_distillation(arm, seed), "distill", each.model_copy(update=own), arm)


def _arms(config: StudyConfig, folder: Path) -> Iterator[Cell]:
    for seed, fold in _runs(config):
        for arm in config.trained:
            run = RunConfig(
                data=config.on(fold),
                encoder=config.encoder,
                compute=config.compute,
                mode=arm.mode,
                recipe=arm.recipe,
                seed=seed,
                max_steps=config.max_steps,
            )
            yield Cell(_cell_name(arm.arm, fold, seed), "train", run, arm.arm)
        for each in config.distilled:
            name, distillation = each.recipe.recipe, _distillation(each.recipe.recipe, seed)
            model = str(folder.resolve() / "cells" / distillation / "model")
            encoder = {"encoder": config.encoder.model_copy(update={"name": model})}
            asked = _scored(config, fold, seed, name).model_copy(update=encoder)
            yield Cell(_cell_name(name, fold, seed), "score", asked, name, (distillation,))


def _runs(config: StudyConfig) -> Iterator[tuple[int, int]]:
    return ((seed, fold) for seed in config.seeds for fold in config.folds)


def _cell_name(arm: str, fold: int, seed: int) -> str:
    return f"{arm}/fold-{fold}-seed-{seed}"


def _distillation(arm: str, seed: int) -> str:
    return f"{arm}/seed-{seed}"
