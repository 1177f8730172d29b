"""What metasearch-mini is made with, and what a step of its build is."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

TASKS = ("tatoeba-11", "sts17", "lareqa", "lareqa-sentences")


@dataclass(frozen=True)
class Settings:
    """Settings of a build; kept in `build.json`.

    Attributes:
        data: folder of the data sets, with `parallel/`.
        teacher: built-in name of the encoder that teaches, and gives the layers.
        layers, bottleneck, feed_forward: of the assistant of e5; minilm has the bottleneck of the recipe.
        sentences: texts of each language for the projection of the teacher.
        alpha: share of the student in the mean with the assistant of e5.
        share, others: see `joined.Settings`.
        lines: first lines of each file that are used; 0 uses all.
        targets: folder of the teacher's vectors, which several builds may share; None keeps them in the build.
        steps: maximum of each stage; None leaves it to the recipe.
        compare: whether the teacher is scored, too.
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
    precision: str = "float32"
    compare: bool = True
    tasks: tuple[str, ...] = TASKS

    def smoke(self) -> "Settings":
        """Return the settings of a build that only shows that every step works."""
        return replace(self, lines=400, vocabulary=2000, steps=2, compare=False, tasks=("tatoeba-11", "sts17"))


@dataclass(frozen=True)
class Step:
    """A step of a build: the path that exists once it is finished, and the function that does it."""

    done: Path
    run: Callable[[], None]
