"""`metasearch.meta_train`: a user's own model learns from a user's own rows, in one call."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss, TripletLoss
from sentence_transformers.sentence_transformer.losses.triplet import TripletDistanceMetric
from sentence_transformers.util import cos_sim

from metasearch.algorithms.losses.base import Loss, fitting
from metasearch.config import registry
from metasearch.config.library import load_recipe
from metasearch.config.recipe import Loss as Settings
from metasearch.config.recipe import Recipe
from metasearch.data.benchmark import Benchmark, make_benchmark
from metasearch.data.records import RetrievalData
from metasearch.encoders.adapted import encoder_of
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.episode import TRIPLET_ROLES
from metasearch.episodes.samplers import check_sizes
from metasearch.errors import ConfigError
from metasearch.pipelines.factory import fit, make_learner
from metasearch.pipelines.frozen import with_adapter
from metasearch.runs.callbacks import Callback
from metasearch.runs.progress import ProgressBar

log = logging.getLogger(__name__)

Model = TypeVar("Model", SentenceTransformer, Encoder)

_SMALL = "e5"
"""Encoder whose recipes fit some dozen questions and a machine without a GPU; the paper's take days there."""


def meta_train(
    model: Model,
    data: RetrievalData | Benchmark,
    arrangements: str | Sequence[str] = (),
    *,
    learner: str = "maml-align",
    recipe: Recipe | str | None = None,
    loss: Any = None,
    settings: Mapping[str, Any] | None = None,
    fold: int = 0,
    seed: int = 0,
    max_steps: int | None = None,
    callback: Callback | None = None,
    **options: Any,
) -> Model:
    """Meta-train a model on labelled rows, and return the same model with the weights of the best dev score.

    With a recipe of an adapter, such as `maml-adapter`, the model does not change. A new one is returned, which shares
    its modules and has the adapter behind them.

    The train part of the data gives meta-train episodes, its dev part meta-valid episodes and the dev scores. The test
    part of the fold is not read: evaluate on `make_benchmark(data, arrangements, fold=fold).split.test`.

    Args:
        model: any `SentenceTransformer`, which is trained in place and keeps its modules, or an `Encoder`.
        data: labelled rows, or a benchmark that was made of some or loaded with a mode.
        arrangements: what episodes are drawn along, such as `en_en -> en_de -> en_{de,en}`; for rows only.
        learner: name of a learner.
        recipe: its hyper-parameters, or their name. By default the learner's small recipe, such as `maml-align-e5`: 64
            episodes, minutes on two cores. `maml-align` has the settings of its paper: 9,000 episodes, up to 20 times.
        loss: one of `metasearch.losses`, such as `metasearch.losses.Triplet(margin=0.2)`; or a `TripletLoss` or
            `MultipleNegativesRankingLoss` of sentence-transformers. By default the recipe's.
        settings: dotted keys of the recipe and their values, such as `{"budget.meta_train": 200, "outer.lr": 1e-5}`.
        fold: fold that is held out as test; for rows only.
        seed: random seed of episodes and dropout.
        max_steps: outer steps at most.
        callback: called with steps and scores; by default a progress bar on stderr with the time left. A plain
            `metasearch.runs.callbacks.Callback()` shows nothing.
        **options: options of the learner, such as `inner_lr=1e-2`.

    Raises:
        ConfigError: a name or value is wrong, or loss, learner and arrangements do not fit together.
        DataError: the data is too small for the recipe.
        EncoderError: the model cannot be trained.
        NonFiniteError: a loss or gradient is not finite.
    """
    chosen = _recipe(recipe, learner, settings or {}, options)
    named = None if loss is None else _loss_settings(loss)
    own = loss if named is None else None
    if named is not None:
        chosen = chosen.model_copy(update={"loss": named})
    elif own is not None:
        fitting((own,), TRIPLET_ROLES)
    benchmark = _benchmark(data, arrangements, fold)
    encoder = model if isinstance(model, Encoder) else encoder_of(model)
    check_sizes(benchmark, chosen, seed)
    encoder = with_adapter(encoder, chosen.adapter is not None, (benchmark.data, benchmark.split.train))
    trained = make_learner(chosen, encoder, own)
    with nullcontext(callback) if callback else ProgressBar(f"meta_train, recipe {chosen.recipe}") as progress:
        fit(trained, benchmark, chosen, seed=seed, max_steps=max_steps, callback=progress)
    encoder.model.eval()
    if encoder.adapter is not None:
        return encoder if isinstance(model, Encoder) else encoder.whole
    return model


def _benchmark(data: RetrievalData | Benchmark, arrangements: str | Sequence[str], fold: int) -> Benchmark:
    if isinstance(data, Benchmark):
        if arrangements or fold:
            raise ConfigError("meta_train: a benchmark already has arrangements and a fold; set them in load_benchmark")
        return data
    if not arrangements:
        raise ConfigError("meta_train: rows need arrangements, such as 'en_en -> en_de -> en_{de,en}'")
    return make_benchmark(data, arrangements, fold=fold)


def _recipe(
    recipe: Recipe | str | None, learner: str, settings: Mapping[str, Any], options: Mapping[str, Any]
) -> Recipe:
    """Return a recipe, by default the learner's, with settings and the learner's options put over it."""
    registry.require("learners", learner)
    assigned = {**settings, **{f"options.{name}": value for name, value in options.items()}}
    if not isinstance(recipe, Recipe):
        recipe = load_recipe(recipe, assigned) if recipe else load_recipe(learner, assigned, encoder=_SMALL)
    elif assigned:
        names = ", ".join(assigned)
        raise ConfigError(f"meta_train: pass {names} to load_recipe, which made the recipe '{recipe.recipe}'")
    if recipe.neutralise:
        raise ConfigError(f"recipe '{recipe.recipe}': neutralise: only `metasearch train` has this stage")
    return recipe


def _loss_settings(loss: Any) -> Settings | None:
    """Return a named loss's settings; None for a user's own subclass of `Loss`."""
    if isinstance(loss, str):
        registry.require("losses", loss)
        return Settings(name=loss)
    known = {registry.load("losses", name).LOSS: name for name in registry.names("losses")}
    if isinstance(loss, Loss):
        found = known.get(type(loss))
        return Settings.model_validate({"name": found, **loss.options.model_dump()}) if found else None
    distances = {TripletDistanceMetric.EUCLIDEAN: "euclidean", TripletDistanceMetric.COSINE: "cosine"}
    if type(loss) is TripletLoss and loss.distance_metric in distances:
        values = {"margin": loss.triplet_margin, "distance": distances[loss.distance_metric]}
        return Settings.model_validate({"name": "triplet", **values})
    if type(loss) is MultipleNegativesRankingLoss and _is_infonce(loss):
        log.info("MultipleNegativesRankingLoss runs as loss infonce, where no labelled answer is a negative")
        return Settings.model_validate({"name": "infonce", "temperature": 1 / loss.scale})
    own = [f"metasearch.losses.{kind.__name__}" for kind in known if set(kind.columns) <= set(TRIPLET_ROLES)]
    raise ConfigError(
        f"loss: {type(loss).__name__} is not supported, because inner steps have their own weights. Supported: "
        f"{', '.join(own)}, and of sentence-transformers TripletLoss (euclidean or cosine) and "
        "MultipleNegativesRankingLoss (cos_sim, without further options)"
    )


def _is_infonce(loss: Any) -> bool:
    """Return whether a loss is InfoNCE from question to candidates, by cosine."""
    changed = loss.get_config_dict()
    plain = MultipleNegativesRankingLoss(loss.model, loss.scale, loss.similarity_fct).get_config_dict()
    return loss.similarity_fct is cos_sim and changed == plain
