"""Scores of several arms on several folds with several seeds, as they were read back.

An *arm* is one way to train, or an untrained encoder, with runs on several folds and seeds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from metasearch.config.measure import is_rank
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
from metasearch.errors import ConfigError, nearest
from metasearch.runs.per_query_results import QueryResults, load, query_results_path
from metasearch.runs.rows import MEAN, Row

_CACHED_FILES = 32
"""How many files of question results are held in memory: some megabytes each, and a study has hundreds."""


@dataclass(frozen=True)
class Arm:
    """One way to train, or an untrained encoder.

    Attributes:
        learner: the learner's name, such as `maml`, or the untrained encoder's.
        mode: transfer mode; like `recipe` None if nothing is trained.
        encoder: name of the encoder that was trained or scored.
        settings: hash of all other settings: hyper-parameters, steps, precision.
        source: study or run it is from, if nothing else distinguishes it.
        label: shortest name that distinguishes it.
        start: hash of the settings of the encoder before training, such as prompts and a trimmed vocabulary; empty
            without. With `encoder` it identifies the vectors before training, and so the baseline.
    """

    learner: str
    mode: str | None
    recipe: str | None
    encoder: str
    settings: str = ""
    source: str = ""
    label: str = ""
    start: str = ""

    @property
    def zero_shot(self) -> bool:
        """Whether it is the encoder before any training."""
        return self.learner == ZERO_SHOT

    @property
    def made_once(self) -> bool:
        """Whether all folds share one model per seed, as with a distilled student."""
        return self.mode is None and self.learner not in (ZERO_SHOT, NEUTRAL)

    def begins_as(self, other: "Arm") -> bool:
        """Return whether another arm is the encoder that it was before training."""
        return other.zero_shot and (other.encoder, other.start) == (self.encoder, self.start)


class ScoreSelection(NamedTuple):
    """Which scores are meant: measure, such as `map@20`, pool, such as `multilingual`, and split, `test` or `dev`."""

    measure: str
    pool: str
    split: str = "test"

    def __str__(self) -> str:
        """Return the selection as a title names it: `map@20, test, multilingual pool`."""
        named = {"pairs": "", "both": ", both directions", "xx-en": ", xx-en", "en-xx": ", en-xx"}
        return f"{self.measure}, {self.split}{named.get(self.pool, f', {self.pool} pool')}"


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run folder, and the name of its study or run.

    The configuration is a tree of strings; facts are time, memory and hardware, empty where the run has none. `unseen`
    are the languages of its task, and pairs with one, that are in no arrangement of its training; none if that is
    unknown.
    """

    path: Path
    source: str
    config: Mapping[str, Any]
    rows: tuple[Row, ...]
    facts: Mapping[str, Any]
    unseen: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Scored:
    """An arm on a fold with a seed: the scoring run, and its rows on all splits."""

    arm: Arm
    fold: int
    seed: int
    run: Run
    rows: tuple[Row, ...]

    @property
    def questions(self) -> QueryResults:
        """Results of each test question, read on demand; errors as `runs.per_query_results.load`."""
        path = query_results_path(self.run.path, self.rows[0]["task"], self.rows[0]["learner"], "test")
        return _load(path, path.stat().st_mtime_ns if path.is_file() else 0)

    def values(self, measure: str, pool: str, split: str = "test") -> dict[tuple[str, str], float]:
        """Return language and candidate language → value, without means."""
        return {
            (row["language"], row["candidates"]): float(row["value"])
            for row in self._rows(measure, pool, split)
            if row["language"] != MEAN and "found" not in row
        }

    def groups(self, measure: str, pool: str, split: str = "test") -> dict[str, Row]:
        """Return group rows by name, for language groups with their own means; `found` of `listed` are present."""
        rows = (row for row in self._rows(measure, pool, split) if "found" in row)
        return {row["language"].removeprefix("group "): row for row in rows}

    def _rows(self, *selection: str) -> Iterator[Row]:
        return (row for row in self.rows if (row["measure"], row["pool"], row["split"]) == selection)


@lru_cache(maxsize=_CACHED_FILES)
def _load(path: Path, changed: int) -> QueryResults:
    """Return a file's content; a `changed` file is read again."""
    return load(path)[0]


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that runs and studies have on one task.

    Attributes:
        data: fingerprint of the task's data.
        arms: labelled arms, in the order in which they were read.
        scored: each arm on each fold with each seed, if it is there.
        missing: what a study lacks, one sentence each.
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
        return tuple(sorted({scored.fold for scored in self.scored}))

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that any arm has."""
        return tuple(sorted({scored.seed for scored in self.scored}))

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """Measures, the task's first one first."""
        return tuple(dict.fromkeys(row["measure"] for scored in self.scored for row in scored.rows))

    @cached_property
    def pools(self) -> tuple[str, ...]:
        """Pools of the test scores, the task's main pool first."""
        rows = (row for scored in self.scored for row in scored.rows)
        return tuple(dict.fromkeys(row["pool"] for row in rows if row["split"] == "test"))

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Question languages, or language pairs, in the task's order."""
        return self.languages_of(self.select())

    def languages_of(self, selection: ScoreSelection) -> tuple[str, ...]:
        """Return question languages of some scores, or language pairs, in the task's order."""
        return tuple(dict.fromkeys(language for each in self.scored for language, _ in each.values(*selection)))

    def of(self, arm: Arm) -> tuple[Scored, ...]:
        """Return an arm on all its folds and seeds, in their order."""
        own = (scored for scored in self.scored if scored.arm == arm)
        return tuple(sorted(own, key=lambda scored: (scored.fold, scored.seed)))

    def by_fold(self, arm: Arm, selection: ScoreSelection) -> dict[int, tuple[Scored, ...]]:
        """Return fold → an arm that has the selected scores there, one for each seed."""
        # `of` sorts by fold; `groupby` joins neighbours only.
        scored = (each for each in self.of(arm) if each.values(*selection))
        return {fold: tuple(seeds) for fold, seeds in groupby(scored, key=lambda each: each.fold)}

    def arm(self, label: str) -> Arm:
        """Return an arm by its label; `ConfigError` names the nearest one."""
        for arm in self.arms:
            if arm.label == label:
                return arm
        raise ConfigError(f"no learner '{label}'.{nearest(label, (arm.label for arm in self.arms))}")

    def baseline_of(self, arm: Arm) -> Arm | None:
        """Return what an arm is compared with unless a baseline is named; None for a baseline, and where none is its.

        That is its own encoder before training, never another arm's. What was made elsewhere is compared with the only
        encoder before training. Without any encoder before training, the first arm is the baseline.
        """
        before = [each for each in self.arms if each.zero_shot] or list(self.arms[:1])
        own = [each for each in before if arm.begins_as(each)]
        known = own or (before if len(before) == 1 and (arm.made_once or not before[0].zero_shot) else [])
        return next((each for each in known if each != arm), None)

    def select(self, measure: str | None = None, pool: str | None = None) -> ScoreSelection:
        """Return test scores by measure and pool, by default the task's first; `ConfigError` names the nearest one.

        Ranks, which are better if they are lower, are not selected.
        """
        shares = [name for name in self.measures if not is_rank(name)]
        for what, name, known in (("measure", measure, self.measures), ("pool", pool, self.pools)):
            if name is not None and name not in known:
                raise ConfigError(f"no scores of {what} '{name}'.{nearest(name, known)}")
        if not shares or (measure and measure not in shares):
            named = measure or self.measures[0]
            raise ConfigError(f"measure '{named}' is a rank, of which lower is better; learners are compared by others")
        return ScoreSelection(measure or shares[0], pool or self.pools[0])


def abridged(missing: Sequence[str]) -> str:
    """Return the first missing item and the number of others, for the end of an error."""
    more = f", and {len(missing) - 1} more" if missing[1:] else ""
    return f": {missing[0]}{more}" if missing else ""
