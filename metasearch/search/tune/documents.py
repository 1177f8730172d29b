"""Documents of a tuning: how they and long labelled documents become passages, and their two indexes.

base/ has them by the base encoder. index/ is searched as the kept step was scored.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from metasearch.config.languages import UNKNOWN
from metasearch.data.formats.documents import is_address, is_path
from metasearch.data.records import Candidate, RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.io import NEW, move
from metasearch.runs.callbacks import Callback
from metasearch.search.documents.chunking import Chunker, Settings
from metasearch.search.documents.passage import Notes, Section
from metasearch.search.index.adapters import AdapterFacts
from metasearch.search.index.database import exists, read_state
from metasearch.search.index.local import LocalStore
from metasearch.search.query.passages import ROLE, cutting
from metasearch.search.query.searcher import Searcher
from metasearch.search.query.update import update
from metasearch.search.settings import IndexSettings, TuneConfig
from metasearch.search.tune.adapt.job import Trial
from metasearch.search.tune.choice import Choice
from metasearch.search.tune.labels import Labels
from metasearch.search.tune.steps import Step

_SEARCHED = 2000
"""Passages of pages without a label that a fold searches, about: each trained step encodes them once for each fold."""
_PLAIN: Mapping[str, bool] = {"balance": False, "expand": False}
_ADAPTER = "tune"
"""Name of the adapter in the index."""

Truncated = Callable[[Sequence[str]], Sequence[bool]]


@dataclass
class Documents:
    """The documents of a tuning in a folder.

    Attributes:
        encoder: the base encoder.
        labels: before they are joined to pages.
        store: the index by the base encoder, once labels are joined.
    """

    config: TuneConfig
    folder: Path
    encoder: Encoder
    labels: RetrievalData
    store: LocalStore | None = None

    @property
    def settings(self) -> IndexSettings:
        """How they become passages: languages are detected among the languages of labels."""
        # Answers that are names of pages have no language.
        quoted = (each.language for each in self.labels.candidates if not (is_path(each.text) or is_address(each.text)))
        languages = {*(question.language for question in self.labels.questions), *quoted} - {UNKNOWN}
        return IndexSettings(detect=tuple(sorted(languages)) if len(languages) > 1 else "all")

    def cut_labelled(self) -> tuple[RetrievalData, str]:
        """Return the labels with long documents in passages that the encoder reads, as `cut_long`."""
        _, how = cutting(self.settings, self.encoder)
        return cut_long(self.labels, how, lambda texts: self.encoder.is_truncated(texts, ROLE).tolist())

    def join(self, callback: Callback) -> tuple[Labels, tuple[str, ...]]:
        """Index the documents by the base encoder, and return labels on their pages, as `Labels.on_index`."""
        config, folder = self.config, self.folder / "base"
        # As `metasearch index` chooses; a resumed tuning takes the precision of its index, on any machine.
        known = read_state(folder)["kind"]["settings"] if exists(folder) else {}
        self.encoder.choose_precision(known.get("precision", "auto"), tried=bool(known))
        update(folder, config.documents, self.encoder, self.settings, config.encoder.name, callback=callback)
        self.store = LocalStore.open(folder)
        how = config.folds, config.same_page, _SEARCHED, config.documents, config.base
        return Labels.on_index(self.store, self.labels, *how)

    def write_index(self, model: Path, choice: Choice | None, callback: Callback) -> None:
        """Make the index that is searched as the kept step was scored; `model` is the folder of its encoder."""
        config, store, to = self.config, self.store, self.folder / "index"
        step = choice.kept.step if choice else Step(projected=True)
        ranking = {**_PLAIN, **choice.ranking} if choice else {}
        if not store or step.trains:
            encoder, name = load_encoder(str(model), device=config.device), str(model.resolve())
            encoder.choose_precision(self.encoder.precision)  # as scored
            update(to, config.documents, encoder, self.settings, name, callback=callback, ranking=ranking)
            return
        if not to.exists():
            shutil.copytree(store.folder, to.with_name(f"{to.name}{NEW}"), dirs_exist_ok=True)
            move(to.with_name(f"{to.name}{NEW}"), to)
        how = self.settings.model_copy(update={"neutral": None if step.projected else False})
        update(to, config.documents, self.encoder, how, config.encoder.name, callback=callback, ranking=ranking)
        if choice and step.adapts:
            searcher = Searcher(LocalStore.open(to), self.encoder)
            trial = Trial.of(searcher, self.labels, config.folds, config.same_page, config.base)
            # A tuning that was stopped after this continues here.
            if _ADAPTER not in {each.name for each in AdapterFacts.all_in(trial.index.store.state)}:
                trial.add(_ADAPTER, step.learner, str(choice), kept=True)


def cut_long(data: RetrievalData, how: Settings, truncated: Truncated) -> tuple[RetrievalData, str]:
    """Return data with long candidates in passages, and a line that counts them, empty where none is long.

    Each passage answers what the document answers. They are one page: a ranked list has it once, at its best passage.
    The first passage keeps the candidate's id. `truncated` tells which texts the encoder does not read to their end.
    """
    cuts = truncated([each.text for each in data.candidates])
    long = [each for each, cut in zip(data.candidates, cuts, strict=True) if cut and not each.page]
    if not long:
        return data, ""
    chunker = Chunker(how)
    passages = {each.id: _passages(each, chunker) for each in long}
    candidates = [passage for each in data.candidates for passage in passages.get(each.id, [each])]
    names = {each.id: [passage.id for passage in passages.get(each.id, [each])] for each in data.candidates}
    grades = {(question, name): grade for (question, whole), grade in data.grades.items() for name in names[whole]}
    count = sum(map(len, passages.values()))
    note = (
        f"{len(long)} of {len(data.candidates)} labelled documents are longer than the encoder reads, so they were cut "
        f"into {count} passages of {how.limit} tokens at most; each is an answer, and a document counts once."
    )
    return replace(data, candidates=tuple(candidates), grades=grades), note


def _passages(document: Candidate, chunker: Chunker) -> list[Candidate]:
    texts = [text for _, text in chunker.cut(Section(document.text), Notes())]
    ids = [document.id, *(f"{document.id} passage {number}" for number in range(2, len(texts) + 1))]
    return [replace(document, id=name, text=text, page=document.id) for name, text in zip(ids, texts, strict=True)]
