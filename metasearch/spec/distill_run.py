"""What a distillation is asked to do, as resolved from the command line; `config.yaml` of its run folder."""

from typing import Literal, get_args

from pydantic import model_validator

from metasearch.spec.declared import Declared, Positive
from metasearch.spec.recipe import DEFAULT_ENGINE, Engine
from metasearch.spec.run import Checkpointing, Device, Precision, require_way_back
from metasearch.spec.stages import Distillation, RoleName, Stage

TargetType = Literal["fp32", "fp16", "int8"]


class DistillConfig(Declared):
    """Everything that a distillation depends on besides the contents of files and checkpoints.

    Attributes:
        recipe: all stages and hyper-parameters, resolved; `recipe.run` names the stages that are run.
        teacher: the frozen encoder, by built-in name, folder or hub name.
        assistant: the encoder that the student is made of.
        student: the student, where it is not made of the assistant.
        corpus: files and folders of translations.
        scored: files of scored pairs.
        entailment: files of entailment pairs.
        evaluate: tasks that the trained encoder is scored on before the first and after each stage.
        targets: folder in which outputs of frozen encoders are kept; by default in the run.
        target_type: type in which outputs of frozen encoders are kept, of a prepared corpus; others have fp32.
        max_steps: steps of each stage, at most.
        checkpointing: as in `RunConfig`.
        engine: what computes the gradients.
        data: folder of the tasks' files.
        include: folders with further tasks and recipes.
    """

    recipe: Distillation
    teacher: str | None = None
    assistant: str | None = None
    student: str | None = None
    corpus: tuple[str, ...] = ()
    scored: tuple[str, ...] = ()
    entailment: tuple[str, ...] = ()
    evaluate: tuple[str, ...] = ()
    targets: str | None = None
    target_type: TargetType = "fp32"
    seed: int = 0
    max_steps: Positive | None = None
    device: Device = "auto"
    precision: Precision = "fp32"
    checkpointing: Checkpointing = "auto"
    engine: Engine = DEFAULT_ENGINE
    data: str | None = None
    include: tuple[str, ...] = ()
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def _can_be_computed_again(self) -> "DistillConfig":
        require_way_back(self.checkpointing, self.engine)
        return self

    @property
    def stages(self) -> tuple[tuple[int, str, Stage], ...]:
        """The stages that are run: the number of each among all of the recipe, counted from 1, its name and itself."""
        numbered = enumerate(self.recipe.stages.items(), 1)
        return tuple((number, name, stage) for number, (name, stage) in numbered if name in self.recipe.chosen)

    @property
    def needed(self) -> tuple[RoleName, ...]:
        """Roles that must be given for these stages."""
        return self.recipe.roles(student_given=self.student is not None)

    @property
    def used(self) -> tuple[RoleName, ...]:
        """Roles that take part: those that must be given, and a student that is made."""
        trained = {stage.trains for _, _, stage in self.stages}
        return tuple(role for role in get_args(RoleName) if role in self.needed or role in trained)

    def files(self, stage: Stage) -> tuple[str, ...]:
        """Return the files of a stage's kind of data."""
        return {"parallel": self.corpus, "scored": self.scored, "entailment": self.entailment}[stage.data]

    def named(self, role: RoleName) -> str | None:
        """Return the encoder that was given for a role."""
        return {"teacher": self.teacher, "assistant": self.assistant, "student": self.student}[role]
