"""Scores of several arms on several folds with several seeds, as they were read back."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from metasearch.errors import ConfigError, nearest
from metasearch.runs.log import read_events
from metasearch.runs.questions import QuestionResults, load, questions_path
from metasearch.runs.rows import MEAN, Row
from metasearch.study.arms import Arm

_HELD = 32
"""Runs of which the results by question are held at a time: some megabytes each, and a study has hundreds."""


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run folder.

    Attributes:
        path: of the folder.
        source: name of the study or run that it was read with.
        config: as it was resolved, a tree of strings.
        rows: all scores.
        facts: time, memory and hardware; empty where the run has none.
    """

    path: Path
    source: str
    config: Mapping[str, Any]
    rows: tuple[Row, ...]
    facts: Mapping[str, Any]

    def events(self) -> list[dict[str, Any]]:
        """Return the outer steps and dev scores of the log."""
        return read_events(self.path / "log.jsonl")


@dataclass(frozen=True, eq=False)
class Scored:
    """An arm on a fold with a seed.

    Attributes:
        run: that has the scores.
        rows: of this arm, all splits.
    """

    arm: Arm
    fold: int
    seed: int
    run: Run
    rows: tuple[Row, ...]

    @property
    def questions(self) -> QuestionResults:
        """Results by test question; read when asked for, and again when many others were read since.

        Raises:
            RunFolderError: the run has none.
            DataError: the file is damaged.
        """
        row = self.rows[0]
        path = questions_path(self.run.path, row["task"], row["learner"], "test")
        return _load(path, path.stat().st_mtime_ns if path.is_file() else 0)

    def values(self, measure: str, pool: str, split: str = "test") -> dict[tuple[str, str], float]:
        """Return language and candidate language → value, without means."""
        return {
            (row["language"], row["candidates"]): float(row["value"])
            for row in self.rows
            if (row["measure"], row["pool"], row["split"]) == (measure, pool, split)
            and row["language"] != MEAN
            and "found" not in row
        }

    def groups(self, measure: str, pool: str, split: str = "test") -> dict[str, Row]:
        """Return name → row of each group of languages that has a mean of its own; `found` of `listed` are there."""
        return {
            row["language"].removeprefix("group "): row
            for row in self.rows
            if (row["measure"], row["pool"], row["split"]) == (measure, pool, split) and "found" in row
        }


@lru_cache(maxsize=_HELD)
def _load(path: Path, changed: int) -> QuestionResults:
    """Return what a file has; one that has `changed` since is read anew."""
    return load(path)[0]


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that runs and studies have on one task.

    Attributes:
        name: of the folders it was read from.
        task: by name.
        data: fingerprint of all data of the task.
        versions: of metasearch and its libraries.
        arms: in the order in which they were found, with labels.
        scored: each arm on each fold with each seed, as far as they are there.
        runs: all finished runs.
        missing: what a study lacks, in words.
    """

    name: str
    task: str
    data: str
    versions: Mapping[str, str]
    arms: tuple[Arm, ...]
    scored: tuple[Scored, ...]
    runs: tuple[Run, ...]
    missing: tuple[str, ...]

    @cached_property
    def folds(self) -> tuple[int, ...]:
        """Folds that any arm has."""
        return tuple(sorted({found.fold for found in self.scored}))

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that any arm has."""
        return tuple(sorted({found.seed for found in self.scored}))

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """Measures, the task's first one first."""
        return tuple(dict.fromkeys(row["measure"] for found in self.scored for row in found.rows))

    @cached_property
    def pools(self) -> tuple[str, ...]:
        """Pools of the test scores, the task's main one first."""
        return tuple(
            dict.fromkeys(row["pool"] for found in self.scored for row in found.rows if row["split"] == "test")
        )

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Languages of the questions, or language pairs, in the order of the task."""
        return tuple(
            dict.fromkeys(
                language for found in self.scored for language, _ in found.values(self.measures[0], self.pools[0])
            )
        )

    def of(self, arm: Arm) -> tuple[Scored, ...]:
        """Return an arm on all its folds and seeds, in their order."""
        return tuple(sorted((f for f in self.scored if f.arm == arm), key=lambda f: (f.fold, f.seed)))

    def arm(self, label: str) -> Arm:
        """Return an arm by its label; `ConfigError` names the nearest one."""
        for arm in self.arms:
            if arm.label == label:
                return arm
        raise ConfigError(f"no learner '{label}'.{nearest(label, (arm.label for arm in self.arms))}")

    @property
    def baseline(self) -> Arm:
        """What the others are compared with unless another is named: zero-shot, or the first."""
        return next((arm for arm in self.arms if arm.zero_shot), self.arms[0])

    def require(self, measure: str | None = None, pool: str | None = None) -> tuple[str, str]:
        """Return measure and pool, by default the task's first; `ConfigError` names the nearest one."""
        for what, name, known in (("measure", measure, self.measures), ("pool", pool, self.pools)):
            if name is not None and name not in known:
                raise ConfigError(f"no scores of {what} '{name}'.{nearest(name, known)}")
        return measure or self.measures[0], pool or self.pools[0]
