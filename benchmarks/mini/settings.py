"""What metasearch-mini is made with, and what a step of its build is."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

TASKS = ("tatoeba-11", "sts17", "lareqa", "lareqa-sentences")


@dataclass(frozen=True)
class Settings:
    """What the encoder is made with; kept in `build.json`.

    Attributes:
        data: folder of the data sets, with `parallel/`.
        teacher: built-in name of the encoder that teaches, and gives the layers.
        seed: of joins, vocabulary, students and batches.
        vocabulary: tokens.
        layers: of the assistant, where the teacher has more.
        bottleneck: columns of its word table; of minilm the recipe's.
        feed_forward: neurons in the feed-forward block of each layer of the assistant.
        sentences: of each language, from which the map that takes the language out of the teacher's vectors is fitted.
        alpha: of the way from the assistant to the student, at which the encoder is; of minilm it is the student.
        share: joined lines for each line of a corpus of long texts.
        others: the same for each line of the other corpora.
        lines: lines of each file that are used, the first ones; 0 uses all.
        targets: folder of the teacher's vectors, which several builds may share; None keeps them in the build.
        steps: of each stage, at most; None leaves it to the recipe.
        device: where the teacher and its students run.
        precision: of its forward passes.
        compare: whether the teacher is scored, too.
        tasks: what the encoder is scored on.
    """

    data: str
    teacher: str = "minilm"
    seed: int = 0
    vocabulary: int = 32000
    layers: int = 6
    bottleneck: int = 112
    feed_forward: int = 512
    sentences: int = 600
    alpha: float = 0.5
    share: float = 1.0
    others: float = 0.05
    lines: int = 0
    targets: str | None = None
    steps: int | None = None
    device: str = "auto"
    precision: str = "fp32"
    compare: bool = True
    tasks: tuple[str, ...] = TASKS

    def smoke(self) -> "Settings":
        """Return the settings of a build that only shows that every step works."""
        return replace(self, lines=400, vocabulary=2000, steps=2, compare=False, tasks=("tatoeba-11", "sts17"))


@dataclass(frozen=True)
class Step:
    """A step of the build.

    Attributes:
        done: what is there when it is finished.
        run: does it.
    """

    done: Path
    run: Callable[[], None]
