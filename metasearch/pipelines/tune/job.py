"""A tuning in its folder; a step that is scored on a fold is never scored again.

config.yaml      the settings; `metasearch resume` reads it
results.jsonl    the scores of each step on each fold
neutral/, aligned/   the encoder that was aligned on translations, and the one before
model/           the kept encoder, trained on all labels; README.md is its card
index/           passages of the documents, if there are any
report.html, report.md
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from metasearch.config import registry, yaml
from metasearch.config.distill_run import DistillConfig, RolesConfig, TextsConfig
from metasearch.config.index import IndexSettings
from metasearch.config.languages import UNKNOWN
from metasearch.config.library import load_distillation
from metasearch.config.postprocessing import NeutralSettings
from metasearch.config.run import TRAINED_BY_DEFAULT, ComputeConfig, Device, TuneConfig
from metasearch.data.benchmark import Benchmark
from metasearch.data.documents.read import read
from metasearch.data.locate import is_hub_name
from metasearch.data.overlap import Index, TestSet, key
from metasearch.data.records import Candidate, RetrievalData
from metasearch.data.texts import read_tagged, tagged_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.neutral import append, estimate, is_neutral
from metasearch.errors import DataError, Interrupted, RunFolderError, quoted
from metasearch.evaluation.report.formats import duration
from metasearch.io import atomic_write
from metasearch.pipelines.cards import find_base, tuned_card
from metasearch.pipelines.distill.job import DistillRun
from metasearch.pipelines.neutral import neutralise_encoder, vectors_of
from metasearch.pipelines.publish import CARD
from metasearch.pipelines.run import ENCODER, Row, Run, require_disk_space, silent, stopped
from metasearch.pipelines.tune.choice import Choice, fold_label, read_choice
from metasearch.pipelines.tune.folds import LEAST_FOLDS, LEAST_LABELS, Labels
from metasearch.pipelines.tune.plan import Plan, make_plan
from metasearch.pipelines.tune.report import OPTIONS, build_report
from metasearch.pipelines.tune.steps import list_steps, pools, projectable
from metasearch.pipelines.tune.workshop import Workshop, encode_all
from metasearch.retrieval.indexes import index_documents
from metasearch.retrieval.search.passages import cutting
from metasearch.runs.callbacks import Callback, OpenCallback
from metasearch.runs.folder import CONFIG, RunFolder
from metasearch.runs.per_query_results import query_results_path
from metasearch.runs.torchrun_env import require_alone
from metasearch.runs.versions import describe_versions, versions
from metasearch.training.hardware import used

log = logging.getLogger(__name__)

Paths = str | Path | Sequence[str | Path]
_SEARCHED = 2000
"""Unlabelled passages that a fold searches at most: each trained step encodes them once for each fold."""


_ALIGNMENT = ("stages.align.budget.steps=320", "stages.align.budget.epochs=4")
"""Budget of the alignment, as in docs/few-labels.md."""
_DEV_PAIRS = 100
"""Pairs of each language that score the alignment; a tenth of them where there are fewer than ten times as many."""


class _PrefixedProgress(Callback):
    """Passes on steps and texts, but no dev scores: they are of texts that are trained on."""

    def __init__(self, callback: Callback, what: str) -> None:
        self._callback, self._what = callback, what

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Pass on a step."""
        self._callback.on_step(step, total, self._what, terms)

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Pass on encoded texts."""
        self._callback.on_encode(f"{self._what}: {what}", done, total)


class TuneRun(Run[TuneConfig]):
    """Scores the steps on held-out folds within `limit` seconds, and trains the kept step on all labels."""

    settings = TuneConfig

    def __init__(
        self,
        config: TuneConfig,
        folder: Path,
        labels: Benchmark | RetrievalData | None = None,
        limit: float | None = None,
    ) -> None:
        super().__init__(config, folder)
        self.given, self.limit = labels, limit
        self.notes: list[str] = []

    @property
    def continuation(self) -> str:
        """The command of a file of labels; of labels in memory the call."""
        return super().continuation if self.config.labels else "metasearch.tune(...), the same call in Python"

    def load_data(self) -> str:
        """Check the learners, and read the labels."""
        require_alone("a tuning")
        list_steps(False, learners=self.config.learners)
        given = self.given
        if given is None:
            if not self.config.labels:
                raise DataError(f"{self.files.path}: the labels are in no file. Continue with: {self.continuation}")
            given = RetrievalData.from_rows(
                self.config.labels, self.config.columns, ignore_identical_ids=self.config.ignore_identical_ids
            )
        self.labels = Labels.of(given, self.config.folds)
        self.notes += self.labels.data.notes  # logged by what read them
        log.info("labels: %s", self.labels.data.describe())
        return self.labels.data.fingerprint

    def load_encoders(self) -> Mapping[str, str]:
        """Load the base encoder, and read the documents as it would index them."""
        length = self.labels.benchmark.task.max_length if self.labels.benchmark else None
        self.encoder = load_encoder(self.config.encoder, length, identify=True, device=self.config.device)
        self._read_documents()
        return {ENCODER: self.encoder.origin}

    def validate(self) -> None:
        """Check the disk space."""
        require_disk_space(self.files.path, self.encoder.size)

    def work(self, open_callback: OpenCallback) -> None:
        """Compute missing scores; train, save, index and report."""
        try:
            self._work(open_callback)
        except Interrupted:
            raise stopped(self.files.path, "stopped; finished scores are kept", self.continuation) from None

    def _work(self, open_callback: OpenCallback) -> None:
        files, config = self.files, self.config
        with open_callback("tune") as callback:
            choice = self._compare(callback) if self.labels.benchmark else None
            if choice:
                log.info("%s", choice)
                step = choice.kept.step
                progress = _PrefixedProgress(callback, f"all labels, {step}")
                encoder = self.workshop.make(step, self.labels.hold_out(None), progress)
            else:
                encoder = self._project_alone(callback)
            files.save_model(encoder.save, encoder.size)
            if config.documents:
                asked = self._index.model_dump(exclude_defaults=True)
                index_documents(
                    config.documents, files.path / "index", str(files.model), asked, config.device,
                    config.encoder.trust_remote_code, callback=callback,
                )  # fmt: skip
        result = str(choice) if choice else self.notes[-1]
        sentences = [result]
        if choice and choice.kept.step.learner:
            sentences.append(f"The model in model/ is trained on all {len(self.labels.data.questions)} labels.")
        if config.documents:
            option = OPTIONS.get(choice.kept.pool, "") if choice else ""
            sentences.append(f'Search: metasearch search {quoted(files.path / "index")} "..."{option}')
        facts = self._facts()
        texts = build_report(sentences, facts, choice, self.notes)
        source = find_base("base", config.encoder.name, self.encoder.origin)
        atomic_write(files.model / CARD, tuned_card(encoder, source, result, sorted(self.labels.data.languages), facts))
        atomic_write(files.path / "report.html", texts["report.html"])
        files.finish(texts["report.md"], used(self.seconds, encoder.device))

    # The steps.

    def _compare(self, callback: Callback) -> Choice:
        """Score each step on each fold, and return the choice."""
        benchmarks = [self.labels.hold_out(fold) for fold in range(self.labels.folds)]
        languages = () if is_neutral(self.encoder) else projectable([each.split.train for each in benchmarks])
        self._note_skipped(languages)
        steps = list_steps(bool(languages), bool(self.config.translations), self.config.learners)
        vectors, per_text = encode_all(self.encoder, self.labels.everything, callback)
        plan = make_plan(self.config.encoder.name, steps, benchmarks, per_text)
        log.info("plan: %s", plan)
        if self.limit is not None:
            plan = plan.within(self.limit - self.seconds)
        # A step that was scored before --time dropped it may be kept.
        done = (self.files.path / "aligned" / "model").is_dir()
        aligned = self._align(callback) if done or any(step.aligned for step in plan.steps) else None
        self.steps = steps
        self.workshop = Workshop(self.config, self.encoder, vectors, languages, aligned)
        start = self.seconds
        for benchmark in benchmarks[: plan.folds]:
            fold = benchmark.fold
            if fold >= LEAST_FOLDS and self._late(plan, fold, (self.seconds - start) / fold):
                break
            self._score_fold(plan, benchmark, callback)
        return read_choice(self.files)

    def _score_fold(self, plan: Plan, benchmark: Benchmark, callback: Callback) -> None:
        ranked = pools(self.labels.data)
        known = {(row["learner"], row["fold"]) for row in self.files.results()}
        for step in plan.steps:
            if (str(step), benchmark.fold) in known:
                continue
            what = f"fold {benchmark.fold + 1} of {plan.folds}, {step}"
            found = self.workshop.score(step, benchmark, ranked, _PrefixedProgress(callback, what))
            facts: Row = {"task": benchmark.task.name, "encoder": self.config.encoder.name, "learner": str(step)}
            facts |= {"rank": self.steps.index(step), "monitor": benchmark.task.monitor}
            facts |= {"fold": benchmark.fold, "split": "test", "seed": self.config.seed}
            facts |= {"data": self.labels.data.fingerprint, "weights": self.encoder.origin, "versions": versions()}
            # Before the rows, which say that the step is scored.
            label = fold_label(benchmark.fold)
            found.questions.save(query_results_path(self.files.path, benchmark.task.name, str(step), label), facts)
            self.files.add_results({**facts, **row} for row in found.rows())
            shown = ", ".join(f"{pool} {100 * found.mean(benchmark.task.monitor, pool):.1f}" for pool in ranked)
            log.info("%s: %s %s", what, benchmark.task.monitor, shown)

    def _late(self, plan: Plan, fold: int, each: float) -> bool:
        """Whether another fold and the training on all labels, of `each` seconds, would take longer than the limit."""
        if self.limit is None or self.seconds + 2 * each <= self.limit:
            return False
        log.warning("time: %d of %d folds are scored; another would take %s", fold, plan.folds, duration(each))
        return True

    def _project_alone(self, callback: Callback) -> Encoder:
        """Return the encoder without language bias, which takes no label, or unchanged."""
        languages = projectable([self.labels.everything])
        few = (
            f"Too few labelled questions to hold some out ({len(self.labels.data.questions)}; at least {LEAST_LABELS} "
            f"in {2 * LEAST_FOLDS} groups)"
        )
        if is_neutral(self.encoder) or not languages:
            why = "it has a projection" if is_neutral(self.encoder) else "the texts are too few for a projection"
            self._note(f"{few}. The base encoder is kept: {why}.")
            return self.encoder
        texts = tagged_of(self.labels.everything, NeutralSettings().texts, languages)
        append(self.encoder, estimate(vectors_of(self.encoder, texts, callback)))
        self._note(f"{few}. Language bias was removed from the base encoder, which needs no labels.")
        return self.encoder

    def _align(self, callback: Callback) -> Path:
        """Return the encoder aligned on translations; finished work is not repeated."""
        folder, start = self.files.path / "aligned", self.config.encoder.name
        texts = read_tagged(list(map(Path, self.config.translations)), 10 * _DEV_PAIRS)
        dev = max(1, min(map(len, texts.values())) // 10)
        if not is_neutral(self.encoder):
            neutral = self.files.path / "neutral"
            if not neutral.is_dir():
                settings = NeutralSettings()
                first = {language: own[: settings.texts] for language, own in texts.items()}
                loaded = load_encoder(self.config.encoder, device=self.config.device)
                neutralise_encoder(loaded, first, settings, neutral, callback=callback)
            start = str(neutral.resolve())
        config = DistillConfig(
            recipe=load_distillation("align", [*_ALIGNMENT, f"stages.align.corpus.dev={dev}"]),
            encoders=RolesConfig(teacher=start, student=start, trust_remote_code=self.config.encoder.trust_remote_code),
            texts=TextsConfig(corpus=self.config.translations),
            compute=ComputeConfig(device=self.config.device),
            seed=self.config.seed,
        )
        run = DistillRun.open(folder) if (folder / "config.yaml").is_file() else DistillRun(config, folder)
        run.execute(trust_remote_code=self.config.encoder.trust_remote_code)
        return folder / "model"

    def _note_skipped(self, languages: tuple[str, ...]) -> None:
        data = self.labels.data
        if is_neutral(self.encoder):
            self._note(f"{self.encoder.name} has a language-neutral projection already; no other one is tried.")
        elif not languages:
            self._note(
                "The language-neutral projection was skipped: it needs 20 texts or more in each of two languages, and "
                f"the labels and documents are in {', '.join(sorted(data.languages))}."
            )
        if len(pools(data)) == 1:
            self._note("Balanced scores were skipped: the documents are in one language.")
        if not self.config.translations:
            self._note("Alignment was skipped: it needs --translations.")

    def _note(self, note: str) -> None:
        """Log something that the report says, too."""
        log.info("%s", note)
        self.notes.append(note)

    def _facts(self) -> dict[str, str]:
        return {
            "encoder": self.encoder.name,
            "labels": self.labels.data.describe(),
            "languages": ", ".join(sorted(self.labels.data.languages)),
            "seed": str(self.config.seed),
            "versions": describe_versions(versions()),
        }

    # Documents.

    def _read_documents(self) -> None:
        """Read the passages of the documents that hold no labelled document, as the index will have them."""
        languages = sorted(self.labels.data.languages - {UNKNOWN})
        self._index = IndexSettings(detect=tuple(languages) if len(languages) > 1 else "all")
        if not self.config.documents:
            return
        _, how = cutting(self._index, self.encoder)
        labelled = [(each.text, each.id) for each in self.labels.data.candidates]
        known = Index(TestSet("labels", tuple(labelled), tuple(labelled)))
        found = [each for each in read(self.config.documents, how) if not known.find(key(each.text))]
        step = max(1, -(-len(found) // _SEARCHED))
        extra = [
            Candidate(f"passage {i}", each.language, each.text, f"passage {i}") for i, each in enumerate(found[::step])
        ]
        self.labels = replace(self.labels, extra=tuple(extra))
        if not self.labels.benchmark:
            return
        if found:
            self._note(f"Folds also search {len(extra)} of {len(found)} passages of the documents.")
        else:
            self._note("Folds search the labelled documents alone: every passage of the documents holds one of them.")


# The Python interface.


@dataclass(frozen=True)
class TuneResult:
    """A finished tuning.

    Attributes:
        folder: folder with `model/`, `report.html`, `report.md`, and `index/` if documents were given.
        report: the text of `report.md`.
        choice: the kept step and the reason; None if there were too few labels to hold some out.
    """

    folder: Path
    report: str
    choice: Choice | None

    @property
    def encoder(self) -> Encoder:
        """The encoder that was kept, loaded from `model/`."""
        return load_encoder(str(self.folder / "model"))

    @property
    def table(self) -> list[dict[str, Any]]:
        """The lines of the report, the simplest step first."""
        if self.choice is None:
            return []
        rows = []
        for each in self.choice.standings:
            mean = {"mean": each.mean.mean, "low": each.mean.low, "high": each.mean.high, "gain": each.gain.mean}
            kept = self.choice.is_kept(each)
            rows.append({"step": str(each.step), "pool": each.pool, **mean, "p": each.p, "kept": kept})
        return rows


def tune(
    labels: Any,
    output: str | Path = "tuned",
    *,
    documents: Paths = (),
    translations: Paths = (),
    encoder: str = TRAINED_BY_DEFAULT,
    columns: Mapping[str, str] | None = None,
    ignore_identical_ids: bool = False,
    learners: Sequence[str] = (),
    folds: int = 4,
    time: float | None = None,
    seed: int = 0,
    device: Device = "auto",
    trust_remote_code: bool = False,
    open_callback: OpenCallback = silent,
) -> TuneResult:
    """Compare the base encoder with trained ones on held-out folds, and keep the simplest that no other one beats.

    The same call continues a tuning that was stopped.

    Args:
        labels: a path, dicts, a pandas or `datasets` table (see `RetrievalData.from_rows`), `RetrievalData`, or a
            `Benchmark`, whose first folds and whose pools are then used.
        output: folder of the result.
        documents: files and folders to index.
        translations: files, folders and hub names of translations to align the encoder on first.
        encoder: built-in name, local folder or hub name.
        columns: name of a value → its column, such as `{"query": "question"}`.
        ignore_identical_ids: of labels in a BEIR folder: see `RetrievalData.from_rows`.
        learners: further learners to try, such as `maml`.
        folds: held-out folds; fewer for few labels.
        time: seconds that it may take; the most expensive steps and folds are dropped.
        seed: random seed of folds and episodes.
        device: device of the encoders.
        trust_remote_code: run Python code that comes with the encoder.
        open_callback: opens a progress callback.

    Raises:
        MetasearchError: of every kind; finished work is saved.

    Example:
        >>> import metasearch as ms
        >>> result = ms.tune("labels.csv", "shop", documents="help-pages/")  # doctest: +SKIP
        >>> print(result.choice)  # doctest: +SKIP
    """
    path = isinstance(labels, str | Path)
    asked = {
        "labels": _absolute_name(str(labels)) if path else "",
        "columns": dict(columns or {}),
        "ignore_identical_ids": ignore_identical_ids,
        "documents": _absolute(documents),
        "translations": _absolute(translations),
        "encoder": {"name": _absolute_name(encoder), "trust_remote_code": trust_remote_code},
        "learners": tuple(learners),
        "folds": folds,
        "device": device,
        "seed": seed,
    }
    config = yaml.check(asked, TuneConfig, "tune")
    given = None
    if not path:
        given = (
            labels
            if isinstance(labels, Benchmark | RetrievalData)
            else RetrievalData.from_rows(labels, columns, ignore_identical_ids=ignore_identical_ids)
        )
    result = _open_tuning(config, Path(output), given, time).execute(open_callback, trust_remote_code)
    choice = read_choice(RunFolder(result.folder)) if result.rows else None
    if choice and str(choice) not in result.report:
        log.warning("%s: another version chose the model by another rule; see report.md", result.folder)
    return TuneResult(result.folder, result.report, choice)


def _open_tuning(
    config: TuneConfig, folder: Path, labels: Benchmark | RetrievalData | None, limit: float | None
) -> TuneRun:
    """Return a new tuning, or the one in the folder; `RunFolderError` if that one has other settings."""
    run = TuneRun(config, folder, labels, limit)
    if (folder / CONFIG).is_file():
        run.began = run.files.stored(TuneConfig)
        before, now = run.began.config.model_dump(mode="json"), config.model_dump(mode="json")
        if other := [f"{key} is {before[key]}, not {now[key]}" for key in now if before[key] != now[key]]:
            raise RunFolderError(f"{folder} holds a tuning with other settings ({'; '.join(other)}); choose another -o")
    return run


def _absolute(paths: Paths) -> tuple[str, ...]:
    listed = [paths] if isinstance(paths, str | Path) else paths
    return tuple(path if is_hub_name(path) else str(Path(path).resolve()) for path in map(str, listed))


def _absolute_name(name: str) -> str:
    """Return an absolute path for a local name; a hub name stays."""
    return (
        str(Path(name).resolve()) if name and name not in registry.names("encoders") and Path(name).exists() else name
    )
