"""Plug-ins by name: learners, losses, metrics, readers, encoders, sections, formats of documents, stores.

A plug-in is a module that defines the object of its kind, such as `LEARNER`: a file in the folder of the kind, whose
name with dashes is the plug-in's name, or a module under an entry point such as `metasearch.algorithms`. A file may
also define a family: `METRIC_RECALL` is the metric `recall`, and `files_CSV` with `read_CSV` the reader `csv`. Listing
imports nothing.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from metasearch.errors import ConfigError, require_known

_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class PlugInKind:
    """A kind of plug-ins.

    Attributes:
        folder: folder of the shipped modules, below the package.
        defines: the name that a module assigns, or `def` and a name; other modules are no plug-ins.
        provides: names that a plug-in's module must have; dotted ones are attributes of what it defines.
    """

    folder: str
    defines: str
    provides: tuple[str, ...]

    def definition(self, name: str = "") -> re.Pattern[str]:
        """Return the pattern of the top-level line that defines the plug-in, or a name that matches `name`."""
        return re.compile(rf"^{name or self.defines}\s*(?:\(|(?::[^=\n]+)?=(?!=))", re.M)


KINDS = {
    "learners": PlugInKind("algorithms", "LEARNER", ("LEARNER",)),
    "losses": PlugInKind("algorithms/losses", "LOSS", ("LOSS",)),
    "metrics": PlugInKind(
        "evaluation/metrics", "METRIC", ("METRIC", "METRIC.kind", "METRIC.function", "METRIC.cutoff")
    ),
    "readers": PlugInKind("data/readers", "def read", ("files", "read")),
    "encoders": PlugInKind("encoders/builtin", "def build", ("build",)),
    "sections": PlugInKind("evaluation/report/sections", "def section", ("ORDER", "section")),
    "documents": PlugInKind("search/documents/readers", "def sections", ("SUFFIXES", "HOLDS", "sections")),
    "stores": PlugInKind("search/index", "STORE", ("STORE", "STORE.check", "STORE.copy", "STORE.open")),
}
"""Kind → where its plug-ins are; the entry point of a kind is `metasearch.<kind>`."""


def names(kind: str) -> list[str]:
    """Return all plug-in names for a kind, one of `KINDS`, sorted."""
    return sorted({*_shipped(kind), *_offered(kind)})


def load(kind: str, name: str) -> Any:
    """Import a plug-in's module; a member of a family comes in its own namespace."""
    require(kind, name)
    if name in _shipped(kind):
        path, member = _shipped(kind)[name]
        found = import_module(f"metasearch.{KINDS[kind].folder.replace('/', '.')}.{path.stem}")
        if not member:
            return found
        own = member.removeprefix(KINDS[kind].provides[0])
        provided = [each for each in KINDS[kind].provides if "." not in each]
        return SimpleNamespace(**{each: getattr(found, f"{each}{own}") for each in provided})
    entry = _offered(kind)[name]
    try:
        module: ModuleType = entry.load()
    except Exception as error:  # code from outside may raise anything
        raise ConfigError(f"{_origin(kind, entry)} cannot be imported: {type(error).__name__}: {error}") from error
    # Only of modules from outside: those that ship are listed for what they define.
    for attribute in KINDS[kind].provides:
        try:
            attrgetter(attribute)(module)
        except AttributeError:
            raise ConfigError(f"{_origin(kind, entry)} does not define {attribute}") from None
    return module


def constants(kind: str, constant: str) -> dict[str, Any]:
    """Return what each plug-in assigns to a constant; one that ships is not imported, and has a literal in one line."""
    found = {}
    for name in names(kind):
        if name in _shipped(kind):
            text = _shipped(kind)[name][0].read_text(encoding="utf-8")
            found[name] = ast.literal_eval(re.search(rf"^{constant} = (.+)$", text, re.M)[1])  # type: ignore[index]
        else:
            found[name] = getattr(load(kind, name), constant)
    return found


def require(kind: str, name: str) -> None:
    """Raise `ConfigError` with the nearest plug-in for an unknown name."""
    file = _PACKAGE / KINDS[kind].folder / f"{name.replace('-', '_')}.py"
    if name not in names(kind) and re.fullmatch("[a-z][a-z0-9-]*", name) and file.is_file():
        raise ConfigError(f"unknown {_singular(kind)} '{name}': {file} does not define `{KINDS[kind].defines}`")
    require_known(_singular(kind), name, names(kind))


def summary(kind: str, name: str) -> str:
    """Return the first line of a plug-in's docstring without importing it; for an external one, its package."""
    if name in _shipped(kind):
        path, member = _shipped(kind)[name]
        source = ast.parse(path.read_text(encoding="utf-8"))
        if member:  # the text after its assignment
            line = KINDS[kind].definition(re.escape(member))
            starts = [i for i, node in enumerate(source.body) if line.match(ast.unparse(node))]
            source = ast.Module(source.body[starts[0] + 1 :], [])
        return (ast.get_docstring(source) or "").partition("\n")[0]
    entry = _offered(kind)[name]
    return f"from package {entry.dist.name if entry.dist else 'unknown'}: {entry.value}"


@cache
def _shipped(kind: str) -> Mapping[str, tuple[Path, str]]:
    """Return a plug-in's file by name, and its name in that file for a member of a family."""
    start = KINDS[kind].definition()
    member = KINDS[kind].definition(rf"({KINDS[kind].provides[0]}_([A-Z0-9_]+))")
    found: dict[str, tuple[Path, str]] = {}
    for path in sorted((_PACKAGE / KINDS[kind].folder).glob("[a-z]*.py")):
        text = path.read_text(encoding="utf-8")
        if start.search(text):
            found[path.stem.replace("_", "-")] = path, ""
        found |= {name.lower().replace("_", "-"): (path, attribute) for attribute, name in member.findall(text)}
    return found


@cache
def _offered(kind: str) -> Mapping[str, EntryPoint]:
    """Return what installed packages offer, by name; `ConfigError` where a name is taken."""
    offered: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"metasearch.{kind}"):
        other = "metasearch itself has one" if entry.name in _shipped(kind) else None
        # One module offered twice, say by two installed copies of a package, is no conflict.
        if entry.name in offered and offered[entry.name].value != entry.value:
            other = f"so has {_origin(kind, offered[entry.name])}"
        if other:
            raise ConfigError(f"{_origin(kind, entry)} has a duplicate name: {other}")
        offered[entry.name] = entry
    return offered


def _origin(kind: str, entry: EntryPoint) -> str:
    package = f" of package {entry.dist.name}" if entry.dist else ""
    return f"{_singular(kind)} '{entry.name}'{package} ({entry.value})"


def _singular(kind: str) -> str:
    return "loss" if kind == "losses" else kind.removesuffix("s")
