"""What a study is asked to do, as resolved from the command line; `study.yaml`."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, model_validator

from metasearch.spec.declared import Contradiction, Count, Declared, Positive
from metasearch.spec.distill_run import DistillConfig
from metasearch.spec.recipe import NEUTRAL, ZERO_SHOT, Engine, Recipe, Role
from metasearch.spec.run import Checkpointing, Device, Precision
from metasearch.spec.run_stages import NeutralSettings


class Trained(Declared):
    """An arm that is trained on each fold with each seed.

    Attributes:
        arm: what its cells are called, such as `maml-trans`.
        mode: transfer mode.
        recipe: all hyper-parameters, resolved.
    """

    arm: str
    mode: str
    recipe: Recipe


class StudyConfig(Declared):
    """Everything that a study depends on besides the contents of files and checkpoints.

    Attributes:
        trained: arms, in the order in which tables list them.
        distilled: distillations; each is done once with each seed, in place of the one it has.
        neutral: how the language is taken out of the untrained encoder for the arm `neutral`; None has no such arm.
        folds: that are held out in turn.
        seeds: with which everything is done.
        threads: of each cell's process. They are kept because the last bits of a result depend on them; None before
            the study is begun.
        engine: of each cell, distillations too; None before the study is begun.
        fold_seed: as in `RunConfig`; `max_steps` and the others likewise.
        keep_models: whether the models of finished cells stay.
    """

    task: str
    encoder: str
    trained: tuple[Trained, ...] = ()
    distilled: tuple[DistillConfig, ...] = ()
    neutral: NeutralSettings | None = None
    folds: Annotated[tuple[Count, ...], Field(min_length=1)]
    seeds: Annotated[tuple[Count, ...], Field(min_length=1)] = (0,)
    threads: Positive | None = None
    fold_seed: int | None = None
    max_steps: Positive | None = None
    device: Device = "auto"
    precision: Precision = "fp32"
    checkpointing: Checkpointing = "auto"
    prompts: Mapping[Role, str] = {}
    trim: tuple[str, ...] = ()
    engine: Engine | None = None
    data: str | None = None
    include: tuple[str, ...] = ()
    trust_remote_code: bool = False
    keep_models: bool = False

    @model_validator(mode="after")
    def _names_once(self) -> "StudyConfig":
        seen = {ZERO_SHOT, NEUTRAL}
        for name in (*(arm.arm for arm in self.trained), *(each.recipe.recipe for each in self.distilled)):
            if name in seen:
                raise Contradiction(f"two arms are called '{name}'; rename a recipe", "trained")
            seen.add(name)
        return self
