"""A tuning in its folder; a step that is scored on a fold is never scored again.

config.yaml      the settings; `metasearch resume` reads it
results.jsonl    the scores of each step on each fold
neutral/, aligned/   the encoder that was aligned on translations, and the one before
model/           the kept encoder, trained on all labels; README.md is its card
base/, index/    passages of the documents, if there are any: by the base encoder, and as the kept step searches them
report.html, report.md
"""

import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from metasearch.config.languages import UNKNOWN
from metasearch.config.projection import LEAST, ProjectionSettings
from metasearch.config.run import TuneConfig
from metasearch.data.benchmark import Benchmark
from metasearch.data.labels import load_labels
from metasearch.data.records import RetrievalData, texts_of
from metasearch.data.texts import tagged_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.maps import estimate
from metasearch.encoders.neutral import append, is_neutral
from metasearch.encoders.unknown_languages import warn_of_unknown
from metasearch.errors import DataError, Interrupted, RunFolderError, quoted
from metasearch.evaluation.report.formats import duration
from metasearch.io import NEW, atomic_write, move
from metasearch.pipelines.alignment import align
from metasearch.pipelines.card_file import CARD
from metasearch.pipelines.cards import find_base
from metasearch.pipelines.neutral import vectors_of
from metasearch.pipelines.run import ENCODER, Run, require_disk_space, stopped
from metasearch.runs.callbacks import Callback, OpenCallback, PrefixedProgress
from metasearch.runs.rows import Row
from metasearch.runs.torchrun_env import require_alone
from metasearch.runs.versions import describe_versions, versions
from metasearch.search.index.adapters import adapters_in
from metasearch.search.index.local import LocalStore
from metasearch.search.query.passages import ROLE, cutting
from metasearch.search.query.searcher import Searcher
from metasearch.search.query.update import update
from metasearch.search.settings import IndexSettings
from metasearch.search.tune.adapt.job import Trial, labels_on_pages
from metasearch.search.tune.choice import Choice
from metasearch.search.tune.form import warn_of_form
from metasearch.search.tune.labels import LEAST_FOLDS, LEAST_LABELS, Labels
from metasearch.search.tune.long_documents import cut_long
from metasearch.search.tune.pages import quoted_languages
from metasearch.search.tune.plan import Plan
from metasearch.search.tune.questions import show
from metasearch.search.tune.report import FLATTERS, PLAIN, RANKINGS, build_card, build_report
from metasearch.search.tune.steps import Step, list_steps
from metasearch.search.tune.table import Table, results_path, split_rankings
from metasearch.search.tune.training import ALIGNMENT, cost
from metasearch.search.tune.workshop import Workshop
from metasearch.training.hardware import used

log = logging.getLogger(__name__)

_SEARCHED = 2000
"""Passages of pages without a label that a fold searches, about: each trained step encodes them once for each fold."""


_ADAPTER = "tune"
"""Name of the adapter in the index."""


class TuneRun(Run[TuneConfig]):
    """Scores the steps on held-out folds within `limit` seconds, and trains the kept step on all labels.

    `labels` are what `metasearch.tune` takes, unless the configuration names their file.
    """

    settings = TuneConfig

    def __init__(self, config: TuneConfig, folder: Path, labels: Any = None, limit: float | None = None) -> None:
        super().__init__(config, folder)
        self.given, self.limit = labels, limit
        self.store: LocalStore | None = None
        """The index of the documents by the base encoder."""
        self.notes: list[str] = []

    @property
    def continuation(self) -> str:
        """The command of a file of labels; of labels in memory the call."""
        return super().continuation if self.config.labels else "metasearch.tune(...), the same call in Python"

    def load_data(self) -> str:
        """Check the learners, and read the labels."""
        require_alone("a tuning")
        config = self.config
        list_steps(False, learners=config.learners)
        given = config.labels if self.given is None else self.given
        if isinstance(given, str) and not given:
            raise DataError(f"{self.files.path}: the labels are in no file. Continue with: {self.continuation}")
        if not isinstance(given, Benchmark | RetrievalData):
            identical, named = config.ignore_identical_ids, bool(config.documents)
            given = load_labels(given, config.columns, ignore_identical_ids=identical, named=named)
        self.labels = Labels.of(given, config.folds)
        self.notes += self.labels.data.notes  # logged by what read them
        log.info("labels: %s", self.labels.data.describe())
        return self.labels.data.fingerprint

    def load_encoders(self) -> Mapping[str, str]:
        """Load the base encoder, and cut long documents of labels into the passages that it reads."""
        length = self.labels.benchmark.task.max_length if self.labels.benchmark else None
        self.encoder = load_encoder(
            self.config.encoder, length, identify=True, plain_for="tune", device=self.config.device
        )
        languages = sorted(quoted_languages(self.labels.data) - {UNKNOWN})
        self._index = IndexSettings(detect=tuple(languages) if len(languages) > 1 else "all")
        if not self.config.documents and self.labels.whole:
            self._cut_long()
        warn_of_unknown(self.encoder, ((each.language, each.text) for each in texts_of(self.labels.everything)))
        return {ENCODER: self.encoder.origin}

    def validate(self) -> None:
        """Check the disk space."""
        require_disk_space(self.files.path, self.encoder.size)

    def work(self, open_callback: OpenCallback) -> None:
        """Compute missing scores; train, save, index and report."""
        try:
            with open_callback("tune") as callback:
                self._work(callback)
        except Interrupted:
            raise stopped(self.files.path, "stopped; finished scores are kept", self.continuation) from None

    def _work(self, callback: Callback) -> None:
        files, config = self.files, self.config
        if config.documents:
            self._read_documents(callback)
        choice = self._compare(callback) if self.labels.benchmark else None
        if choice:
            log.info("%s", choice)
            progress = PrefixedProgress(callback, f"all labels, {choice.kept.step}")
            encoder = self.workshop.make(choice.kept.step, self.labels.hold_out(None), progress)
        else:
            encoder = self._project_alone(callback)
        files.save_model(encoder.save, encoder.size)
        if config.documents:
            self._index_documents(choice, callback)
        self._report(choice, encoder)

    def _index_documents(self, choice: Choice | None, callback: Callback) -> None:
        """Make the index that is searched as the kept step was scored."""
        to, step = self.files.path / "index", choice.kept.step if choice else Step(projected=True)
        ranking = {**PLAIN, **RANKINGS.get(choice.kept.pool, {})} if choice else {}
        settings = self._index

        def write(encoder: Encoder, name: str) -> None:
            update(to, self.config.documents, encoder, settings, name, callback=callback, ranking=ranking)

        if self.store and not step.trains:
            if not to.exists():
                shutil.copytree(self.store.folder, to.with_name(f"{to.name}{NEW}"), dirs_exist_ok=True)
                move(to.with_name(f"{to.name}{NEW}"), to)
            settings = settings.model_copy(update={"neutral": None if step.projected else False})
            write(self.encoder, self.config.encoder.name)
            if choice and step.adapts:
                self._adapt(to, choice)
        else:
            # As scored: in float32.
            write(load_encoder(str(self.files.model), device=self.config.device), str(self.files.model.resolve()))

    def _adapt(self, index: Path, choice: Choice) -> None:
        """Compute the adapter for the vectors of the index, which is searched with it."""
        searcher = Searcher(LocalStore.open(index), self.encoder)
        trial = Trial.of(searcher, self._named, self.config.folds, self.config.same_page, self.config.base)
        # A tuning that was stopped after this continues here.
        if _ADAPTER not in {each.name for each in adapters_in(trial.index.store.state)}:
            trial.add(_ADAPTER, choice.kept.step.learner, str(choice), kept=True)

    @property
    def _flatters(self) -> bool:
        return self.labels.whole and not self.config.documents

    def _report(self, choice: Choice | None, encoder: Encoder) -> None:
        files, data = self.files, self.labels.data
        result, languages = str(choice) if choice else self.notes[-1], sorted(data.languages)
        sentences = [FLATTERS, result] if choice and self._flatters else [result]
        if choice and choice.kept.step.adapts:
            sentences.append("The adapter is in index/, computed from all labels; the model in model/ has none.")
        elif choice and choice.kept.step.trains:
            sentences.append(f"The model in model/ is trained on all {len(data.questions)} labels.")
        ranking = RANKINGS.get(choice.kept.pool, {}) if choice else {}
        if self.config.documents:
            sentences.append(f'Search: metasearch search {quoted(files.path)} "..."')
        elif ranking:
            options = " ".join(f"--{name}" for name in ranking)
            how = f"metasearch index DOCUMENTS --encoder {quoted(files.model)} {options} -o INDEX"
            sentences.append(f"Index documents to be searched so: {how}")
        facts = {"encoder": self.encoder.name, "labels": data.describe(), "languages": ", ".join(languages)}
        facts |= {"seed": str(self.config.seed), "versions": describe_versions(versions())}
        shown = show(files, self.labels.benchmark.task.name, choice) if choice and self.labels.benchmark else []
        texts = build_report(sentences, facts, choice, self.notes, shown)
        source = find_base("base", self.config.encoder.name, self.encoder.origin)
        atomic_write(files.model / CARD, build_card(encoder, source, result, languages, facts))
        atomic_write(files.path / "report.html", texts["report.html"])
        files.finish(texts["report.md"], used(self.seconds, encoder.device))

    # The steps.

    def _compare(self, callback: Callback) -> Choice:
        """Score each step on each fold, and return the choice."""
        config, neutral = self.config, is_neutral(self.encoder)
        languages = () if neutral else self.store.plan.languages if self.store else self.labels.projectable()
        self._require_same_pool()
        self._note_skipped(languages)
        self._warn_of_form()
        steps = list_steps(bool(languages), bool(config.translations), config.learners, indexed=bool(self.store))
        workshop = Workshop.open(config, self.encoder, self.labels, languages, callback, self.store)
        benchmarks = [self.labels.hold_out(fold) for fold in range(self.labels.folds)]
        costs = {step: workshop.per_text * cost(step, benchmarks[0], config.encoder.name) for step in steps}
        plan = Plan(tuple(steps), len(benchmarks), costs, workshop.per_text * ALIGNMENT)
        log.info("plan: %s", plan)
        if self.limit is not None:
            plan = plan.within(self.limit - self.seconds)
        # A step that was scored before --time dropped it may be kept.
        done = (self.files.path / "aligned" / "model").is_dir()
        if done or any(step.aligned for step in plan.steps):
            how = (neutral, config.device, config.seed, callback)
            workshop = replace(workshop, aligned=align(config.encoder, config.translations, self.files.path, *how))
        self.workshop = workshop
        plan = self._without_hopeless(plan, steps, benchmarks, callback)
        self._score_folds(plan, steps, benchmarks, callback)
        table = self._score_controls(steps, benchmarks, callback)
        tried = {step for step, _ in table.lines}
        dropped = [step for step in steps if step not in tried and step in plan.each]
        for step in dropped:
            took = duration(plan.folds * plan.each[step])
            self._note(f"'{step}' was not tried: --time has no room for it (about {took}).")
        return replace(Choice.of(table), dropped=tuple(map(str, dropped)))

    def _without_hopeless(
        self, plan: Plan, steps: Sequence[Step], benchmarks: Sequence[Benchmark], callback: Callback
    ) -> Plan:
        """Score the steps that train nothing, and return the plan without the others if even perfect scores lose.

        Where time is limited, all steps are scored fold by fold.
        """
        if self.limit is not None:
            return plan
        cheap = [step for step in plan.steps if not step.trains]
        for benchmark, step in product(benchmarks[: plan.folds], cheap):
            self._score(step, steps.index(step), benchmark, callback)
        trained = [step for step in plan.steps if step.trains]
        if not trained or Table.read(self.files, self.config.accept).improvable():
            return plan
        names = ", ".join(f"'{step}'" for step in trained)
        self._note(f"{names} was not trained: even perfect scores would not be significantly better.")
        return replace(plan, steps=tuple(cheap), each={step: plan.each[step] for step in cheap})

    def _score_folds(
        self, plan: Plan, steps: Sequence[Step], benchmarks: Sequence[Benchmark], callback: Callback
    ) -> None:
        """Score the planned steps on the planned folds, as far as the time allows."""
        start = self.seconds
        for fold, benchmark in enumerate(benchmarks[: plan.folds]):
            each = (self.seconds - start) / max(fold, 1)
            # After this fold, the control takes about as long as all folds, and the training on all labels as one.
            left = (fold + 3) * each
            if self.limit is not None and fold >= LEAST_FOLDS and self.seconds + left > self.limit:
                log.warning("time: %d of %d folds are scored; another would take %s", fold, plan.folds, duration(each))
                break
            for step in plan.steps:
                self._score(step, steps.index(step), benchmark, callback)

    def _score_controls(self, steps: Sequence[Step], benchmarks: Sequence[Benchmark], callback: Callback) -> Table:
        """Score the controls of the first step and of trained ones that would be kept, and return the table."""
        table = Table.read(self.files, self.config.accept)
        for fold in np.unique(table.folds).tolist():
            self._score(steps[0].control, len(steps), benchmarks[fold], callback)
        table = Table.read(self.files, self.config.accept)
        if not table.meaningful:
            self._note(
                f"The labels may be wrong, or unknown to the encoder: without training, they are answered no better "
                f"than shuffled ones ({100 * float(table.scores[0].mean()):.1f})."
            )
        while waiting := table.uncontrolled():
            for step, fold in product(waiting, np.unique(table.folds).tolist()):
                self._score(step.control, len(steps) + steps.index(step), benchmarks[fold], callback)
            table = Table.read(self.files, self.config.accept)
        return table

    def _score(self, step: Step, rank: int, benchmark: Benchmark, callback: Callback) -> None:
        """Score a step on a fold, unless it is scored."""
        pools, task, fold = self.labels.pools(), benchmark.task, benchmark.fold
        if (str(step), fold) in {(row["learner"], row["fold"]) for row in self.files.results()}:
            return
        what = f"fold {fold + 1} of {self.labels.folds}, {step}"
        found = self.workshop.score(step, benchmark, pools, PrefixedProgress(callback, what))
        facts: Row = {
            "task": task.name, "encoder": self.config.encoder.name, "learner": str(step), "rank": rank,
            "monitor": task.monitor, "fold": fold, "split": "test", "seed": self.config.seed,
            "data": self.labels.everything.fingerprint, "weights": self.encoder.origin, "versions": versions(),
        }  # fmt: skip
        # Before the rows, which say that the step is scored.
        for pool, results in split_rankings({pool: each.questions for pool, each in found.items()}).items():
            results.save(results_path(self.files, task.name, step, fold, pool), facts)
        self.files.add_results({**facts, **row} for each in found.values() for row in each.rows())
        shown = ", ".join(f"{pool} {100 * each.mean(task.monitor, pool):.1f}" for pool, each in found.items())
        log.info("%s: %s %s", what, task.monitor, shown)

    def _project_alone(self, callback: Callback) -> Encoder:
        """Return the encoder without language bias, which takes no label, or unchanged."""
        data, done = self.labels.everything, "The base encoder is kept: it has a projection."
        if not is_neutral(self.encoder):
            done = "The base encoder is kept: the texts are too few for a projection."
            if languages := self.labels.projectable():
                texts = tagged_of(data, ProjectionSettings().texts, languages)
                append(self.encoder, estimate(vectors_of(self.encoder, texts, callback)))
                done = "Language bias was removed from the base encoder, which needs no labels."
        least = f"at least {LEAST_LABELS} in {2 * LEAST_FOLDS} groups"
        self._note(f"Too few labelled questions to hold some out ({len(data.questions)}; {least}). {done}")
        return self.encoder

    # Notes and documents.

    def _note_skipped(self, languages: tuple[str, ...]) -> None:
        needed, found = f"{LEAST} texts or more in each of two languages", ", ".join(sorted(self.labels.data.languages))
        if is_neutral(self.encoder):
            self._note(f"{self.encoder.name} has a language-neutral projection already; no other one is tried.")
        elif not languages:
            skipped = f"The language-neutral projection was skipped: it needs {needed}, and the labels and documents "
            self._note(f"{skipped}are in {found}.")
        if len(self.labels.pools()) == 1:
            self._note("Balanced scores were skipped: the documents are in one language.")
        if not self.config.translations:
            self._note("Alignment was skipped: it needs --translations.")

    def _note(self, note: str) -> None:
        """Log something that the report says, too."""
        log.info("%s", note)
        self.notes.append(note)

    def _read_documents(self, callback: Callback) -> None:
        """Index the documents by the base encoder, and join the labels to their pages."""
        if not self.labels.whole:
            self._note("The task has pools of its own, which are scored; the documents are only indexed.")
            return
        config, self._named = self.config, self.labels.data
        index = self.files.path / "base"
        update(index, config.documents, self.encoder, self._index, config.encoder.name, callback=callback)
        self.store = LocalStore.open(index)
        how = config.folds, config.same_page, _SEARCHED, config.documents, config.base
        self.labels, notes = labels_on_pages(self.store, self._named, *how)
        for note in notes:
            self._note(note)

    def _cut_long(self) -> None:
        """Cut labelled documents into passages that the encoder would truncate."""
        (_, how), encoder = cutting(self._index, self.encoder), self.encoder
        data, note = cut_long(self.labels.data, how, lambda texts: encoder.is_truncated(texts, ROLE).tolist())
        if note:
            self.labels = Labels.of(data, self.config.folds)
            self._note(note)

    def _warn_of_form(self) -> None:
        everything, beside = self.labels.everything.candidates, self.labels.beside
        answers = [each for each in everything if each.answers and each.id not in beside]
        if warning := warn_of_form(answers, [each for each in everything if not each.answers]):
            log.warning("%s", warning)
            self.notes.append(warning)

    def _require_same_pool(self) -> None:
        """Raise `RunFolderError` where other passages were scored."""
        now = self.labels.everything.fingerprint
        if any(row["data"] != now for row in self.files.results()):
            raise RunFolderError(
                f"{self.files.path}: its scores are of other passages: the documents changed, or an earlier version "
                "scored labelled texts; choose another -o"
            )
