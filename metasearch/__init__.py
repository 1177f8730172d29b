"""Teach multilingual sentence encoders to search across languages from a handful of labels.

    import metasearch as ms

    benchmark = ms.load_benchmark("demo", mode="mono-bi-multi", fold=0)
    encoder = ms.load_encoder("tiny", benchmark.task.max_length)
    recipe = ms.load_recipe("maml-align-tiny")
    learner = ms.make_learner(recipe, encoder)
    ms.fit(learner, benchmark, recipe)
    print(ms.evaluate(encoder, benchmark.split.test, benchmark.measures).mean("map@20"))

Names are imported when they are first used, so that `import metasearch` loads no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from metasearch.catalog import Benchmark, load_benchmark, load_distillation, load_recipe
    from metasearch.compress.student import make_student
    from metasearch.config import Recipe
    from metasearch.distillation.config import DistillConfig
    from metasearch.distillation.job import distill
    from metasearch.encoders.base import Encoder
    from metasearch.errors import MetasearchError
    from metasearch.evaluation.evaluate import evaluate
    from metasearch.results.compare import compare
    from metasearch.results.read import read_study
    from metasearch.run import fit, load_encoder, make_learner
    from metasearch.study.runner import crossval

_HOME = {
    "Benchmark": "catalog",
    "DistillConfig": "distillation.config",
    "Encoder": "encoders.base",
    "MetasearchError": "errors",
    "Recipe": "config",
    "compare": "results.compare",
    "crossval": "study.runner",
    "distill": "distillation.job",
    "evaluate": "evaluation.evaluate",
    "fit": "run",
    "load_benchmark": "catalog",
    "load_distillation": "catalog",
    "load_encoder": "run",
    "load_recipe": "catalog",
    "make_learner": "run",
    "make_student": "compress.student",
    "read_study": "results.read",
}

__all__ = [
    "Benchmark",
    "DistillConfig",
    "Encoder",
    "MetasearchError",
    "Recipe",
    "compare",
    "crossval",
    "distill",
    "evaluate",
    "fit",
    "load_benchmark",
    "load_distillation",
    "load_encoder",
    "load_recipe",
    "make_learner",
    "make_student",
    "read_study",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'metasearch' has no attribute '{name}'")
    return getattr(import_module(f"metasearch.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
