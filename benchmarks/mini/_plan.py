"""What the ablations would run, and how long it takes by a few steps of each kind of stage.

Times are of the processor, one thread: other work on the machine changes them less than those of the clock.
"""

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np
import torch
from _arms import ARMS, Places, Steps, flags_of
from _score import benchmarks, opened

from metasearch.cli.distill import command, configure
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError
from metasearch.jobs.crossval.measure import texts as texts_of
from metasearch.jobs.distill.checks import resolved
from metasearch.jobs.distill.roles import Roles
from metasearch.jobs.distill.stage import run_stage
from metasearch.runs.folder import RunFolder
from metasearch.runs.markdown import markdown
from metasearch.spec.distill_run import DistillConfig
from metasearch.spec.recipe import Role
from metasearch.training.machine import keep_memory

MEASURED = 16
"""Steps of each kind of stage; the first is not timed."""
SAMPLE = 64
"""Texts of each role of a task that are encoded to see how long all take."""


@dataclass
class Timer:
    """A listener that keeps when steps ended."""

    ends: list[float] = field(default_factory=list)

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Note the time."""
        self.ends.append(time.process_time())

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Hear of a dev score, which is not timed."""

    def seconds(self) -> float:
        """Return the mean time of a step."""
        return float(np.diff(self.ends).mean())


def config_of(flags: Sequence[str]) -> DistillConfig:
    """Return the configuration that flags of `metasearch distill` stand for.

    Raises:
        ConfigError: a name or a value is wrong.
    """
    given = dict(command.make_context("distill", list(flags)).params)
    for name in ("resume", "output", "as_json"):
        del given[name]
    found: DistillConfig = configure(**given)
    return found


def plan(names: Sequence[str], steps: Steps, places: Places, minutes: float, processes: int) -> str:
    """Return the commands and times of arms, and with how many steps of stages 3 and 4 they take some core-minutes.

    Args:
        names: arms that are not finished.
        steps: of the stages.
        places: the vocabulary must be there.
        minutes: of all processes together.
        processes: at a time.

    Raises:
        ConfigError: there is no vocabulary.
    """
    if not places.vocabulary.is_dir():
        raise ConfigError(
            f"{places.vocabulary} is not there; make it with: metasearch tokenizer {places.corpus} --size 32000 "
            f"--lowercase --encoder minilm -o {places.vocabulary}"
        )
    keep_memory()
    torch.set_num_threads(1)
    measured = {}
    for name, stage in kinds(names):
        measured[name, stage] = measure(name, stage, places)
        click.echo(f"stage {stage} of {name}: {measured[name, stage]:.2f} s a step", err=True)
    scoring = score_seconds(places)
    lines, total, slope = [], 0.0, 0.0
    for name in names:
        arm = ARMS[name]
        for stage in arm.stages:
            each = measured[kind(name, stage)]
            taken = arm.passes * steps.of(stage)
            slope += arm.passes * each if stage not in ("assistant", "embedding") else 0.0
            total += taken * each
            lines.append([name, stage, str(taken), f"{each:.2f}", f"{taken * each / 60:.1f}"])
        lines.append([name, "scores", "", "", f"{scoring / 60:.1f}"])
        total += scoring
    commands = [f"metasearch distill {' '.join(flags)}" for name in names if (flags := flags_of(name, steps, places))]
    table = markdown(["arm", "stage", "steps", "s a step", "core-minutes"], lines, left=2)
    return "\n\n".join([*commands, table, _sum(total, slope, steps, minutes, processes)])


def kinds(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return arm and stage of everything whose steps have to be timed."""
    return list(dict.fromkeys(kind(name, stage) for name in names for stage in ARMS[name].stages))


def kind(name: str, stage: str) -> tuple[str, str]:
    """Return arm and stage whose steps take as long as those of an arm's stage; stages 3 and 4 differ in little."""
    if stage in ("assistant", "align"):
        return name, stage
    if stage == "embedding":
        return "full", stage
    return ("full" if name != "without-recurrence" else name), "student"


def measure(name: str, stage: str, places: Places) -> float:
    """Return the seconds of a step, of the encoder as it is before stage 1: what it knows takes no time."""
    stand_in = Places(places.out, places.corpus, places.data, places.vocabulary, places.vocabulary, places.assignments)
    flags = flags_of(name, Steps(MEASURED, MEASURED, MEASURED), stand_in if name != "assistant" else places)
    if "--student" in flags:
        flags[flags.index("--student") + 1] = str(places.vocabulary)
    flags += ["--set", f"stages.{stage}.corpus.dev=1"]
    timer = Timer()
    with tempfile.TemporaryDirectory() as folder:
        flags[flags.index("--targets") + 1] = folder
        config = resolved(config_of(flags))
        files = RunFolder(Path(folder) / stage)
        files.path.mkdir()
        run_stage(config, stage, Roles(config), files, timer)
    return timer.seconds()


def score_seconds(places: Places) -> float:
    """Return how long the scores of an arm take, by a sample of the texts of each task."""
    total = 0.0
    for benchmark in benchmarks(str(places.data)):
        encoder = opened(places.vocabulary, benchmark)
        by_role: dict[Role, dict[str, None]] = {}
        for role, text in texts_of(benchmark.split.test):
            by_role.setdefault(role, {})[text] = None
        total += sum(_encoding(encoder, list(found), role) for role, found in by_role.items())
    return total


def _encoding(encoder: Encoder, texts: Sequence[str], role: Role) -> float:
    sample = [texts[i] for i in np.linspace(0, len(texts) - 1, min(SAMPLE, len(texts))).astype(int)]
    encoder.encode(sample[:8], role)
    began = time.process_time()
    encoder.encode(sample, role)
    return (time.process_time() - began) * len(texts) / len(sample)


def _sum(total: float, slope: float, steps: Steps, minutes: float, processes: int) -> str:
    """Return the sum, and the steps of stages 3 and 4 with which it is as long as wanted.

    Args:
        total: seconds of everything.
        slope: seconds that one more step of stages 3 and 4 takes in all arms.
        steps: that the total is of.
        minutes: wanted, of all processes together.
        processes: at a time.
    """
    fits = steps.student + math.floor((60 * minutes - total) / slope) if slope else steps.student
    said = (
        f"{total / 60:.0f} core-minutes, about {total / 60 / processes:.0f} minutes with --jobs {processes}, besides "
        "reading the corpus, dev scores, outputs of frozen encoders and sentences per second."
    )
    if fits < 1:
        return f"{said} {minutes:g} core-minutes are too few for stages 1 and 2 and the scores alone."
    return f"{said} With --max-steps {fits} it is {minutes:g} core-minutes."
