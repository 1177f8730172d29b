"""Runs `metasearch crossval` with its cells in this process, as the processes of cells would run them."""

from functools import partial

import pytest

from helpers.commands import metasearch
from metasearch.errors import MetasearchError
from metasearch.pipelines.folders import open_run
from metasearch.pipelines.study import runner
from metasearch.pipelines.study.cell import begin_attempt
from metasearch.pipelines.study.launchers import JobEnd
from metasearch.runs.folder import RunFolder
from metasearch.runs.rows import read_rows

STEPS = 8
FLAGS = [
    "--task=demo-sts", "--encoder=tiny", "--mode=mono-bi", "--learner=fine-tune", "--folds=0,", "--seeds=0",
    f"--max-steps={STEPS}", "--threads=1", "--device=cpu", "--encoder=tiny",
]  # fmt: skip


LONG = [*FLAGS, "--max-steps=40", "--set=budget.meta_train=4000", "--set=budget.eval_every=0"]
"""A training of some seconds, so that it can be stopped on its way."""
EIGHT = [*LONG, "--seeds=0,1,2,3"]
"""Eight cells, of which four are such trainings."""


def without(*names):
    """Return the flags without some of them, which a test gives itself: values of a repeated flag add up."""
    return [each for each in FLAGS if each.partition("=")[0] not in names]


ZERO, TUNED = "zero-shot/fold-0-seed-0", "fine-tune-mono-bi/fold-0-seed-0"


class Inline:
    """A launcher that runs cells in this process, each at once."""

    tick = 0.0
    begun: list[str]

    def __init__(self, study, stored):
        self.study, self.trust = study, stored.config.encoder.trust_remote_code
        self.active = {}

    def submit(self, names):
        """Run cells; their ends are collected later."""
        for name in names:
            self.begun.append(name)
            self.active[name] = JobEnd(0)
            try:
                open_run(self.study.at(name)).execute(trust_remote_code=self.trust)
            except MetasearchError as error:
                begin_attempt(self.study.log(name), str(error))
                self.active[name] = JobEnd(error.exit_code)
        return names

    def collect(self):
        """Return all ends."""
        ended, self.active = self.active, {}
        return ended

    def stop(self, again):
        """Do nothing: cells have ended."""


def inline(monkeypatch):
    """Run cells in this process; return the names of those that were begun."""
    monkeypatch.setattr(runner, "open_launcher", Inline)
    monkeypatch.setattr(Inline, "begun", [], raising=False)
    return Inline.begun


run = partial(metasearch, "crossval")
"""Runs `metasearch crossval`, as `metasearch` does."""


def undisturbed(folder, *flags):
    """Return the scores of a study whose cells run in this process."""
    with pytest.MonkeyPatch.context() as patch:
        inline(patch)
        run(*flags, "-o", folder)
    return scores(folder)


def attempts(study, name):
    """Return how often a cell was begun."""
    return study.log(name).read_text(encoding="utf-8", errors="replace").count("--- attempt, ")


def steps(study, name=TUNED):
    """Return the steps that the log of a cell has."""
    return [event["step"] for event in RunFolder(study.at(name)).events() if "dev" not in event]


def scores(folder):
    """Return what a study's scores depend on, without the versions."""
    rows = read_rows(folder / "results.jsonl")
    return [{key: value for key, value in row.items() if key != "versions"} for row in rows]
