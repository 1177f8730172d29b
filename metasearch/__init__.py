"""A meta-learning toolkit that teaches multilingual encoders to search across languages from a few labels.

    import metasearch as ms

    benchmark = ms.load_benchmark("demo", mode="mono-bi-multi", fold=0)
    encoder = ms.load_encoder("tiny", benchmark.task.max_length)
    recipe = ms.load_recipe("maml-align-tiny")
    learner = ms.make_learner(recipe, encoder)
    ms.fit(learner, benchmark, recipe)
    print(ms.evaluate(encoder, benchmark.split.test, benchmark.measures).mean("map@20"))

Names are imported when they are first used, so that `import metasearch` loads no torch, and next to nothing else.
"""

from importlib import import_module

from metasearch.version import __version__ as __version__

_HOME = {  # module, and the name there where it is another one; with a colon alone the module
    "Benchmark": "data.benchmark",
    "DataConfig": "config.run",
    "DistillConfig": "config.distill_run",
    "Encoder": "encoders.encoder",
    "EncoderConfig": "config.run",
    "MetasearchError": "errors",
    "Recipe": "config.recipe",
    "RetrievalData": "data.records",
    "adapt": "search.tune.adapt.job",
    "compare": "evaluation.study.compare",
    "crossval": "pipelines.study.runner:begin",
    "distill": "pipelines.distill.job:begin",
    "evaluate": "evaluation.evaluate",
    "fit": "pipelines.factory",
    "index_documents": "search.indexes",
    "load_benchmark": "data.benchmark",
    "load_distillation": "config.library",
    "load_encoder": "encoders.load",
    "load_labels": "data.labels",
    "load_recipe": "config.library",
    "make_benchmark": "data.benchmark",
    "make_learner": "pipelines.factory",
    "losses": "algorithms.losses:",
    "make_student": "compress.student",
    "meta_train": "pipelines.meta_train",
    "neutralise": "pipelines.neutral",
    "open_searcher": "search.indexes",
    "read_study": "evaluation.study.read",
    "tune": "search.tune.call",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'metasearch' has no attribute '{name}'")
    home, colon, attribute = _HOME[name].partition(":")
    module = import_module(f"metasearch.{home}")
    return module if colon and not attribute else getattr(module, attribute or name)


def __dir__() -> list[str]:
    return __all__
