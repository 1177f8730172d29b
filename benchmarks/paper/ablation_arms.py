"""The arms of the ablations as commands of the command line, and the tests that they are scored on."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from benchmarks.paper.distillation_papers import CROSS, MONO

INCLUDE = Path(__file__).resolve().parents[1] / "tasks"
STAGES = ("assistant", "embedding", "student", "contrast")
"""Of `compress-small`; the only one of `ema-small` is `align`."""

BATCH, LINES, DEV = 128, 3000, 50
"""Of every arm: pairs of a step, lines that are read of each file (so few steps see no more), and pairs of each
language that are held out."""
RATES = {"minilm": 1e-3, "e5": 5e-4}
"""Learning rate of every arm, by the encoder that teaches. Of e5 it is that of recipe `mini-e5-states`."""


@dataclass(frozen=True)
class Steps:
    """How long each stage trains.

    Attributes:
        assistant: steps of stage 1, which all arms share.
        embedding: of stage 2, which runs no layers.
        student: of stages 3 and 4, and of the moving teacher.
    """

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
        description: the arm in words.
        stages: that it trains; none where its encoder is made by another arm.
        start: the encoder that it begins with and the flag that names it. `{vocabulary}` and `{assistant}` are folders,
            `{full}` is that of the run of that name.
        needs: arms that are run before it.
        values: of the recipe.
        passes: how often a stage's steps are taken, for an arm that has fewer stages.
        model: folder of its encoder below `{out}`; by default that of its own run.
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
        return "ema-small" if self.stages == ("align",) else "compress-small"


NO_MCL = "stages.contrast.options.contrast=none"
WEIGHTED = {"minilm": (), "e5": ("stages.contrast.options.contrast_weight=2.6e-3",)}
"""Of arms with the contrastive loss. 1/D is its weight in the paper, which has the squared norm in place of our mean;
with 1, as in the recipe and the authors' code, the student of e5 collapsed."""
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
    "without-recurrence": Arm("RU 3 run once", CHAIN, values=("student.repeats=1",)),
    "bottleneck-64": Arm("B 64", CHAIN, values=("student.bottleneck=64",)),
    "bottleneck-256": Arm("B 256", CHAIN, values=("student.bottleneck=256",)),
    "recurrent-1": Arm("RU 1 run six times", CHAIN, values=("student.recurrent=1",)),
    "recurrent-2": Arm("RU 2 run three times", CHAIN, values=("student.recurrent=2",)),
    "ema": Arm("the moving teacher in place of stage 4", ("align",), THREE_STAGES, ("full",)),
}
OF_E5 = {
    "assistant": "e5 with 32,000 words, 12 layers, without language",
    "full": "B 128, RU 3 run four times, stages 2 to 4",
}
"""What arms are in words where e5 teaches, as far as it is another thing."""
ARMS_OF = {"minilm": tuple(ARMS), "e5": ("assistant", "full", "three-stages", "without-mcl", "without-recurrence")}
"""By the encoder that teaches; the assistant of e5 is cut out of it, knows all languages, and is not taught."""


@dataclass(frozen=True)
class Test:
    """A column of the table: the mean of a measure over the languages, or some of the language pairs, of a task."""

    task: str
    measure: str
    pool: str
    pairs: tuple[str, ...] = ()


TESTS = {
    "Tatoeba": Test("tatoeba-11", "accuracy", "both"),
    "STS 2017": Test("sts17", "spearman", "pairs"),
    "STS mono": Test("sts17", "spearman", "pairs", MONO),
    "STS cross": Test("sts17", "spearman", "pairs", CROSS),
    "LAReQA": Test("lareqa-sentences", "map@20", "multilingual"),
}


@dataclass(frozen=True)
class Places:
    """Where everything is.

    Attributes:
        out: folder of all runs.
        corpus: the translations.
        data: the tasks' files.
        vocabulary: the assistant before it was taught; of e5, before the language was taken out of its vectors.
        origin: built-in name of the encoder that teaches, or that the teacher is made of.
    """

    out: Path
    corpus: Path
    data: Path
    vocabulary: Path
    origin: str = "minilm"

    @property
    def teacher(self) -> str:
        """The encoder that teaches: a built-in name or a folder."""
        return self.origin if self.origin == "minilm" else str(self.out / "teacher")

    def folder(self, name: str) -> Path:
        """Return the folder of an arm."""
        return self.out / name

    def model(self, name: str) -> Path:
        """Return the folder of an arm's encoder."""
        return self.out / (ARMS[name].model or f"{name}/model")

    def trains(self, name: str) -> bool:
        """Say whether an arm has an encoder of its own to train."""
        return bool(ARMS[name].stages) and (name, self.origin) != ("assistant", "e5")


def flags_of(name: str, steps: Steps, places: Places) -> list[str]:
    """Return the flags of `metasearch distill` for an arm, without its folder; none where nothing is trained."""
    arm = ARMS[name]
    if not places.trains(name):
        return []
    named = {"vocabulary": places.vocabulary, "assistant": places.model("assistant"), "full": places.folder("full")}
    rate = RATES[places.origin]
    values = [value for stage in arm.stages for value in _stage_values(stage, rate, arm.passes * steps.of(stage))]
    values += arm.values
    values += WEIGHTED[places.origin] if "contrast" in arm.stages and NO_MCL not in arm.values else ()
    teacher = ["--teacher", places.teacher] if arm.recipe == "compress-small" else []
    flags = ["--recipe", arm.recipe, "--stages", ",".join(arm.stages), *teacher]
    flags += [part.format(**named) for part in arm.start]
    flags += ["--corpus", str(places.corpus), "--data", str(places.data)]
    flags += ["--teacher-cache", str(places.out / "targets")]
    return flags + [part for value in values for part in ("--set", value)]


def with_needed(names: Collection[str]) -> list[str]:
    """Return arms and all that they need, in the order of the table."""
    chosen = set(names)
    while more := {needed for name in chosen for needed in ARMS[name].needs} - chosen:
        chosen |= more
    return [name for name in ARMS if name in chosen]


def _stage_values(stage: str, rate: float, steps: int) -> list[str]:
    """Return what every arm has in common in a stage; the moving teacher keeps its own optimiser."""
    own = ["dropout=false", "max_length=64", "corpus.max_chars=200"] if stage == "align" else [f"outer.lr={rate:g}"]
    budget = [f"budget.batch={BATCH}", f"budget.steps={steps}", "budget.epochs=100"]
    return [f"stages.{stage}.{value}" for value in (*own, *budget, f"corpus.max_lines={LINES}", f"corpus.dev={DEV}")]
