"""The cells of a study: a flat list, in the order in which they begin."""

from dataclasses import dataclass
from itertools import product

from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
from metasearch.config.run import ComputeConfig, RunConfig, ScoreConfig
from metasearch.config.study import StudyConfig

CellConfig = ScoreConfig | RunConfig


@dataclass(frozen=True)
class Cell:
    """One run of a study, such as `maml-trans/fold-0-seed-1`: an encoder is scored, or trained."""

    name: str
    config: CellConfig


def plan(config: StudyConfig) -> list[Cell]:
    """Return the cells of a study in the order in which they begin.

    Base encoders come first, then all arms of a fold, so that an unfinished study is comparable.
    """
    # Scores are computed in float32, so precision and checkpointing do not matter.
    compute = ComputeConfig(device=config.compute.device)
    labels = {ZERO_SHOT: None, **({NEUTRAL: config.neutral} if config.neutral else {})}
    cells = []
    for (label, neutralise), seed, fold in product(labels.items(), config.seeds, config.folds):
        score = ScoreConfig(
            data=config.on(fold), encoder=config.encoder, compute=compute, label=label, neutralise=neutralise, seed=seed
        )
        cells.append(Cell(f"{label}/fold-{fold}-seed-{seed}", score))
    for seed, fold, arm in product(config.seeds, config.folds, config.trained):
        run = RunConfig(
            data=config.on(fold), encoder=config.encoder, compute=config.compute, mode=arm.mode,
            recipe=arm.recipe, seed=seed, max_steps=config.max_steps,
        )  # fmt: skip
        cells.append(Cell(f"{arm.arm}/fold-{fold}-seed-{seed}", run))
    return cells
