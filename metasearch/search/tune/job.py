"""A tuning in its folder; a step that is scored on a fold is never scored again.

config.yaml      the settings; `metasearch resume` reads it
results.jsonl    the scores of each step on each fold
neutral/, aligned/   the encoder that was aligned on translations, and the one before
model/           the kept encoder, trained on all labels; README.md is its card
base/, index/    passages of the documents, if there are any: by the base encoder, and as the kept step searches them
report.html, report.md
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from metasearch.data.benchmark import Benchmark
from metasearch.data.labels import load_labels
from metasearch.data.records import RetrievalData, texts_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.unknown_languages import warn_of_unknown
from metasearch.errors import DataError, Interrupted, RunFolderError
from metasearch.pipelines.run import ENCODER, Run, stopped
from metasearch.runs.callbacks import Callback, OpenCallback
from metasearch.runs.torchrun_env import require_alone
from metasearch.search.settings import TuneConfig
from metasearch.search.tune.compare import Comparison
from metasearch.search.tune.documents import Documents
from metasearch.search.tune.labels import LEAST_FOLDS, LEAST_LABELS, Labels
from metasearch.search.tune.report import write_report
from metasearch.search.tune.steps import list_steps
from metasearch.search.tune.workshop import project_alone

log = logging.getLogger(__name__)


class TuneRun(Run[TuneConfig]):
    """Scores the steps on held-out folds within `limit` seconds, and trains the kept step on all labels.

    `labels` are what `metasearch.tune` takes, unless the configuration names their file.
    """

    settings = TuneConfig

    def __init__(self, config: TuneConfig, folder: Path, labels: Any = None, limit: float | None = None) -> None:
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
        self.documents = Documents(self.config, self.files.path, self.encoder, self.labels.data)
        if not self.config.documents and self.labels.whole:
            data, note = self.documents.cut_labelled()
            if note:
                self.labels = Labels.of(data, self.config.folds)
                self._note(note)
        warn_of_unknown(self.encoder, ((each.language, each.text) for each in texts_of(self.labels.everything)))
        return {ENCODER: self.encoder.origin}

    def validate(self) -> None:
        """Check the disk space."""
        self.require_disk_space(self.encoder.size)

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
        choice = None
        if self.labels.benchmark:
            self._require_same_pool()
            store, how = self.documents.store, (callback, self._note, self.limit)
            comparison = Comparison.open(self, self.labels, self.encoder, store, *how)
            choice = comparison.choose()
            log.info("%s", choice)
            comparison.score_apart(choice)
            encoder = comparison.make_kept(choice)
        else:
            encoder = self._project_alone(callback)
        files.save_model(encoder.save, encoder.size)
        if config.documents:
            self.documents.write_index(files.model, choice, callback)
        write_report(self, self.encoder, encoder, self.labels, choice, self.notes)

    def _project_alone(self, callback: Callback) -> Encoder:
        done, count = project_alone(self.encoder, self.labels, callback), len(self.labels.data.questions)
        least = f"at least {LEAST_LABELS} in {2 * LEAST_FOLDS} groups"
        self._note(f"Too few labelled questions to hold some out ({count}; {least}). {done}")
        return self.encoder

    def _note(self, note: str) -> None:
        log.info("%s", note)
        self.notes.append(note)

    def _read_documents(self, callback: Callback) -> None:
        if not self.labels.whole:
            self._note("The task has pools of its own, which are scored; the documents are only indexed.")
            return
        self.labels, notes = self.documents.join(callback)
        for note in notes:
            self._note(note)

    def _require_same_pool(self) -> None:
        now = self.labels.everything.fingerprint
        if any(row["data"] != now for row in self.files.results()):
            raise RunFolderError(
                f"{self.files.path}: its scores are of other passages: the documents changed, or an earlier version "
                "scored labelled texts; choose another -o"
            )
