"""The direction of imports and the doors to third parties."""

import ast
import re
import subprocess
import sys
from contextlib import nullcontext
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import metasearch
from helpers.layers import HOLDS, LIGHT, MAY_IMPORT, import_graph
from metasearch.config import registry

ROOT = Path(metasearch.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

HEAVY = {"torch", "transformers", "sentence_transformers", "learn2learn"}
DOORS = {
    "learn2learn": "algorithms/inner_loop.py",
    "yaml": "config/yaml.py",
    "click": ("cli/", "search/commands/"),
    "fastapi": "search/server/",
    "starlette": "search/server/",
    "uvicorn": "search/server/",
    "prometheus_client": "search/server/metrics.py",
    "ray": "pipelines/study/launchers/ray_jobs.py",
    "submitit": "pipelines/study/launchers/",
}
ENTRIES = {"__main__": {"runs", "cli"}, "__init__": set(HOLDS)}
"""What starts the command, and what names the public interface and imports it when it is used."""


def name_of(path):
    """Return a module's path within the package."""
    return path.relative_to(ROOT).as_posix()


def dotted_name(path):
    """Return the name by which a module is imported."""
    return ".".join(("metasearch", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def of_layer(layer):
    """Return the modules of a package, or of a folder in one such as `evaluation/report`."""
    return [path for path in MODULES if f"{name_of(path).removesuffix('.py')}/".startswith(f"{layer}/")]


def absolute(node, package):
    """Return the dotted module that `from ... import` names, with a relative one resolved."""
    if not node.level:
        return node.module
    return ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])


def called(node):
    """Return the last name of what a call calls; None where it has none."""
    return getattr(node.func, "attr", getattr(node.func, "id", None))


def imports_of(source, package):
    """Return every module that a source imports, at any depth and under any condition, as (dotted name, line)."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = absolute(node, package)
            parts = [f"{origin}.{alias.name}" for alias in node.names] if origin == "metasearch" else [origin]
            found += [(part, node.lineno) for part in parts]
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
            found += [(part.value, node.lineno) for part in node.args if isinstance(part, ast.Constant)]
    return found


@cache
def imports(path):
    """Return every module that a file imports, as `imports_of` does."""
    return imports_of(path.read_text(encoding="utf-8"), ("metasearch", *path.relative_to(ROOT).parent.parts))


def layers_imported(path):
    """Return the layers of metasearch that a file imports, as (layer, line)."""
    dotted = [(name.split("."), line) for name, line in imports(path)]
    return [(parts[1] if len(parts) > 1 else "__init__", line) for parts, line in dotted if parts[0] == "metasearch"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch.nn as nn", "torch.nn"),
        ("from torch import Tensor", "torch"),
        ("def f():\n    from metasearch.pipelines.factory import fit", "metasearch.pipelines.factory"),
        ("if TYPE_CHECKING:\n    from metasearch import pipelines", "metasearch.pipelines"),
        ("from ..algorithms.base import Learner", "metasearch.algorithms.base"),
        ("from .. import pipelines", "metasearch.pipelines"),
        ("from metasearch import __version__", "metasearch.__version__"),
        ("importlib.import_module('torch')", "torch"),
    ],
)
def test_an_import_is_seen_however_it_is_written(source, expected):
    assert [name for name, _ in imports_of(source, ("metasearch", "training"))] == [expected]


@pytest.mark.parametrize("layer", [*MAY_IMPORT, *ENTRIES])
def test_a_module_imports_its_own_layer_and_those_below(layer):
    own, allowed = of_layer(layer), {*{**MAY_IMPORT, **ENTRIES}[layer], layer}
    assert own
    assert [f"{name_of(p)}:{line}: {x}" for p in own for x, line in layers_imported(p) if x not in allowed] == []


def test_every_layer_is_there_and_the_order_has_no_circle():
    assert {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in MODULES} == {*MAY_IMPORT, *ENTRIES}
    order = list(HOLDS)
    assert order == list(MAY_IMPORT)
    for place, layer in enumerate(order):
        assert MAY_IMPORT[layer] <= set(order[:place]), layer


def test_no_files_import_each_other_in_a_circle():
    sources = {dotted_name(path): path.read_text(encoding="utf-8") for path in MODULES}
    graph = import_graph(sources)
    assert sum(map(len, graph.values())) > len(MODULES)  # the imports are seen
    TopologicalSorter(graph).prepare()  # a CycleError names the files of a circle


@pytest.mark.parametrize(
    ("source", "circle"),
    [
        ("from metasearch.data.readers import beir", True),
        ("def read():\n    from metasearch.data.readers.beir import read_folder", True),
        ("if TYPE_CHECKING:\n    from metasearch.data.readers.beir import Reader", False),
    ],
)
def test_a_circle_of_files_is_seen_within_functions_and_not_among_types(source, circle):
    sources = {
        "metasearch.data.readers": "",
        "metasearch.data.readers.beir": "import metasearch.data.records",
        "metasearch.data.records": source,
    }
    with pytest.raises(CycleError) if circle else nullcontext():
        TopologicalSorter(import_graph(sources)).prepare()


@pytest.mark.parametrize("layer", LIGHT)
def test_a_light_layer_imports_no_torch_at_any_depth(layer):
    found = [(path, name, line) for path in of_layer(layer) for name, line in imports(path)]
    assert [f"{name_of(path)}:{line}: {name}" for path, name, line in found if name.split(".")[0] in HEAVY] == []


@pytest.mark.slow
def test_importing_every_light_module_loads_no_torch():
    light = [path for layer in LIGHT for path in of_layer(layer)]
    code = (
        "import importlib, sys\n"
        f"for name in {list(map(dotted_name, light))!r}: importlib.import_module(name)\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_names_are_looked_up_in_four_places():
    """So that all other code gets whole tasks, modes and recipes, which no later change of a file can alter."""
    looking = re.compile(r"(?<!class )\bLibrary\(")
    found = [name_of(path) for path in MODULES for _ in looking.findall(path.read_text(encoding="utf-8"))]
    assert found == ["cli/_settings.py", "config/library.py", "data/benchmark.py"]


@pytest.mark.parametrize(("package", "door"), DOORS.items())
def test_a_third_party_has_one_door(package, door):
    through = {name_of(path) for path in MODULES for name, _ in imports(path) if name.split(".")[0] == package}
    assert {name for name in through if not name.startswith(door)} == set()
    assert through


def test_the_engine_names_no_learner_and_no_task():
    """Plug-ins are chosen in `jobs`; a method that the engine knows by name could not be added from outside."""
    plugins = {name.replace("-", "_") for name in registry.names("learners")}
    for path in (ROOT / "training").rglob("*.py"):
        for name, line in imports(path):
            assert name.split(".")[-1] not in plugins, f"{name_of(path)}:{line}: {name}"


def test_one_module_asks_how_much_memory_there_is():
    """So that none overlooks the limit of a container."""
    asking = re.compile(r"SC_PHYS_PAGES|MemTotal|MemAvailable|psutil|cgroup")
    assert [name_of(path) for path in MODULES if asking.search(path.read_text(encoding="utf-8"))] == ["cli/doctor.py"]
