"""The cells of a study: a flat list, in the order in which they begin."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

from metasearch.config.distill_run import DistillConfig
from metasearch.config.library import Library
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
from metasearch.config.run import ComputeConfig, EncoderConfig, RunConfig, ScoreConfig
from metasearch.config.study import StudyConfig

CellConfig = ScoreConfig | RunConfig | DistillConfig
Kind = Literal["score", "train", "distill"]


@dataclass(frozen=True)
class Cell:
    """One job of a study.

    Attributes:
        name: name of its first run, such as `maml-trans/fold-0-seed-1`; `arm` is the first part.
        kind: `score` an encoder, `train`, or `distill` and score the student on each fold.
        runs: name → configuration of its runs, in their order.
    """

    name: str
    kind: Kind
    arm: str
    runs: Mapping[str, CellConfig]


def plan(config: StudyConfig, folder: Path) -> list[Cell]:
    """Return the cells of a study in the order in which they begin.

    Untrained encoders and distillations come first, then all arms of a fold, so that an unfinished study is comparable.
    """
    return [*_untrained(config), *_distillations(config, folder), *_trainings(config)]


def _untrained(config: StudyConfig) -> Iterator[Cell]:
    labels = {ZERO_SHOT: None, **({NEUTRAL: config.neutral} if config.neutral else {})}
    for label, neutralise in labels.items():
        for seed, fold in product(config.seeds, config.folds):
            settings = _scoring(config, fold, seed, label, config.encoder)
            name = _run_name(label, fold, seed)
            yield Cell(name, "score", label, {name: settings.model_copy(update={"neutralise": neutralise})})


def _scoring(config: StudyConfig, fold: int, seed: int, label: str, encoder: EncoderConfig) -> ScoreConfig:
    # Scores are computed in float32, so precision and checkpointing do not matter.
    compute = ComputeConfig(device=config.compute.device)
    return ScoreConfig(data=config.on(fold), encoder=encoder, compute=compute, label=label, seed=seed)


def _distillations(config: StudyConfig, folder: Path) -> Iterator[Cell]:
    for seed, each in product(config.seeds, config.distilled):
        # One for all folds: a distillation learns from corpora, which the folds of the task do not touch.
        arm = each.recipe.recipe
        name = f"{arm}/seed-{seed}"
        runs: dict[str, CellConfig] = {name: each.model_copy(update={"seed": seed, "compute": config.compute})}
        student = config.encoder.model_copy(update={"name": str(folder.resolve() / "cells" / name / "model")})
        runs |= {_run_name(arm, fold, seed): _scoring(config, fold, seed, arm, student) for fold in config.folds}
        yield Cell(name, "distill", arm, runs)


def _trainings(config: StudyConfig) -> Iterator[Cell]:
    library = Library(config.data.include)
    modes = {arm.arm: library.mode(arm.mode) for arm in config.trained}
    for seed, fold, arm in product(config.seeds, config.folds, config.trained):
        run = RunConfig(
            data=config.on(fold), encoder=config.encoder, compute=config.compute, mode=modes[arm.arm],
            recipe=arm.recipe, seed=seed, max_steps=config.max_steps,
        )  # fmt: skip
        name = _run_name(arm.arm, fold, seed)
        yield Cell(name, "train", arm.arm, {name: run})


def _run_name(arm: str, fold: int, seed: int) -> str:
    return f"{arm}/fold-{fold}-seed-{seed}"
