"""Recipes with several stages, declared in `tasks/distillation/*.yaml`, and the pairs of a corpus that a stage uses.

Three roles take part. The *teacher* is frozen. The *assistant* has the student's vocabulary and the full size, and is
taught first. The *student* is made of the assistant, or given, and is what comes out.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from metasearch.config.base import Contradiction, Count, FrozenConfig, Length, Positive, Settings
from metasearch.config.languages import Language
from metasearch.config.recipe import EvalSchedule, Loss, Outer
from metasearch.errors import ConfigError, nearest

RoleName = Literal["teacher", "assistant", "student"]
_Monitor = Literal["accuracy", "cosine", "spearman", "loss"]

_MONITORS: dict[str, tuple[_Monitor, ...]] = {
    "parallel": ("accuracy", "cosine", "loss"),
    "scored": ("spearman", "loss"),
    "entailment": ("loss",),
}


class CorpusSettings(Settings):
    """The pairs to read from a parallel corpus, and their shares in training.

    The multi-stage distillation paper reads 300,000 pairs of a file in stages 2 and 3 and 500,000 in stages 1 and 4,
    drops pairs with a side over 250 characters, and balances by file. The EMA teacher paper drops pairs with a side
    over 128 tokens, and balances by language.

    Attributes:
        balance: `file` or `language` gives each the same share of an epoch; `none` takes every pair once.
        dev: pairs of each language that are held out of training.
    """

    pivot: Language = "en"
    """Language on one side of every file."""
    languages: tuple[Language, ...] = ()
    """Languages of the translations, such as de,fr; by default all."""
    only: tuple[str, ...] = ()
    """Corpora to read, such as TED2020; by default all."""
    columns: tuple[Positive, ...] = ()
    """Columns of TSV files that hold the two texts, such as 2,3; by default found."""
    max_lines: Count = 0
    """Pairs to read from each file; 0 reads all."""
    max_chars: Count = 0
    """Longest side of a pair in characters; 0 takes any."""
    max_tokens: Count = 0
    """Longest side of a pair in tokens, special tokens included; 0 takes any."""
    normalise: bool = False
    """Write compatible characters, quotes and dashes in one way each."""
    balance: Literal["none", "file", "language"] = "none"
    dev: Count = 0


class Student(FrozenConfig):
    """How to make a student from the assistant.

    Attributes:
        bottleneck: width B of the word table; None keeps the assistant's table.
        recurrent: number M of layers that are kept; None keeps all.
        repeats: how often the block of M layers is run; None makes the student as deep as the assistant.
        initial: `svd` starts the table at the best one of its width; `random` as the paper's authors.
    """

    bottleneck: Positive | None = 128
    recurrent: Positive | None = 3
    repeats: Positive | None = None
    initial: Literal["svd", "random"] = "svd"


class StageBudget(EvalSchedule):
    """How long a stage trains: pairs in a step, epochs at most, and steps at most; 0 steps leave it to the epochs."""

    step = "batch", "pairs"
    batch: Positive = 64
    epochs: Positive = 20
    steps: Count = 0


class Stage(FrozenConfig):
    """One stage: who learns what from whom, and for how long.

    Attributes:
        trains: the role that learns.
        against: the frozen role whose outputs are the targets, for learners that take some.
        corpus: which part of the data is used, and how it is cleaned.
        learner: the plug-in that makes the loss; `options` are its own.
        loss: loss of scored pairs.
        max_length: longest input in tokens.
        monitor: the dev score: for parallel data `accuracy` of finding translations in both directions, or `cosine` to
            the targets; `loss` is the negative loss.
    """

    description: str
    trains: Literal["assistant", "student"]
    against: Literal["teacher", "assistant"] | None = None
    data: Literal["parallel", "scored", "entailment"] = "parallel"
    corpus: CorpusSettings = CorpusSettings(dev=200)
    learner: str
    options: dict[str, Any] = Field(default_factory=dict)
    loss: Loss = Loss()
    outer: Outer
    budget: StageBudget = StageBudget()
    # Two special tokens, and at least one of the text.
    max_length: Length = 128
    monitor: _Monitor = "accuracy"
    dropout: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> "Stage":
        if self.monitor not in _MONITORS[self.data]:
            known = ", ".join(_MONITORS[self.data])
            raise Contradiction(f"{self.data} data has no '{self.monitor}'; known: {known}", "monitor")
        if self.corpus.dev == 0:
            raise Contradiction("the dev score needs held-out pairs; 0 holds none out", "corpus", "dev")
        if self.monitor == "cosine" and self.against is None:
            raise Contradiction("cosine needs a frozen role; the stage has no `against`", "monitor")
        if self.against == self.trains:
            raise Contradiction(f"the {self.trains} cannot be its own frozen teacher", "against")
        return self

    @property
    def flag(self) -> str:
        """The flag that gives its data."""
        return "--corpus" if self.data == "parallel" else f"--{self.data}"


class Distillation(FrozenConfig):
    """A recipe of stages; each stage starts from the results of earlier stages.

    Attributes:
        student: how to make the student if none is given; None if it must be given.
        run: names of the stages that are run; empty runs all.
        sources: where each value comes from, by dotted key.
    """

    recipe: str
    description: str
    student: Student | None = None
    stages: Annotated[dict[str, Stage], Field(min_length=1)]
    run: tuple[str, ...] = ()
    sources: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_names(self) -> "Distillation":
        for name in self.run:
            if name not in self.stages:
                raise Contradiction(f"no stage '{name}'.{nearest(name, self.stages)}", "run")
        return self

    @property
    def chosen(self) -> tuple[str, ...]:
        """Names of the stages to run, in order."""
        return tuple(name for name in self.stages if not self.run or name in self.run)

    def only(self, written: str) -> "Distillation":
        """Return the recipe with a part of its stages, such as `2-4`, `3` (numbers from 1) or `student,contrast`."""
        names = list(self.stages)
        chosen: list[str] = []
        for part in filter(None, (part.strip() for part in written.split(","))):
            first, dash, last = part.partition("-")
            if first.isdecimal() and (last.isdecimal() or not dash):
                low, high = int(first), int(last or first)
                if not 1 <= low <= high <= len(names):
                    raise ConfigError(f"--stages {part}: recipe '{self.recipe}' has the stages 1 to {len(names)}")
                chosen += names[low - 1 : high]
            elif part in names:
                chosen.append(part)
            else:
                raise ConfigError(f"--stages {part}: unknown stage.{nearest(part, names)}")
        if not chosen:
            raise ConfigError(f"--stages: expected numbers or names such as 2-4 or {names[-1]}")
        return self.model_copy(update={"run": tuple(name for name in names if name in chosen)})

    def roles(self, student_given: bool) -> tuple[RoleName, ...]:
        """Return the roles that must be given; without a student, one is made from the assistant."""
        stages = [self.stages[name] for name in self.chosen]
        needed: set[RoleName] = {stage.against for stage in stages if stage.against}
        trained = {stage.trains for stage in stages}
        if "assistant" in trained:
            needed.add("assistant")
        if "student" in trained and not student_given:
            needed.add("student" if self.student is None else "assistant")
        return tuple(role for role in get_args(RoleName) if role in needed)
