"""Settings of a distillation; `config.yaml` in its run folder."""

from typing import Annotated, Literal, get_args

from metasearch.config.base import Flag, Name, Positive, Seed, Settings
from metasearch.config.distillation import Distillation, RoleName, Stage
from metasearch.config.precision import TargetType
from metasearch.config.run import ComputeConfig, FoldConfig, Folders


class RolesConfig(Settings):
    """The encoders of a distillation."""

    teacher: Annotated[Name | None, Flag(metavar="ENCODER", kind="encoders")] = None
    """Frozen encoder that knows the pivot language."""
    assistant: Annotated[Name | None, Flag(metavar="ENCODER", kind="encoders")] = None
    """Encoder of full size from which the student is built."""
    student: Annotated[Name | None, Flag(metavar="ENCODER", kind="encoders")] = None
    """Encoder to train, if it is not built from the assistant."""
    trust_remote_code: bool = False
    """Run Python code that comes with an encoder."""


class TextsConfig(Settings):
    """The texts of a distillation."""

    corpus: Annotated[tuple[str, ...], Flag(metavar="PATH", kind="paths")] = ()
    """Folder or file of translations; repeatable."""
    scored: Annotated[tuple[str, ...], Flag(metavar="FILE", kind="paths")] = ()
    """Sentence pairs with scores from 0 to 5; repeatable."""
    entailment: Annotated[tuple[str, ...], Flag(metavar="FILE", kind="paths")] = ()
    """SNLI or MultiNLI file; repeatable."""

    def of(self, stage: Stage) -> tuple[str, ...]:
        """Return the files for a stage's kind of data."""
        return {"parallel": self.corpus, "scored": self.scored, "entailment": self.entailment}[stage.data]


class DistillConfig(Settings):
    """Everything that a distillation depends on, except the content of files and checkpoints."""

    kind: Literal["distill"] = "distill"
    recipe: Distillation
    encoders: RolesConfig = RolesConfig()
    texts: TextsConfig = TextsConfig()
    data: Folders = Folders()
    compute: ComputeConfig = ComputeConfig()
    evaluate: Annotated[tuple[FoldConfig, ...], Flag(metavar="TASKS", comma=True)] = ()
    """Score on tasks before the first and after each stage."""
    targets: Annotated[str | None, Flag(name="--teacher-cache", metavar="DIR", kind="folders")] = None
    """Folder for the embeddings of frozen encoders; by default in the run."""
    target_type: Annotated[TargetType, Flag(name="--teacher-cache-dtype")] = "float32"
    """Number format of these embeddings; float16 takes half of the space."""
    seed: Annotated[Seed, Flag(metavar="SEED")] = 0
    """Random seed for batches, dropout and the student."""
    max_steps: Positive | None = None
    """Steps of each stage at most."""

    @property
    def stages(self) -> tuple[tuple[int, str, Stage], ...]:
        """The stages to run: number within the recipe (from 1), name and stage."""
        numbered = enumerate(self.recipe.stages.items(), 1)
        return tuple((number, name, stage) for number, (name, stage) in numbered if name in self.recipe.chosen)

    @property
    def needed(self) -> tuple[RoleName, ...]:
        """Roles that must be given for these stages."""
        return self.recipe.roles(student_given=self.encoders.student is not None)

    @property
    def used(self) -> tuple[RoleName, ...]:
        """Roles in use: the given ones, and a student to build."""
        trained = {stage.trains for _, _, stage in self.stages}
        return tuple(role for role in get_args(RoleName) if role in self.needed or role in trained)
