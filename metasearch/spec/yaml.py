"""Strict YAML: the only door to PyYAML.

A file is read with every scalar as a string and then coerced by the types of a pydantic model, so that `1e-3` is a
number, the language `no` is not `False`, and an unknown or repeated key is an error. All problems of a file are
reported at once, each with its line, key path, value and, where there is one, the nearest right choice.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from yaml.composer import Composer

from metasearch.errors import ConfigError, nearest
from metasearch.files import read_bytes
from metasearch.spec.problems import At, Places, dotted, problem

Tree = dict[str, Any]

_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp", "seq", "map")}
"""Types that a value may be marked with, as in `!!str 1`; what it becomes is the model's to say."""
_VALUES = 10_000
"""Values that a file of any size may have, each alias counted with all that it stands for."""

Model = TypeVar("Model", bound=BaseModel)


def read(path: Path, model: type[Model], overrides: Mapping[str, Any] | None = None) -> Model:
    """Read a YAML file into a model, following one level of `include:`.

    Args:
        path: the file. `include: NAME` in it names a sibling whose keys it overrides (mappings are merged).
        model: type of the declaration.
        overrides: values that win over the file's, nested as the file is; problems name them `--set`.

    Raises:
        ConfigError: with every problem of the file, one a line.
    """
    tree, places = _parse(path)
    if "include" in tree:
        name = str(tree.pop("include"))
        siblings = {p.stem: p for p in path.parent.glob("*.yaml")}
        if name not in siblings:
            raise ConfigError(f"{path}: include: no file {name}.yaml.{nearest(name, siblings)}")
        base, base_places = _parse(siblings[name])
        if "include" in base:
            raise ConfigError(f"{path}: include: {name}.yaml includes another file; one level is allowed")
        tree, places = merge(base, tree), {**base_places, **places}
    keys = list(_keys_of(overrides or {}))
    # An overridden key is that of `--set`; a section around it keeps its line where the file has one.
    places = {at[:1]: "--set" for at in keys} | places | dict.fromkeys(keys, "--set")
    return check(merge(tree, overrides or {}), model, str(path), places)


def check(tree: Mapping[str, Any], model: type[Model], where: str, places: Places | None = None) -> Model:
    """Turn a tree of strings into a model; `ConfigError` lists every problem of it."""
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        problems = [problem(item, model, where, places or {}) for item in error.errors()]
        raise ConfigError("\n".join(problems)) from None


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Tree:
    """Return `base` with the keys of `over` put over it; mappings are merged, everything else replaced."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def value_of(written: str, where: str) -> Any:
    """Return a value written on the command line: a list such as `[de, fr]`, `null`, or the text itself."""
    if written == "null":
        return None
    if not written.startswith("["):
        return written
    try:
        node = _composed(written)
    except (yaml.YAMLError, RecursionError):
        node = None
    if not isinstance(node, yaml.SequenceNode):
        raise ConfigError(f"{where}: expected a list such as [de, fr], got '{written}'")
    return _Reader(where, len(written)).value(node, ())


def _keys_of(tree: Mapping[str, Any], at: At = ()) -> Iterator[At]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _keys_of(value, (*at, key))
        else:
            yield (*at, key)


class _Dumper(yaml.SafeDumper):
    """Writes a list of plain values on one line, however many mappings stand around it."""

    def represent_list(self, data: Iterable[Any]) -> yaml.SequenceNode:
        plain = not any(isinstance(item, list | dict) for item in data)
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=plain)


_Dumper.add_representer(list, _Dumper.represent_list)


def dump(tree: Mapping[str, Any]) -> str:
    """Return a tree as YAML, in the order of its keys, every script intact."""
    return yaml.dump(dict(tree), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def tree(path: Path) -> Tree:
    """Return a YAML file as strings, unchecked; `ConfigError` names file and line of what is no YAML."""
    return _parse(path)[0]


def tree_of(text: str, where: str) -> tuple[Tree, Places]:
    """Return a text in YAML as strings, unchecked, and `where:line` of each key; `ConfigError` where it is no YAML."""
    try:
        node = _composed(text)
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError(f"{where}:1: expected keys and values, such as 'task: {Path(where).stem}'")
        reader = _Reader(where, len(text))
        return reader.mapping(node, ()), reader.places
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise ConfigError(f"{where}:{line + 1}: not YAML: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position)
        raise ConfigError(f"{where}:{line + 1}: not YAML: {error.reason}") from None
    except RecursionError:
        raise ConfigError(f"{where}:1: not readable: it nests too deep, or within itself") from None


def _parse(path: Path) -> tuple[Tree, Places]:
    try:
        return tree_of(read_bytes(path).decode("utf-8-sig"), str(path))  # an editor may have put a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _composed(text: str) -> yaml.Node | None:
    """Return the node of a text, by libyaml where it is there; what that refuses, the other parser explains better."""
    try:
        return yaml.compose(text, Loader=_loader())
    except yaml.YAMLError:
        return yaml.compose(text, Loader=yaml.BaseLoader)


@cache
def _loader() -> Any:
    """Return a loader that parses in C and composes in Python: libyaml's own composer crashes on deep nesting."""
    if not yaml.__with_libyaml__:
        return yaml.BaseLoader

    class Loader(Composer, yaml.CBaseLoader):  # the first base's methods are the ones that are called
        def __init__(self, text: str) -> None:
            yaml.CBaseLoader.__init__(self, text)
            Composer.__init__(self)

    return Loader


class _Reader:
    """Turns nodes into a tree of strings, and notes the place of each; `where` is the file, `size` its characters."""

    def __init__(self, where: str, size: int) -> None:
        self.where = where
        # Without aliases a file has fewer values than characters; with them some lines can stand for billions.
        self.most = max(size, _VALUES)
        self.places: Places = {}

    def value(self, node: yaml.Node, at: At) -> Any:
        place = self.places[at] = self.place(node)
        if len(self.places) > self.most:
            raise ConfigError(f"{place}: {dotted(at)}: aliases (*name) make over {self.most:,} values of this file")
        if node.tag not in _TAGS:
            raise ConfigError(
                f"{place}: {dotted(at)}: the tag {node.tag.replace('tag:yaml.org,2002:', '!!')} is not known"
            )
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, at)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*at, i)) for i, item in enumerate(node.value)]
        if "\0" in node.value:
            raise ConfigError(f"{place}: {dotted(at)}: holds a NUL character")
        plain = isinstance(node, yaml.ScalarNode) and not node.style  # None or, by libyaml, an empty string
        return None if plain and node.value in ("", "null", "~") else node.value

    def mapping(self, node: yaml.MappingNode, at: At) -> Tree:
        tree: Tree = {}
        for key_node, value_node in node.value:
            place = self.place(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError(f"{place}: expected a text as a key, got a list or a mapping")
            key = key_node.value
            if key in tree:
                raise ConfigError(f"{place}: {dotted((*at, key))}: the key stands twice")
            tree[key] = self.value(value_node, (*at, key))
            # After the value, which noted its own line: a problem names the line of the key.
            self.places[(*at, key)] = place
        return tree

    def place(self, node: yaml.Node) -> str:
        return f"{self.where}:{node.start_mark.line + 1}"
