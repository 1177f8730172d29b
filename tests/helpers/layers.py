"""The packages of metasearch, what each holds and what each may import: the one place where this is written down."""

import ast
from collections.abc import Mapping

HOLDS = {
    "version": "the version, which reports and graphs name",
    "errors": "errors that a user can act on, each with its [exit code](exit-codes.md)",
    "io": "atomic files and folders, locks, checksums, the user's cache",
    "config": "what a user asks for: tasks, modes, recipes and the settings of a run; finds plug-ins by name",
    "data": "files become records and folds; readers, parallel corpora, translation",
    "runs": "the files of a run: settings, log, results, checksums; callbacks; Ctrl-C and SIGTERM",
    "encoders": "texts become embeddings: loading, built-in encoders, the language-neutral projection",
    "episodes": "few-shot tasks along language arrangements",
    "algorithms": "one formula a file (MAML, MAML-Align, distillation, ...), and the losses",
    "compress": "smaller encoders, and `export`: ONNX, int8, fewer dimensions",
    "evaluation": "metrics and scores; `study` reads runs back, `statistics` compares them, `report` shows them",
    "training": "the training loop, optimizers, checkpoints, processes; `packing` computes gradients without padding",
    "sentence_transformers": "an evaluator for trainers of sentence-transformers",
    "mteb": "a model of mteb",
    "pipelines": "what the commands do, a file or folder each; model cards",
    "cli": "the command line; options are generated from `config`",
    "search": "documents become an `index`, with its `query`, `server` and `tune`; imported from no other package",
}
"""Package → what it holds; the lowest comes first."""

_BASE = {"version", "errors", "io", "config"}
_MODEL = {*_BASE, "data", "runs", "encoders"}
MAY_IMPORT = {
    "version": set(),
    "errors": set(),
    "io": {"errors"},
    "config": {"errors", "io"},
    "data": {"errors", "io", "config"},
    "runs": {*_BASE},
    "encoders": {"errors", "io", "config", "data", "runs"},
    "episodes": {"errors", "config", "data"},
    "algorithms": {"errors", "config", "data", "encoders", "episodes"},
    "compress": {*_MODEL},
    "evaluation": {*_MODEL},
    "training": {*_BASE, "runs", "encoders", "episodes", "algorithms"},
    "sentence_transformers": {*_MODEL, "evaluation"},
    "mteb": {*_MODEL},
    "pipelines": {*_MODEL, "episodes", "algorithms", "compress", "evaluation", "training"},
    "cli": {*_MODEL, "episodes", "compress", "evaluation", "training", "pipelines"},
    "search": {*_MODEL, "episodes", "algorithms", "compress", "evaluation", "training", "pipelines", "cli"},
}
"""Package → the packages that it may import beside itself, all of them lower."""

LIGHT = (
    "version", "errors", "io", "config", "data", "runs", "episodes", "evaluation/study", "evaluation/statistics",
    "evaluation/report", "search/index", "__init__",
)  # fmt: skip
"""Packages that never import torch, so that reading, comparing and reporting answer at once."""


def import_graph(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the modules that each module imports when it runs, also within functions, but not for type checkers.

    Args:
        sources: dotted name of a module or package → its source, without relative imports.
    """
    graph = {}
    for name, source in sources.items():
        dotted = set[str]()
        for node in ast.walk(_WithoutTypes().visit(ast.parse(source))):
            if isinstance(node, ast.Import):
                dotted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{name}:{node.lineno}: relative import"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                dotted |= {each if each in sources else str(node.module) for each in names}
        graph[name] = dotted & sources.keys()
    return graph


class _WithoutTypes(ast.NodeTransformer):
    """Removes what only type checkers read."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if ast.unparse(node.test).endswith("TYPE_CHECKING") else node
