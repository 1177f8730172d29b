"""Compares the steps on held-out folds; a step that is scored on a fold is never scored again."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Self

import numpy as np

from metasearch.data.benchmark import Benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.evaluation.report.formats import duration
from metasearch.pipelines.run import Run
from metasearch.runs.callbacks import Callback
from metasearch.runs.rows import Row
from metasearch.runs.versions import versions
from metasearch.search.index.local import LocalStore
from metasearch.search.settings import TuneConfig
from metasearch.search.tune.adapt.job import score_apart
from metasearch.search.tune.alignment import align
from metasearch.search.tune.choice import Choice
from metasearch.search.tune.labels import LEAST_FOLDS, Labels
from metasearch.search.tune.plan import Plan
from metasearch.search.tune.steps import Step, list_steps
from metasearch.search.tune.table import Table, results_path, split_rankings
from metasearch.search.tune.workshop import Workshop

log = logging.getLogger(__name__)


class PrefixedProgress(Callback):
    """Passes steps and encoded texts on with a name before them, but no dev scores."""

    def __init__(self, callback: Callback, what: str) -> None:
        self._callback, self._what = callback, what

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Pass a step on, with the name for its phase."""
        self._callback.on_step(step, total, self._what, terms)

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Pass encoded texts on."""
        self._callback.on_encode(f"{self._what}: {what}", done, total)


@dataclass
class Comparison:
    """Scores the steps of a tuning within `limit` seconds of it, and chooses one.

    Attributes:
        run: the tuning, in whose folder the scores are.
        steps: to compare, the simplest first.
        workshop: makes and scores their encoders.
        note: logs something that the report says, too.
    """

    run: Run[TuneConfig]
    labels: Labels
    steps: Sequence[Step]
    workshop: Workshop
    callback: Callback
    note: Callable[[str], None]
    limit: float | None = None

    @classmethod
    def open(
        cls, run: Run[TuneConfig], labels: Labels, encoder: Encoder, store: LocalStore | None, callback: Callback,
        note: Callable[[str], None], limit: float | None = None,
    ) -> Self:  # fmt: skip
        """Return the comparison of the steps that labels and documents allow, and note what they do not.

        `store` is the index of the documents by `encoder`, the base encoder.
        """
        config, neutral = run.config, encoder.neutral
        languages = () if neutral else store.plan.languages if store else labels.projectable()
        for skipped in labels.list_skipped(encoder.name if neutral else "", bool(languages), bool(config.translations)):
            note(skipped)
        if labels.alone:
            note(labels.describe_alone())
        adapters = labels.adapters(store.plan) if store else ()
        steps = list_steps(bool(languages), bool(config.translations), config.learners, adapters)
        workshop = Workshop.open(config, encoder, labels, languages, callback, store)
        return cls(run, labels, steps, workshop, callback, note, limit)

    def choose(self) -> Choice:
        """Score each step on each fold, and return the choice."""
        config, workshop = self.run.config, self.workshop
        plan = Plan.of(self.steps, self._benchmarks, workshop.per_text, config.encoder.name)
        log.info("plan: %s", plan)
        if self.limit is not None:
            plan = plan.within(self.limit - self.run.seconds)
        # A step that was scored before --time dropped it may be kept.
        done = (self.run.files.path / "aligned" / "model").is_dir()
        if done or any(step.aligned for step in plan.steps):
            how = (workshop.encoder.neutral, config.device, config.seed, self.callback)
            aligned = align(config.encoder, config.translations, self.run.files.path, *how)
            self.workshop = replace(workshop, aligned=aligned)
        plan = self._without_hopeless(plan)
        behind = self._score_folds(plan)
        table = self._score_controls()
        tried = {*behind, *(step for step, _ in table.lines)}
        dropped = [step for step in self.steps if step not in tried and step in plan.each]
        for step in dropped:
            took = duration(plan.folds * plan.each[step])
            self.note(f"'{step}' was not tried: --time has no room for it (about {took}).")
        return replace(Choice.of(table), dropped=tuple(map(str, dropped)))

    def score_apart(self, choice: Choice) -> None:
        """Note the gains of the kept adapter on new pages and on pages with labels; of the last one if none is kept."""
        step, searched = choice.kept.step, self.workshop.searched
        if searched and self.labels.alone and not step.trains:
            tried = step if step.adapts else replace(step, learner=self.labels.adapters(searched.plan)[-1])
            for figure in score_apart(searched, self.labels, tried, choice.kept.pool):
                self.note(f"{tried}, {figure}")

    def make_kept(self, choice: Choice) -> Encoder:
        """Return the encoder of the kept step, from all labels."""
        progress = PrefixedProgress(self.callback, f"all labels, {choice.kept.step}")
        return self.workshop.make(choice.kept.step, self.labels.hold_out(None), progress)

    @cached_property
    def _benchmarks(self) -> list[Benchmark]:
        return [self.labels.hold_out(fold) for fold in range(self.labels.folds)]

    def _table(self, folds: int | None = None) -> Table:
        return Table.read(self.run.files, self.run.config.accept, folds)

    def _without_hopeless(self, plan: Plan) -> Plan:
        """Return the plan without steps that train weights, if none of them could be kept.

        Steps that train nothing are scored first; where time is limited, the first one only.
        """
        cheap = [step for step in plan.steps if not step.trains]
        trained = [step for step in plan.steps if step.trains]
        for fold, step in product(range(plan.folds), cheap if self.limit is None else cheap[:1]):
            self._score(step, fold)
        if not trained:
            return plan
        table = self._score_base_control()
        if table.doubtful and not table.accept:
            why = "it would not be kept, as the labels may be wrong"
        elif self.limit is None and not table.improvable():
            why = "even perfect scores would not be significantly better"
        else:
            return plan
        if new := [f"'{step}'" for step in trained if (str(step), 0) not in self._scored]:
            self.note(f"{', '.join(new)} was not trained: {why}.")
        return replace(plan, steps=tuple(cheap), each={step: plan.each[step] for step in cheap})

    def _score_folds(self, plan: Plan) -> list[Step]:
        """Score the steps fold by fold; return those that were behind, which no further fold trains."""
        start, steps = self.run.seconds, list(plan.steps)
        for fold in range(plan.folds):
            each = (self.run.seconds - start) / max(fold, 1)
            # After this fold, the control takes about as long as all folds, and the training on all labels as one.
            left = (fold + 3) * each
            if self.limit is not None and fold >= LEAST_FOLDS and self.run.seconds + left > self.limit:
                log.warning("time: %d of %d folds are scored; another would take %s", fold, plan.folds, duration(each))
                break
            for step in steps:
                self._score(step, fold)
            behind = self._table(fold + 1).behind() if fold + 1 < plan.folds else []
            behind = [step for step in behind if (str(step), fold + 1) not in self._scored]
            for step in behind:
                self.note(
                    f"'{step}' was trained for {fold + 1} of {plan.folds} folds: it finds no more there than the best "
                    "step without training."
                )
            steps = [step for step in steps if step not in behind]
        return [step for step in plan.steps if step not in steps]

    def _score_controls(self) -> Table:
        """Score the controls of the first step and of trained ones that would be kept, and return the table."""
        table = self._score_base_control()
        if not table.meaningful:
            self.note(
                f"The labels may be wrong, or unknown to the encoder: without training, they are answered no better "
                f"than shuffled ones ({100 * float(table.scores[0].mean()):.1f})."
            )
        while waiting := table.uncontrolled():
            for step, fold in product(waiting, np.unique(table.folds).tolist()):
                self._score(step.control, fold)
            table = self._table()
        return table

    def _score_base_control(self) -> Table:
        for fold in np.unique(self._table().folds).tolist():
            self._score(self.steps[0].control, fold)
        return self._table()

    @property
    def _scored(self) -> set[tuple[str, int]]:
        """Step and fold of all scores."""
        return {(row["learner"], row["fold"]) for row in self.run.files.results()}

    def _score(self, step: Step, fold: int) -> None:
        files, config, benchmark = self.run.files, self.run.config, self._benchmarks[fold]
        if (str(step), fold) in self._scored:
            return
        what, task = f"fold {fold + 1} of {self.labels.folds}, {step}", benchmark.task
        rank = self.steps.index(replace(step, shuffled=False)) + len(self.steps) * step.shuffled
        found = self.workshop.score(step, benchmark, self.labels.pools(), PrefixedProgress(self.callback, what))
        facts: Row = {
            "task": task.name, "encoder": config.encoder.name, "learner": str(step), "rank": rank,
            "monitor": task.monitor, "fold": fold, "split": "test", "seed": config.seed,
            "data": self.labels.everything.fingerprint, "weights": self.workshop.encoder.origin, "versions": versions(),
        }  # fmt: skip
        # Before the rows, which say that the step is scored.
        for pool, results in split_rankings({pool: each.questions for pool, each in found.items()}).items():
            results.save(results_path(files, task.name, step, fold, pool), facts)
        files.add_results({**facts, **row} for each in found.values() for row in each.rows())
        shown = ", ".join(f"{pool} {100 * each.mean(task.monitor, pool):.1f}" for pool, each in found.items())
        log.info("%s: %s %s", what, task.monitor, shown)
