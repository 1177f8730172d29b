"""Writes what a tuning leaves: the index that is searched as the kept step was scored, the report and the card."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from metasearch.config.run import TuneConfig
from metasearch.data.records import RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.errors import quoted
from metasearch.io import NEW, atomic_write, move
from metasearch.pipelines.card_file import CARD
from metasearch.pipelines.cards import find_base
from metasearch.pipelines.run import Run
from metasearch.runs.callbacks import Callback
from metasearch.runs.versions import describe_versions, versions
from metasearch.search.index.adapters import adapters_in
from metasearch.search.index.local import LocalStore
from metasearch.search.query.searcher import Searcher
from metasearch.search.query.update import update
from metasearch.search.settings import IndexSettings
from metasearch.search.tune.adapt.job import Trial
from metasearch.search.tune.choice import Choice
from metasearch.search.tune.labels import Labels
from metasearch.search.tune.questions import show
from metasearch.search.tune.report import FLATTERS, PLAIN, RANKINGS, build_card, build_report
from metasearch.search.tune.steps import Step
from metasearch.training.hardware import used

_ADAPTER = "tune"
"""Name of the adapter in the index."""


@dataclass(frozen=True)
class Result:
    """The result of a tuning.

    Attributes:
        run: the tuning, whose model is saved.
        base: the base encoder.
        labels: of the tuning.
        choice: the kept step; None if there were too few labels to choose.
    """

    run: Run[TuneConfig]
    base: Encoder
    labels: Labels
    choice: Choice | None

    def write_index(
        self, how: IndexSettings, named: RetrievalData | None, store: LocalStore | None, callback: Callback
    ) -> None:
        """Make the index of the documents.

        Args:
            how: how documents become passages.
            named: the labels before they were joined to pages.
            store: the index by the base encoder, if labels were joined to it.
            callback: receives progress.
        """
        files, config, choice = self.run.files, self.run.config, self.choice
        to, step = files.path / "index", choice.kept.step if choice else Step(projected=True)
        ranking = {**PLAIN, **RANKINGS.get(choice.kept.pool, {})} if choice else {}
        if not store or step.trains:
            # As scored: in float32.
            encoder, name = load_encoder(str(files.model), device=config.device), str(files.model.resolve())
            update(to, config.documents, encoder, how, name, callback=callback, ranking=ranking)
            return
        if not to.exists():
            shutil.copytree(store.folder, to.with_name(f"{to.name}{NEW}"), dirs_exist_ok=True)
            move(to.with_name(f"{to.name}{NEW}"), to)
        how = how.model_copy(update={"neutral": None if step.projected else False})
        update(to, config.documents, self.base, how, config.encoder.name, callback=callback, ranking=ranking)
        if choice and step.adapts and named:
            trial = Trial.of(Searcher(LocalStore.open(to), self.base), named, config.folds, config.same_page)
            # A tuning that was stopped after this continues here.
            if _ADAPTER not in {each.name for each in adapters_in(trial.index.store.state)}:
                trial.add(_ADAPTER, step.learner, str(choice), kept=True)

    def write_report(self, encoder: Encoder, notes: Sequence[str]) -> None:
        """Write the report, and the card of the saved encoder."""
        files, config, data, choice = self.run.files, self.run.config, self.labels.data, self.choice
        result, languages = str(choice) if choice else notes[-1], sorted(data.languages)
        facts = {"encoder": self.base.name, "labels": data.describe(), "languages": ", ".join(languages)}
        facts |= {"seed": str(config.seed), "versions": describe_versions(versions())}
        shown = show(files, self.labels.benchmark.task.name, choice) if choice and self.labels.benchmark else []
        texts = build_report(self._sentences(result), facts, choice, notes, shown)
        source = find_base("base", config.encoder.name, self.base.origin)
        atomic_write(files.model / CARD, build_card(encoder, source, result, languages, facts))
        atomic_write(files.path / "report.html", texts["report.html"])
        files.finish(texts["report.md"], used(self.run.seconds, encoder.device))

    def _sentences(self, result: str) -> list[str]:
        """Return the first sentences of the report: the result, and how to use it."""
        files, choice, documents = self.run.files, self.choice, self.run.config.documents
        sentences = [FLATTERS, result] if choice and self.labels.whole and not documents else [result]
        if choice and choice.kept.step.adapts:
            sentences.append("The adapter is in index/, computed from all labels; the model in model/ has none.")
        elif choice and choice.kept.step.trains:
            sentences.append(f"The model in model/ is trained on all {len(self.labels.data.questions)} labels.")
        ranking = RANKINGS.get(choice.kept.pool, {}) if choice else {}
        if documents:
            sentences.append(f'Search: metasearch search {quoted(files.path)} "..."')
        elif ranking:
            options = " ".join(f"--{name}" for name in ranking)
            how = f"metasearch index DOCUMENTS --encoder {quoted(files.model)} {options} -o INDEX"
            sentences.append(f"Index documents to be searched so: {how}")
        return sentences
