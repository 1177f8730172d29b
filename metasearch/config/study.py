"""Settings of a study; `study.yaml`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from metasearch.config.base import Contradiction, Count, FrozenConfig, Positive, Settings
from metasearch.config.distill_run import DistillConfig
from metasearch.config.postprocessing import NeutralSettings
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT, Recipe
from metasearch.config.run import ComputeConfig, DataConfig, EncoderConfig, TaskConfig


class TrainedArm(FrozenConfig):
    """An arm, such as `maml-trans`, that is trained on each fold with each seed; its recipe is resolved."""

    arm: str
    mode: str
    recipe: Recipe


class StudyConfig(Settings):
    """Everything that a study depends on, except the content of files and checkpoints.

    Attributes:
        trained: arms, in the order of the tables.
        distilled: distillations; each is run once with each seed of the study.
        neutral: settings of the arm `neutral`; None omits the arm.
        threads: threads of each cell's process, which decide the last bits of a result; None before the study begins.
    """

    kind: Literal["study"] = "study"
    data: TaskConfig
    encoder: EncoderConfig
    compute: ComputeConfig = ComputeConfig()
    trained: tuple[TrainedArm, ...] = ()
    distilled: tuple[DistillConfig, ...] = ()
    neutral: NeutralSettings | None = None
    folds: Annotated[tuple[Count, ...], Field(min_length=1)]
    seeds: Annotated[tuple[Count, ...], Field(min_length=1)] = (0,)
    threads: Positive | None = None
    max_steps: Positive | None = None
    """Optimizer steps of each run at most."""
    keep_models: bool = False
    """Keep the models of finished runs."""

    def on(self, fold: int) -> DataConfig:
        """Return the data with one fold held out."""
        return DataConfig(**self.data.model_dump(), fold=fold)

    @model_validator(mode="after")
    def _names_once(self) -> "StudyConfig":
        seen = {ZERO_SHOT, NEUTRAL}
        for name in (*(arm.arm for arm in self.trained), *(each.recipe.recipe for each in self.distilled)):
            if name in seen:
                raise Contradiction(f"two arms are called '{name}'; rename a recipe", "trained")
            seen.add(name)
        return self
