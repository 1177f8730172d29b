"""The composition root: names become encoders and learners, and a learner is fitted to a benchmark.

With `metasearch.data.benchmark` this is the Python interface; the other jobs make run folders and reports of it.
Learner, options, loss, mode and data are checked to fit together before any weights are loaded.
"""

import logging
from functools import partial
from typing import Any

from metasearch.algorithms.base import Learner
from metasearch.algorithms.losses.base import Loss as SetLoss
from metasearch.algorithms.losses.base import fitting, losses_of, warn_of_unused
from metasearch.compress.trimming import trim
from metasearch.config import registry, yaml
from metasearch.config.arrangement import Pattern
from metasearch.config.languages import spelling_of
from metasearch.config.precision import Precision
from metasearch.config.recipe import Loss, Recipe
from metasearch.config.run import Checkpointing, Device, EncoderConfig
from metasearch.data.benchmark import Benchmark
from metasearch.data.folds import hold_out
from metasearch.data.records import RetrievalData, ScoredPair, texts_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.neutral import ProjectedEncoder
from metasearch.encoders.protocols import CachedEncoder, TextEncoder, report_progress
from metasearch.episodes.episode import TRIPLET_ROLES
from metasearch.episodes.samplers import samplers
from metasearch.errors import ConfigError, require_known
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines.neutral import train_projection, train_texts
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.training.checkpoint import CheckpointStore
from metasearch.training.distributed import SINGLE_PROCESS, ProcessGroup
from metasearch.training.outer_gradients import OuterGradients
from metasearch.training.schedule import schedule
from metasearch.training.trainer import Outcome, Trainer, log_memory

log = logging.getLogger(__name__)


def load_task_encoder(config: EncoderConfig, benchmark: Benchmark, device: Device = "auto", seed: int = 0) -> Encoder:
    """Return an encoder with the lengths of a task, and trimmed to its words if configured so."""
    # Train has what was translated, and the language it was translated from, which nothing else may have.
    parts = [benchmark.data] if benchmark.task.evaluation_only else [benchmark.data, benchmark.split.train]
    known = {language for part in parts for language in part.languages}
    asked = config.trim
    languages = frozenset(known if asked == ("task",) else (spelling_of(tag, known) for tag in asked))
    for language in sorted(languages):
        require_known("language to trim to", language, sorted(known))
    encoder = load_encoder(
        config,
        benchmark.task.max_length,
        identify=True,
        plain_for="trim" if languages else "",
        device=device,
        seed=seed,
    )
    if not languages:
        return encoder
    before, origin, seeded = encoder.parameter_count, encoder.origin, encoder.seeded
    # With the texts of all parts: only words are taken from them, and vectors do not change.
    texts = (text for part in parts for _, text, language in texts_of(part) if language in languages)
    encoder = trim(encoder, texts)
    encoder.origin, encoder.seeded = origin, seeded
    of = f"{encoder.parameter_count:,} parameters of {before:,}"
    log.info("trimmed to the words of %s in %s: %s", benchmark.task.name, ", ".join(sorted(languages)), of)
    return encoder


def learner_class(recipe: Recipe) -> type[Learner]:
    """Return a recipe's learner class."""
    kind: type[Learner] = registry.load("learners", recipe.learner).LEARNER
    return kind


def _learner_options(recipe: Recipe) -> Any:
    """Return a recipe's checked learner options."""
    return yaml.check(recipe.options, learner_class(recipe).Options, f"recipe '{recipe.recipe}': options")


def make_learner(recipe: Recipe, encoder: Encoder, loss: SetLoss | None = None) -> Learner:
    """Return a recipe's learner.

    Args:
        recipe: names the learner and its options.
        encoder: the encoder to train.
        loss: takes the place of the recipe's loss.

    Raises:
        ConfigError: the learner, the loss or one of their options is unknown, or an option has a wrong value.
    """
    learner = learner_class(recipe)(encoder, recipe.loss, _learner_options(recipe))
    if loss is not None:
        learner.set_losses = (loss,)
    return learner


def make_gradients(encoder: Encoder, checkpointing: Checkpointing = "auto") -> OuterGradients:
    """Return the gradient computer; log slower methods needed for this encoder, and why."""
    gradients = OuterGradients(encoder, checkpointing=checkpointing)
    for note in gradients.notes:
        log.info("packing: %s", note)
    return gradients


def resolved(recipe: Recipe) -> Recipe:
    """Return the recipe with all options of its learner and its loss in it, defaults and types included."""
    loss = resolved_loss(recipe.loss, f"recipe '{recipe.recipe}': loss")
    return recipe.model_copy(update={"options": _learner_options(recipe).model_dump(), "loss": loss})


def resolved_loss(loss: Loss, where: str) -> Loss:
    """Return the settings of a loss with all its options in them; `ConfigError` where one is wrong."""
    options = [each.options.model_dump() for each in losses_of(loss, where)]
    return loss.model_copy(update={name: value for own in options for name, value in own.items()})


def check_fit(recipe: Recipe, benchmark: Benchmark, precision: str, checkpointing: Checkpointing = "auto") -> None:
    """Raise `ConfigError` unless learner, options, mode, precision and checkpointing fit together; loads no weights."""
    learner = learner_class(recipe)
    options = _learner_options(recipe)
    _check_loss(recipe, benchmark)
    if not benchmark.arrangements:
        raise ConfigError("training needs a transfer mode; load the benchmark with mode=...")
    first = benchmark.arrangements["meta-train"][0]
    if (links := len(first.variants)) not in learner.links:
        wanted = " or ".join(map(str, learner.links))
        there = [text for text in benchmark.task.arrangements if len(Pattern.parse(text).kinds) in learner.links]
        such = f", such as {there[0]}" if there else ""
        raise ConfigError(f"learner '{recipe.learner}' needs a mode of {wanted} links{such}; '{first}' has {links}")
    if recipe.budget.meta_train + recipe.budget.meta_valid == 0:
        raise ConfigError("budget.meta_train and budget.meta_valid are both 0: there is nothing to train on")
    _check_train(recipe, benchmark)
    require_known("precision", precision, ("float32", "bfloat16"))
    _check_order(learner, options, precision, checkpointing)


def _check_order(learner: type[Learner], options: Any, precision: str, checkpointing: Checkpointing) -> None:
    """Raise `ConfigError` if a second-order learner is combined with first-order features."""
    # Of a class, what is not False is the property, which asks the options.
    if getattr(learner, "second_order", True) is False or getattr(options, "first_order", False):
        return
    otherwise = ", or --set options.first_order=true" if hasattr(options, "first_order") else ""
    if precision == "bfloat16":
        raise ConfigError(f"--precision bfloat16 needs first order; use float32{otherwise}")
    if checkpointing == "gradcache":
        raise ConfigError(f"--checkpointing gradcache has no effect in second order; use layers{otherwise}")


def _check_train(recipe: Recipe, benchmark: Benchmark) -> None:
    """Raise `ConfigError` if the train part, or its used share, does not fit the recipe."""
    if recipe.labels and recipe.budget.meta_valid:
        raise ConfigError(
            f"labels={recipe.labels} limits only train, but meta-valid would use labels of dev: use --set "
            "budget.meta_valid=0"
        )
    if not recipe.translate and benchmark.task.translate is None:
        log.warning("translate=false has no effect: task '%s' declares no translations", benchmark.task.name)
    if recipe.neutralise:
        train_texts(benchmark, recipe.neutralise)
    if recipe.adapter and recipe.neutralise and recipe.neutralise.when == "after":
        raise ConfigError(
            "neutralise=after and adapter: an adapter is the last module; use neutralise=before, which it learns behind"
        )


def _check_loss(recipe: Recipe, benchmark: Benchmark) -> None:
    """Raise `ConfigError` unless a loss fits the examples, and reads their translations just where there are some."""
    where, drawn = f"recipe '{recipe.recipe}'", recipe.episodes.translations
    losses = losses_of(recipe.loss, f"{where}: loss")
    reading = any("translation" in loss.needed for loss in losses)
    if not isinstance(benchmark.data, RetrievalData):
        if drawn or reading:
            key, off = ("episodes.translations", "false") if drawn else ("loss.align", "none")
            raise ConfigError(
                f"{where}: {key} is about translations of questions, and task '{benchmark.task.name}' has scored "
                f"pairs; --set {key}={off} leaves it out"
            )
        fitting(losses, ScoredPair.roles)
        return
    if reading and not drawn:
        raise ConfigError(
            f"{where}: the loss needs translated questions (loss.align); use --set episodes.translations=true"
        )
    loss = fitting(losses, [*TRIPLET_ROLES, *(["translation"] if drawn else [])])
    if drawn and "translation" not in loss.needed:
        raise ConfigError(
            f"{where}: episodes.translations: no loss would read them; --set loss.name=infonce --set loss.align=jsd "
            "(or infonce) does, and --set episodes.translations=false draws none"
        )
    if getattr(loss.options, "align", "none") == "infonce":
        _warn_of_single_questions(recipe, benchmark)


def _warn_of_single_questions(recipe: Recipe, benchmark: Benchmark) -> None:
    """Warn about sets with one question, where alignment has no other translation to compare with."""
    sizes, chains = recipe.episodes, [chain for chains in benchmark.arrangements.values() for chain in chains]
    supports = [chain.variants[0] for chain in chains]
    queries = [variant for chain in chains for variant in chain.variants[1:]]
    for key, count, variants in (("k", sizes.k, supports), ("q", sizes.q, queries)):
        single = [each for each in dict.fromkeys(variants) if count <= sizes.n_neg * len(each.candidates)]
        if single:
            log.warning(
                "loss.align=infonce is 0 in sets of one question, as in %s with episodes.%s=%d and "
                "episodes.n_neg=%d: a greater %s, or a smaller n_neg, gives them more",
                ", ".join(map(str, single[:3])) + ", ..." * (len(single) > 3), key, count, sizes.n_neg, key,
            )  # fmt: skip


class DevEvaluator:
    """Scores an encoder, as a run would save it now, on the scored part of dev.

    A projection after training is estimated anew each time. `vectors` are the encoder's vectors of the last time,
    without such a projection.
    """

    def __init__(
        self, encoder: Encoder, benchmark: Benchmark, recipe: Recipe, precision: Precision = "float32"
    ) -> None:
        self._encoder, self._benchmark, self._recipe, self._precision = encoder, benchmark, recipe, precision
        self._data = hold_out(benchmark.split.dev, recipe.budget.dev_holdout)[1]
        self.vectors: CachedEncoder | None = None

    def __call__(self) -> float:
        """Return the mean of the task's monitored measure."""
        self.vectors = CachedEncoder(self._encoder)
        delivered: TextEncoder = self.vectors.part("dev")
        stage = self._recipe.neutralise
        if stage is not None and stage.when == "after":
            neutral = train_projection(self._encoder, self._benchmark, stage, through=self.vectors.part("train"))
            delivered = ProjectedEncoder(delivered, neutral)
        found = evaluate(delivered, self._data, self._benchmark.measures, precision=self._precision)
        return found.mean(self._benchmark.task.monitor)


def fit(
    learner: Learner,
    benchmark: Benchmark,
    recipe: Recipe,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    precision: Precision = "float32",
    checkpointing: Checkpointing = "auto",
    callback: Callback = SILENT,
    store: CheckpointStore | None = None,
    resume: bool = False,
    baseline: float | None = None,
    dev: DevEvaluator | None = None,
    vectors: TextEncoder | None = None,
    processes: ProcessGroup = SINGLE_PROCESS,
) -> Outcome:
    """Meta-train and meta-valid a learner on a benchmark; its encoder ends with the weights of the best dev score.

    Without texts in dev, there is no such score, and the encoder ends with the last weights.

    Args:
        learner: learner to train.
        benchmark: benchmark that was loaded with a mode.
        recipe: how episodes are drawn, how long to train and with which optimizer.
        seed: random seed of episodes and dropout.
        max_steps: outer steps at most.
        precision: precision of training steps and of the dev scores between them, `float32` or `bfloat16`.
        checkpointing: what is recomputed in the backward pass; by `auto` layers, once a step has run out of memory.
        callback: called with steps and scores.
        store: where checkpoints are kept.
        resume: resume from the checkpoint in `store`.
        baseline: dev score before the first step, if it is known.
        dev: gives the dev scores; by default a new one.
        vectors: gives the vectors that episodes are drawn by, such as cached ones; by default the learner's encoder.
        processes: share the shards of a step; the first one scores, and has store and callback.

    Raises:
        ConfigError: learner, mode and precision do not fit together.
        DataError: the data is too small for the recipe.
        NonFiniteError: a loss or gradient is not finite.
    """
    check_fit(recipe, benchmark, precision, checkpointing)
    warn_of_unused(recipe.loss, graded=recipe.episodes.negatives != "random")
    encoder, budget = _require_projection(learner.encoder, recipe), recipe.budget
    valid, scored = hold_out(benchmark.split.dev, budget.dev_holdout)
    with report_progress(encoder, partial(callback.on_encode, "to draw episodes by")):
        encode = (vectors or encoder).encode if recipe.episodes.needs_vectors else None
        sources = samplers(benchmark, recipe, seed, valid, encode)
    if precision == "bfloat16":
        log.info("bfloat16: dev scores during training use it, too; scores before and after use float32")
    if learner.second_order:
        log.info("second order: using plain attention, which can be differentiated twice")
    if budget.meta_valid and scored is valid:
        log.info("meta-valid trains on the questions of the dev score; set budget.dev_holdout to reserve some")
    counts = {"meta-train": budget.meta_train, "meta-valid": budget.meta_valid}
    trainer = Trainer(
        learner,
        make_gradients(encoder, checkpointing),
        schedule(budget, [(phase, counts[phase], source) for phase, source in sources.items()], max_steps),
        recipe.outer,
        budget,
        dev=dev or (DevEvaluator(encoder, benchmark, recipe, precision) if scored.groups else None),
        callback=callback,
        store=store,
        seed=seed,
        precision=precision,
        dropout=recipe.dropout,
        baseline=baseline,
        processes=processes,
    )
    log_memory(trainer)
    return trainer.fit(resume)


def _require_projection(encoder: Encoder, recipe: Recipe) -> Encoder:
    """Return an encoder; `ConfigError` where a recipe trains through a projection and the encoder has none."""
    if recipe.neutralise and recipe.neutralise.when == "before" and not encoder.neutral:
        raise ConfigError(
            f"recipe '{recipe.recipe}' trains through a projection, which the encoder does not have; call "
            "metasearch.neutralise(encoder, benchmark, recipe.neutralise) before make_learner"
        )
    return encoder
