"""Settings of a study, `study.yaml`: its arms, folds and seeds, and the launcher of its cells."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from metasearch.config.base import Contradiction, Count, FrozenConfig, Positive, Settings
from metasearch.config.projection import ProjectionSettings
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT, Recipe
from metasearch.config.run import ComputeConfig, EncoderConfig, FoldConfig, TaskConfig
from metasearch.config.task import Mode
from metasearch.errors import ConfigError, require_known


class TrainedArm(FrozenConfig):
    """An arm, such as `maml-trans`, that is trained on each fold with each seed."""

    arm: str
    mode: Mode
    recipe: Recipe


class StudyConfig(Settings):
    """Everything that a study depends on, except the content of files and checkpoints.

    Attributes:
        trained: arms, in the order of the tables.
        neutral: settings of the arm `neutral`; None omits the arm.
        threads: threads of each cell's process, which decide the last bits of a result; None before the study begins.
    """

    kind: Literal["study"] = "study"
    data: TaskConfig
    encoder: EncoderConfig
    compute: ComputeConfig = ComputeConfig()
    trained: tuple[TrainedArm, ...] = ()
    neutral: ProjectionSettings | None = None
    folds: Annotated[tuple[Count, ...], Field(min_length=1)]
    seeds: Annotated[tuple[Count, ...], Field(min_length=1)] = (0,)
    threads: Positive | None = None
    max_steps: Positive | None = None
    """Optimizer steps of each run at most."""
    keep_models: bool = False
    """Keep the models of finished runs."""

    def on(self, fold: int) -> FoldConfig:
        """Return the data with one fold held out."""
        return FoldConfig(**dict(self.data), fold=fold)

    @model_validator(mode="after")
    def _names_once(self) -> "StudyConfig":
        seen = {ZERO_SHOT, NEUTRAL}
        for name in (arm.arm for arm in self.trained):
            if name in seen:
                raise Contradiction(f"two arms are called '{name}'; rename a recipe", "trained")
            seen.add(name)
        return self


# Where the cells of a study run.

LOCAL = "local"

_SBATCH = (
    "account", "begin", "comment", "constraint", "exclude", "gres", "licenses", "mail-type", "mail-user", "nice",
    "nodelist", "partition", "prefer", "priority", "qos", "reservation", "time", "tmp", "wckey",
)  # fmt: skip
"""Options passed to `sbatch` unchanged."""

_RESOURCES = ("cpus", "gpus", "memory")
SETTINGS: Mapping[str, Sequence[str]] = {
    LOCAL: (),
    "slurm": (*_RESOURCES, *_SBATCH, "before"),
    "ray": (*_RESOURCES, "address"),
}
"""Keys of `--launcher-set KEY=VALUE`, by launcher; docs/clusters.md explains them."""

_FORMS = {
    "cpus": (r"[1-9]\d*", "a number of cores such as 4"),
    "gpus": (r"\d+", "a number such as 1; --launcher-set gres=gpu:a100:1 names a type"),
    "memory": (r"[1-9]\d*[MGT]", "a number with M, G or T, such as 8G"),
    "before": (r"\d+", "seconds such as 300"),
}


def _seconds(limit: str) -> int:
    """Return the seconds of a time limit as sbatch reads it; 0 for no limit, or in a form that is left to sbatch."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", limit, re.ASCII)
    if not found:
        return 0
    days, *parts = found.groups()
    given = [int(part) for part in parts if part is not None]
    if days is None and len(given) < 3:  # minutes, perhaps with seconds
        given.insert(0, 0)
    hours, minutes, seconds = [*given, 0, 0][:3]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


@dataclass(frozen=True)
class LauncherConfig:
    """Where cells run: a launcher and its settings, as written, by the keys of `SETTINGS`."""

    launcher: str = LOCAL
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check names and values; `ConfigError` names the nearest right one."""
        require_known("launcher", self.launcher, SETTINGS)
        known = SETTINGS[self.launcher]
        for key, value in self.settings.items():
            said = f"--launcher-set {key}={value}"
            if not known:
                raise ConfigError(
                    f"{said}: the launcher '{self.launcher}' has no settings; name another with --launcher"
                )
            require_known(f"setting of the launcher '{self.launcher}'", key, known)
            form, expected = _FORMS.get(key, (r"\S|\S.*\S", "a value without line breaks"))
            if not re.fullmatch(form, value, re.ASCII if key in _FORMS else 0):
                raise ConfigError(f"{said}: expected {expected}")
        if {"gpus", "gres"} <= self.settings.keys():
            raise ConfigError("--launcher-set gpus and gres both request GPUs; omit one")
        limit, before = _seconds(self.settings.get("time", "")), self.before
        if self.launcher == "slurm" and 0 < limit <= before:
            raise ConfigError(
                f"--launcher-set time={self.settings['time']} before={before}: a job would be stopped {before} seconds "
                f"before its limit of {limit}; expected before below time"
            )

    @classmethod
    def parse(cls, launcher: str | None, assignments: Sequence[str]) -> Self | None:
        """Return where cells run, from a launcher and `KEY=VALUE` words, separated by spaces; None without either."""
        if launcher is None:
            if assignments:
                raise ConfigError(f"--launcher-set {assignments[0]} goes with --launcher slurm or ray")
            return None
        settings: dict[str, str] = {}
        for assignment in assignments:
            # A value may have spaces, such as a comment: only what looks like the next key parts two of them.
            for each in re.split(r"\s+(?=[a-z-]+=)", assignment.strip()):
                key, equals, value = each.partition("=")
                if not equals:
                    raise ConfigError(f"--launcher-set {each}: expected KEY=VALUE, such as cpus=4")
                settings[key.strip()] = value.strip()
        return cls(launcher, settings)

    @property
    def before(self) -> int:
        """Seconds before its limit in which Slurm stops a job."""
        return int(self.settings.get("before", 120))

    @property
    def sbatch(self) -> dict[str, str]:
        """Options that `sbatch` gets unchanged."""
        return {name: self.settings[name] for name in _SBATCH if name in self.settings}

    @property
    def memory(self) -> int | None:
        """Bytes of memory per job, or None."""
        written = self.settings.get("memory")
        return None if written is None else int(written[:-1]) * {"M": 2**20, "G": 2**30, "T": 2**40}[written[-1]]

    def threads(self, jobs: int) -> int:
        """Return the threads per job: the requested cores, or an equal share of this machine's cores."""
        if self.launcher != LOCAL:
            return int(self.settings.get("cpus", 1))
        # The cores that this process may use, which `taskset` or a container may limit; macOS does not tell.
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores // jobs)

    @property
    def jobs(self) -> int:
        """How many cells are begun at a time, unless the user says so; on a cluster its scheduler decides what runs."""
        return 1 if self.launcher == LOCAL else 1000
