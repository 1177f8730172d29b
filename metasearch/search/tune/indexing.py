"""Makes the index of a tuning, which is searched as the kept step was scored."""

import shutil
from collections.abc import Mapping

from metasearch.config.measure import BALANCED, EXPANDED
from metasearch.config.run import TuneConfig
from metasearch.data.records import RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.io import NEW, move
from metasearch.pipelines.run import Run
from metasearch.runs.callbacks import Callback
from metasearch.search.index.adapters import adapters_in
from metasearch.search.index.local import LocalStore
from metasearch.search.query.searcher import Searcher
from metasearch.search.query.update import update
from metasearch.search.settings import IndexSettings
from metasearch.search.tune.adapt.job import Trial
from metasearch.search.tune.choice import Choice
from metasearch.search.tune.steps import Step

RANKINGS: Mapping[str, Mapping[str, bool]] = {BALANCED: {"balance": True}, EXPANDED: {"expand": True}}
"""Pool → the setting of an index that is searched in the same way."""
_PLAIN: Mapping[str, bool] = {"balance": False, "expand": False}
_ADAPTER = "tune"
"""Name of the adapter in the index."""


def write_index(
    run: Run[TuneConfig],
    base: Encoder,
    how: IndexSettings,
    choice: Choice | None,
    named: RetrievalData | None,
    store: LocalStore | None,
    callback: Callback,
) -> None:
    """Make the index of the documents of a tuning.

    Args:
        run: the tuning, whose model is saved.
        base: the base encoder.
        how: how documents become passages.
        choice: the kept step; None if there were too few labels to choose.
        named: the labels before they were joined to pages.
        store: the index by the base encoder, if labels were joined to it.
        callback: receives progress.
    """
    files, config = run.files, run.config
    to, step = files.path / "index", choice.kept.step if choice else Step(projected=True)
    ranking = {**_PLAIN, **RANKINGS.get(choice.kept.pool, {})} if choice else {}
    if not store or step.trains:
        # As scored: in float32.
        encoder, name = load_encoder(str(files.model), device=config.device), str(files.model.resolve())
        update(to, config.documents, encoder, how, name, callback=callback, ranking=ranking)
        return
    if not to.exists():
        shutil.copytree(store.folder, to.with_name(f"{to.name}{NEW}"), dirs_exist_ok=True)
        move(to.with_name(f"{to.name}{NEW}"), to)
    how = how.model_copy(update={"neutral": None if step.projected else False})
    update(to, config.documents, base, how, config.encoder.name, callback=callback, ranking=ranking)
    if choice and step.adapts and named:
        trial = Trial.of(Searcher(LocalStore.open(to), base), named, config.folds, config.same_page, config.base)
        # A tuning that was stopped after this continues here.
        if _ADAPTER not in {each.name for each in adapters_in(trial.index.store.state)}:
            trial.add(_ADAPTER, step.learner, str(choice), kept=True)
