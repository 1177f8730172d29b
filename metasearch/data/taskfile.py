"""Strict YAML: the only door to PyYAML.

A file is read with every scalar as a string and then coerced by the types of a pydantic model, so that `1e-3` is a
number, the language `no` is not `False`, and an unknown or repeated key is an error. All problems of a file are
reported at once, each with its line, key path, value and, where there is one, the nearest right choice.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from metasearch.errors import ConfigError, nearest

Tree = dict[str, Any]
Lines = dict[tuple[str | int, ...], int]


Model = TypeVar("Model", bound=BaseModel)


def read(path: Path, model: type[Model], overrides: Mapping[str, Any] | None = None) -> Model:
    """Read a YAML file into a model, following one level of `include:`.

    Args:
        path: the file. `include: NAME` in it names a sibling whose keys it overrides (mappings are merged).
        model: what the keys must look like.
        overrides: values that win over the file's, nested as the file is.

    Raises:
        ConfigError: with every problem of the file, one a line.
    """
    tree, lines = _parse(path)
    if "include" in tree:
        base_path = path.with_name(f"{tree.pop('include')}.yaml")
        if not base_path.is_file():
            siblings = [p.stem for p in path.parent.glob("*.yaml") if p != path]
            raise ConfigError(f"{path}: include: no file {base_path.name}.{nearest(base_path.stem, siblings)}")
        base, base_lines = _parse(base_path)
        if "include" in base:
            raise ConfigError(f"{path}: include: {base_path.name} includes another file; one level is allowed")
        tree, lines = merge(base, tree), {**base_lines, **lines}
    return check(merge(tree, overrides or {}), model, str(path), lines)


def check(tree: Mapping[str, Any], model: type[Model], where: str, lines: Lines | None = None) -> Model:
    """Turn a tree of strings into a model; `ConfigError` lists every problem of it."""
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        problems = [_problem(item, model, where, lines or {}) for item in error.errors()]
        raise ConfigError("\n".join(problems)) from None


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Tree:
    """Return `base` with the keys of `over` put over it; mappings are merged, everything else replaced."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def dump(tree: Mapping[str, Any]) -> str:
    """Return a tree as YAML, in the order of its keys, every script intact."""
    return yaml.safe_dump(dict(tree), sort_keys=False, allow_unicode=True, width=110)


def _parse(path: Path) -> tuple[Tree, Lines]:
    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: not YAML: {error.problem}") from None
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{path}:1: expected keys and values, such as 'task: {path.stem}'")
    lines: Lines = {}
    return _mapping(node, (), lines, path), lines


def _value(node: yaml.Node, at: tuple[str | int, ...], lines: Lines, path: Path) -> Any:
    lines[at] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, at, lines, path)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*at, i), lines, path) for i, item in enumerate(node.value)]
    plain = isinstance(node, yaml.ScalarNode) and node.style is None
    return None if plain and node.value in ("", "null", "~") else node.value


def _mapping(node: yaml.MappingNode, at: tuple[str | int, ...], lines: Lines, path: Path) -> Tree:
    tree: Tree = {}
    for key_node, value_node in node.value:
        key = str(key_node.value)
        if key in tree:
            line = key_node.start_mark.line + 1
            raise ConfigError(f"{path}:{line}: {_dotted((*at, key))}: the key stands twice")
        tree[key] = _value(value_node, (*at, key), lines, path)
        lines[(*at, key)] = key_node.start_mark.line + 1
    return tree


def _problem(item: Any, model: type[BaseModel], where: str, lines: Lines) -> str:
    at = tuple(part for part in item["loc"])
    line = next((lines[at[:n]] for n in range(len(at), 0, -1) if at[:n] in lines), None)
    place = f"{where}:{line}" if line else where
    if item["type"] == "extra_forbidden":
        return f"{place}: {_dotted(at)}: unknown key.{nearest(str(at[-1]), _keys(model, at[:-1]))}"
    if item["type"] == "missing":
        return f"{place}: {_dotted(at)}: this key is missing"
    message = item["msg"].removeprefix("Value error, ")
    shown = "" if isinstance(item["input"], Mapping) else f" (got '{item['input']}')"
    prefix = f"{_dotted(at)}: " if at else ""
    return f"{place}: {prefix}{message[:1].lower()}{message[1:]}{shown if at else ''}"


def _keys(model: type[BaseModel], at: tuple[str | int, ...]) -> list[str]:
    """Names of the keys allowed at a place below a model."""
    for part in at:
        info = model.model_fields.get(str(part))
        inner = info.annotation if info else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return list(model.model_fields)


def _dotted(at: tuple[str | int, ...]) -> str:
    return ".".join(map(str, at))
