"""The arms of the ablations as commands of the command line, and the tests that they are scored on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SCORED = "stsb-multi-mt/stsb-en-train.csv"
INCLUDE = Path(__file__).resolve().parents[1] / "tasks"
STAGES = ("assistant", "embedding", "student", "contrast")
"""Of `compress-small`; that of `ema-small` is `align`, and the last of `similarity` is `scored`."""


@dataclass(frozen=True)
class Steps:
    """Steps of stage 1, of stage 2, and of all other stages."""

    assistant: int
    embedding: int
    student: int

    def of(self, stage: str) -> int:
        """Return the steps of a stage."""
        return {"assistant": self.assistant, "embedding": self.embedding}.get(stage, self.student)


@dataclass(frozen=True)
class Arm:
    """A line of the table.

    Attributes:
        stages: trained stages; none if another arm makes the encoder.
        start: flag and encoder at the start; `{vocabulary}`, `{assistant}` and `{full}` are folders.
        needs: arms that run before it.
        values: settings of the recipe.
        passes: factor of the steps, for an arm with fewer stages.
        model: folder of its encoder below `{out}`; by default in its own run.
    """

    description: str
    stages: tuple[str, ...] = ()
    start: tuple[str, ...] = ("--assistant", "{assistant}")
    needs: tuple[str, ...] = ("assistant",)
    values: tuple[str, ...] = ()
    passes: int = 1
    model: str = ""

    @property
    def recipe(self) -> str:
        """The recipe whose stages it trains."""
        return {"align": "ema-small", "scored": "similarity"}.get(self.stages[0], "compress-small")


MCL = "stages.contrast.options.contrast"
NO_MCL = f"{MCL}=none"
ONE_PASS = "student.repeats=1"
CHAIN = STAGES[1:]
THREE_STAGES = ("--student", "{full}/3-student/model")
ARMS: dict[str, Arm] = {
    "assistant": Arm("stage 1: whole table, 6 layers", STAGES[:1], ("--assistant", "{vocabulary}"), ()),
    "single-stage": Arm(
        "random table, stage 4 alone, without MCL, twice as many steps",
        STAGES[3:],
        ("--assistant", "{vocabulary}"),
        (),
        ("student.initial=random", NO_MCL),
        passes=2,
    ),
    "full": Arm("B 128, RU 3 run twice, four stages", CHAIN),
    "three-stages": Arm("the same before stage 4", needs=("full",), model="full/3-student/model"),
    "without-mcl": Arm("stage 4 without the contrastive loss", STAGES[3:], THREE_STAGES, ("full",), (NO_MCL,)),
    "bool": Arm("translations shall be alike, other texts not", STAGES[3:], THREE_STAGES, ("full",), (f"{MCL}=bool",)),
    "ce": Arm("cross entropy, equation 9 at weight 1", STAGES[3:], THREE_STAGES, ("full",), (f"{MCL}=ce",)),
    "ce-hard": Arm(
        "cross entropy, as the authors' code",
        STAGES[3:],
        THREE_STAGES,
        ("full",),
        (f"{MCL}=ce-hard", "stages.contrast.options.contrast_weight=0.01"),
    ),
    "without-recurrence": Arm("RU 3 run once", CHAIN, values=(ONE_PASS,)),
    "without-both": Arm("neither contrastive loss nor recurrence", CHAIN, values=(ONE_PASS, NO_MCL)),
    "same-start": Arm("stage 4 alone, without MCL, twice as many steps", STAGES[3:], values=(NO_MCL,), passes=2),
    "pre-distilled": Arm("stages 3 and 4, without MCL", STAGES[2:], values=(NO_MCL,)),
    "bottleneck-64": Arm("B 64", CHAIN, values=("student.bottleneck=64",)),
    "bottleneck-256": Arm("B 256", CHAIN, values=("student.bottleneck=256",)),
    "recurrent-1": Arm("RU 1 run six times", CHAIN, values=("student.recurrent=1",)),
    "recurrent-2": Arm("RU 2 run three times", CHAIN, values=("student.recurrent=2",)),
    "ema": Arm("the EMA teacher in place of stage 4", ("align",), THREE_STAGES, ("full",)),
    "similarity": Arm("the assistant, after scored pairs in English", ("scored",), ("--student", "{assistant}")),
    **{
        name: Arm(
            said, ("align",), ("--student", "{similarity}"), ("similarity",), (f"stages.align.options.tau={tau}",)
        )
        for name, said, tau in (
            ("ema-fast", "then the EMA teacher, τ 0.9999", 0.9999),
            ("ema-paper", "then the EMA teacher, τ 0.99999", 0.99999),
            ("ema-slow", "then the EMA teacher, τ 0.999999", 0.999999),
            ("ema-frozen", "then the same teacher, frozen", 1),
        )
    },
}


@dataclass(frozen=True)
class Test:
    """A column of the table: the mean of a measure over the languages or language pairs of a task."""

    task: str
    measure: str
    pool: str


TESTS = {
    "STS 2017": Test("sts17", "spearman", "pairs"),
    "Tatoeba": Test("tatoeba-11", "accuracy", "both"),
    "LAReQA": Test("lareqa-sentences", "map@20", "multilingual"),
}
TESTS_OF_MINI = {"STS 2017": TESTS["STS 2017"], "Tatoeba": Test("tatoeba-3", "accuracy", "both")}


@dataclass(frozen=True)
class Study:
    """What arms have in common.

    Attributes:
        rate: learning rate of all stages except EMA teacher and scored pairs.
        values: settings of the student.
        contrast: settings of stage 4 with a contrastive loss. The paper's weight is 1/D, because it has the squared
            norm and not our mean; with 1, as in the authors' code, the student of e5 collapsed.
        descriptions: arm → description, where it differs from `ARMS`.
        against: arm → the arm that it is compared with.
    """

    arms: tuple[str, ...]
    rate: float = 1e-3
    batch: int = 128
    corpus: tuple[str, ...] = ("max_lines=3000", "max_chars=200", "dev=50")
    values: tuple[str, ...] = ()
    contrast: tuple[str, ...] = ()
    descriptions: Mapping[str, str] = field(default_factory=dict)
    against: Mapping[str, str] = field(default_factory=dict)
    tests: Mapping[str, Test] = field(default_factory=lambda: TESTS)

    def description(self, name: str) -> str:
        """Return an arm in words."""
        return self.descriptions.get(name, ARMS[name].description)


_LOSSES = ("without-mcl", "bool", "ce", "ce-hard")
_EMA = ("ema-fast", "ema-paper", "ema-slow", "ema-frozen")
STUDIES = {
    "minilm": Study(
        (
            "assistant",
            "single-stage",
            "full",
            "three-stages",
            "without-mcl",
            "without-recurrence",
            "bottleneck-64",
            "bottleneck-256",
            "recurrent-1",
            "recurrent-2",
            "ema",
        ),
        against={
            "full": "assistant",
            **dict.fromkeys(("single-stage", "three-stages", "without-mcl", "without-recurrence"), "full"),
            **dict.fromkeys(("bottleneck-64", "bottleneck-256", "recurrent-2"), "full"),
            "recurrent-1": "recurrent-2",
            "ema": "three-stages",
        },
    ),
    "e5": Study(
        ("assistant", "full", "three-stages", "without-mcl", "without-recurrence"),
        rate=5e-4,  # that of recipe `mini-e5-states`
        contrast=("stages.contrast.options.contrast_weight=2.6e-3",),
        descriptions={
            "assistant": "e5 with 32,000 words, 12 layers, without language",
            "full": "B 128, RU 3 run four times, stages 2 to 4",
        },
        against={
            "full": "assistant",
            **dict.fromkeys(("three-stages", "without-mcl", "without-recurrence"), "full"),
        },
    ),
    "mini": Study(
        (
            "assistant",
            "full",
            "three-stages",
            *_LOSSES,
            "without-both",
            "same-start",
            "pre-distilled",
            "similarity",
            *_EMA,
        ),
        batch=32,
        corpus=("max_lines=500", "max_chars=80", "dev=25", "languages=[ar,es,tr]"),
        values=("student.bottleneck=64", "student.recurrent=2", "student.repeats=2"),
        descriptions={
            "assistant": "mini, 6 layers",
            "full": "B 64, RU 2 run twice, stages 2 to 4 (`soft`)",
            "three-stages": "before stage 4",
            "without-mcl": "stage 4 without contrastive loss",
            "bool": "stage 4 with `bool`",
            "ce": "stage 4 with `ce`, weight 1",
            "ce-hard": "stage 4 with `ce-hard`, weight 0.01",
            "without-both": "RU 2 run once, no contrastive loss",
            "same-start": "stage 4 alone, no contrastive loss, twice the steps",
            "pre-distilled": "stages 3 and 4, no contrastive loss",
            "similarity": "the assistant after STS-B in English",
            "ema-fast": "then EMA, τ 0.9999",
            "ema-paper": "then EMA, τ 0.99999",
            "ema-slow": "then EMA, τ 0.999999",
            "ema-frozen": "then a frozen teacher",
        },
        against={
            **dict.fromkeys(("three-stages", *_LOSSES, "without-both"), "full"),
            **dict.fromkeys(("same-start", "pre-distilled"), "full"),
            "similarity": "assistant",
            **dict.fromkeys(_EMA, "similarity"),
        },
        tests=TESTS_OF_MINI,
    ),
}
"""By the encoder that teaches, or, of `mini`, that is the assistant; minilm teaches there.

The assistant of e5 is cut out of it, knows all languages, and is not taught; nor is mini.
"""


@dataclass(frozen=True)
class Places:
    """Folders of a study.

    Attributes:
        out: folder of all runs.
        vocabulary: the assistant before stage 1; of e5, before the projection.
        origin: name of the study.
    """

    out: Path
    corpus: Path
    data: Path
    vocabulary: Path
    origin: str = "minilm"

    @property
    def study(self) -> Study:
        """What the arms have in common."""
        return STUDIES[self.origin]

    @property
    def teacher(self) -> str:
        """The encoder that teaches: a built-in name or a folder."""
        return str(self.out / "teacher") if self.origin == "e5" else "minilm"

    def folder(self, name: str) -> Path:
        """Return the folder of an arm."""
        return self.out / name

    def model(self, name: str) -> Path:
        """Return the folder of an arm's encoder."""
        return self.out / (ARMS[name].model or f"{name}/model")

    def trains(self, name: str) -> bool:
        """Say whether an arm has an encoder of its own to train."""
        return bool(ARMS[name].stages) and (name != "assistant" or self.origin == "minilm")


def flags_of(name: str, steps: Steps, places: Places) -> list[str]:
    """Return the flags of `metasearch distill` for an arm, without its folder; none where nothing is trained."""
    arm = ARMS[name]
    if not places.trains(name):
        return []
    study = places.study
    named = {"vocabulary": places.vocabulary, "assistant": places.model("assistant"), "full": places.folder("full")}
    named["similarity"] = places.model("similarity")
    values = [value for stage in arm.stages for value in _stage_values(stage, study, arm.passes * steps.of(stage))]
    if arm.recipe == "compress-small":
        with_mcl = "contrast" in arm.stages and NO_MCL not in arm.values
        values += [*(study.values if "{full}" not in arm.start[1] else ()), *(study.contrast if with_mcl else ())]
    values += arm.values
    teacher = ["--teacher", places.teacher] if arm.recipe == "compress-small" else []
    flags = ["--recipe", arm.recipe, "--stages", ",".join(arm.stages), *teacher]
    flags += [part.format(**named) for part in arm.start]
    if arm.recipe == "similarity":
        flags += ["--scored", str(places.data / SCORED)]
    else:
        flags += ["--corpus", str(places.corpus), "--teacher-cache", str(places.out / "targets")]
    flags += ["--data", str(places.data)]
    return flags + [part for value in values for part in ("--set", value)]


def with_needed(names: Collection[str]) -> list[str]:
    """Return arms and all that they need, in the order of the table."""
    chosen = set(names)
    while more := {needed for name in chosen for needed in ARMS[name].needs} - chosen:
        chosen |= more
    return [name for name in ARMS if name in chosen]


def _stage_values(stage: str, study: Study, steps: int) -> list[str]:
    """Return what every arm has in common in a stage; the EMA teacher and scored pairs keep their optimiser."""
    own = {"align": ["dropout=false", "max_length=64"], "scored": ["outer.lr=1e-4", "max_length=64"]}
    budget = [f"budget.batch={study.batch}", f"budget.steps={steps}", "budget.epochs=100"]
    corpus = [] if stage == "scored" else [f"corpus.{value}" for value in study.corpus]
    each = own.get(stage, [f"outer.lr={study.rate:g}"])
    return [f"stages.{stage}.{value}" for value in (*each, *budget, *corpus)]
