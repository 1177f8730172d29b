"""Checks a task from its declaration to an embedded episode of every mode, or to a score where nothing is trained."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from metasearch.compress.onnx_encoder import is_exported
from metasearch.config import registry
from metasearch.config.library import Library
from metasearch.config.measure import MULTILINGUAL, RETRIEVAL_POOLS, Pool
from metasearch.config.run import DataConfig
from metasearch.config.task import Task
from metasearch.data.benchmark import Benchmark, build, on_folds
from metasearch.data.folds import Split
from metasearch.data.records import RetrievalData, SimilarityData, grouped
from metasearch.encoders.load import load_encoder
from metasearch.encoders.open import check_name
from metasearch.episodes.samplers import check_sizes, samplers
from metasearch.errors import ConfigError, DataError
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.scores import require_answers, unanswered
from metasearch.pipelines import factory


def check_task(library: Library, ref: DataConfig) -> Iterator[str]:
    """Check a task from its declaration to an embedded episode; yield a line for each thing that holds."""
    whole = library.fold(ref)
    declared = whole.task
    yield f"declaration: {library.path('task', ref.task)}"
    yield f"encoder: {_encoder(declared)}"
    benchmark = build(whole)
    yield f"data: {benchmark.data.describe()} (fingerprint {benchmark.data.fingerprint})"
    if declared.evaluation_only:
        yield f"folds: none; all of it is test, {benchmark.split.test.describe()}"
        encoder = load_encoder("tiny", declared.max_length, device="cpu")
        mean = evaluate(encoder, benchmark.data, benchmark.measures).mean(declared.monitor)
        yield f"scores: {declared.monitor} {100 * mean:.2f} by the untrained tiny encoder"
        return
    folds = range(declared.folds.k if declared.folds.method == "kfold" else 1)
    splits = [each.split for each in on_folds(benchmark, folds)]
    if benchmark.translations:
        yield f"translated: {benchmark.translations.described}, in train of each fold"
    if lacking := benchmark.only_translated:
        yield f"dev: no rows in {', '.join(lacking)}, so it is for budget.meta_valid=0"
    sizes = ", ".join(str(len(each.test.groups)) for each in splits)
    yield f"folds: {len(splits)}, with {sizes} articles or rows in test"
    for fold, parts in enumerate(splits):
        _check_scores(fold, parts)
    yield from _unscored_pools(splits)
    yield from _modes(benchmark, library, splits)


def _modes(benchmark: Benchmark, library: Library, splits: Sequence[Split]) -> Iterator[str]:
    """Draw and embed an episode of every arrangement of every mode; yield a line for each mode."""
    declared = benchmark.task
    modes = [mode for mode in library.modes() if mode.arrangements(declared)]
    if not modes:
        raise ConfigError(f"task '{declared.name}' has no arrangement for any mode; see `metasearch ls modes`")
    encoder = load_encoder("tiny", declared.max_length, device="cpu")
    changes = ("budget.meta_valid=0",) if benchmark.only_translated else ()
    for mode in modes:
        recipe = library.choose_recipe(mode, declared.encoder, None, None, changes)
        placed = replace(benchmark, arrangements=mode.arrangements(declared))
        factory.check_fit(recipe, placed, "float32")
        # Folds differ by an article or row, which may be the one that is missing.
        for fold, parts in enumerate(splits):
            check_sizes(replace(placed, split=parts, fold=fold), recipe)
        learner = factory.make_learner(recipe, encoder)
        losses = [
            learner.outer_loss([sampler.episode(i)]).total.item()
            for phase, sampler in samplers(placed, recipe, seed=0).items()
            for i in range(len(placed.arrangements[phase]))
        ]
        span = f"{min(losses):.3f} to {max(losses):.3f}"
        yield f"mode {mode}: {len(losses)} episodes drawn and embedded, loss {span}"


def _check_scores(fold: int, parts: Split) -> None:
    """Raise `DataError` where the gold scores of a language pair are all the same, and correlate with nothing."""
    for name, part in (("dev", parts.dev), ("test", parts.test)):
        if isinstance(part, SimilarityData):
            for pair, scored in grouped(part.pairs, lambda each: each.pair).items():
                if len({each.score for each in scored}) == 1:
                    raise DataError(
                        f"fold {fold}: the scores of {pair} in {name} are all {5 * scored[0].score:g} "
                        f"({len(scored)} rows), so the correlation is undefined; use more or other rows"
                    )


def _unscored_pools(splits: Sequence[Split]) -> Iterator[str]:
    """Yield a line for each pool that a run leaves out on test; `DataError` for a question that nothing answers."""
    found: dict[Pool, str] = {}
    for parts in splits:
        for part in (parts.dev, parts.test):
            if isinstance(part, RetrievalData):
                require_answers(part, [MULTILINGUAL])
        if isinstance(parts.test, RetrievalData):
            found = unanswered(parts.test, RETRIEVAL_POOLS) | found
    yield from (f"scores: none in pool '{pool}', {problem}" for pool, problem in found.items())


def _encoder(task: Task) -> str:
    """Return what a task's encoder is; `EncoderError` where there is none of its name, or it cannot be trained."""
    name = task.encoder
    if name in registry.names("encoders"):
        return f"{name}, built in"
    if task.evaluation_only and is_exported(Path(name)):
        return f"{name}, an export to ONNX"
    return f"{name}, a local folder" if check_name(name) else f"{name}, of a model hub, which is not asked here"
