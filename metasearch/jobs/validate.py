"""Checks a task from its declaration to an embedded episode of every mode, or to a score where nothing is trained."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.data.folds import Split, split
from metasearch.data.translate.train import described
from metasearch.episodes.of_benchmark import check_sizes, samplers
from metasearch.errors import ConfigError
from metasearch.evaluation.evaluate import evaluate
from metasearch.jobs import compose
from metasearch.jobs.fitting import check_fit
from metasearch.spec.library import Library, choose_recipe
from metasearch.spec.run import DataRef
from metasearch.spec.task import applies, resolve


def validate(ref: DataRef | str, **keys: Any) -> Iterator[str]:
    """Check a task from its declaration to an embedded episode; yield a line for each thing that holds.

    Args:
        ref: the data, or the name of the task.
        **keys: further keys of the `DataRef`.

    Raises:
        MetasearchError: the first thing that does not hold.
    """
    ref = DataRef.to(ref, **keys)
    library, task = Library(ref.include), ref.task
    declared = library.task(task)
    yield f"declaration: {library.path('task', task)}"
    benchmark = load_benchmark(ref)
    yield f"data: {benchmark.data.describe()} (fingerprint {benchmark.data.fingerprint})"
    if declared.evaluation_only:
        yield f"folds: none; all of it is test, {benchmark.split.test.describe()}"
        encoder = compose.load_encoder("tiny", declared.max_length, device="cpu")
        mean = evaluate(encoder, benchmark.data, benchmark.measures).mean(declared.monitor)
        yield f"scores: {declared.monitor} {100 * mean:.2f} by the untrained tiny encoder"
        return
    splits = _splits(ref, benchmark)
    if benchmark.translations:
        yield f"translated: {described(benchmark.translations.block)}, in train of each fold"
    if lacking := benchmark.only_translated:
        yield f"dev: no rows in {', '.join(lacking)}, so it is for budget.meta_valid=0"
    sizes = ", ".join(str(len(each.test.groups)) for each in splits)
    yield f"folds: {len(splits)}, with {sizes} articles or rows in test"
    modes = [mode for mode in library.modes() if applies(declared, mode)]
    if not modes:
        raise ConfigError(f"task '{task}' has no arrangement for any mode; see `metasearch ls modes`")
    encoder = compose.load_encoder("tiny", declared.max_length, device="cpu")
    changes = ("budget.meta_valid=0",) if benchmark.only_translated else ()
    for mode in modes:
        recipe = choose_recipe(mode.mode, declared.encoder, None, None, changes, ref.include)
        placed = replace(benchmark, mode=mode, arrangements=resolve(declared, mode, modes))
        check_fit(recipe, placed, "fp32")
        # Folds differ by an article or row, which may be the one that is missing.
        for fold, parts in enumerate(splits):
            check_sizes(replace(placed, split=parts, fold=fold), recipe)
        learner = compose.make_learner(recipe, encoder)
        losses = [
            learner.outer_loss([sampler.episode(i)]).total.item()
            for phase, sampler in samplers(placed, recipe, seed=0).items()
            for i in range(len(placed.arrangements[phase]))
        ]
        span = f"{min(losses):.3f} to {max(losses):.3f}"
        yield f"mode {mode.mode}: {len(losses)} episodes drawn and embedded, loss {span}"


def _splits(ref: DataRef, benchmark: Benchmark) -> list[Split]:
    """Return the parts of every fold."""
    task = benchmark.task
    folds = range(task.folds.k if task.folds.method == "kfold" else 1)
    if benchmark.translations:  # those of its own train, which stand in no other fold's
        return [load_benchmark(ref, fold=fold).split for fold in folds]
    return [split(benchmark.data, task.folds, fold) for fold in folds]
