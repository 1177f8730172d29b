"""Strict YAML: the only door to PyYAML.

Every plain value is read as text and converted by the types of a pydantic model, so that `1e-3` is a number, the
language `no` is not `False`, and an unknown or duplicate key is an error. All problems of a file are reported at once,
each with its line, key path, value and the nearest valid choice.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from yaml.composer import Composer

from metasearch.errors import ConfigError, nearest
from metasearch.io import read_bytes

# Says what is wrong with a value of a declaration: where it stands, what it is, and what is right.

At = tuple[str | int, ...]
Places = dict[At, str]
"""Key path → `file:line`."""


def problem(item: Any, model: type[BaseModel], where: str, places: Places) -> str:
    """Return one pydantic problem as a line."""
    contradiction = item.get("ctx", {}).get("error")
    # Pydantic knows which value was checked, and a `Contradiction` where below it the fault is.
    at = (*item["loc"], *getattr(contradiction, "at", ()))
    place = _nearest_place(at, places, where)
    if item["type"] == "extra_forbidden":
        return f"{place}: {dotted(at)}: unknown key.{nearest(str(at[-1]), _keys(model, at[:-1]))}"
    if item["type"] == "missing":
        return f"{place}: {dotted(at)}: missing key"
    prefix = f"{dotted(at)}: " if at else ""
    message = _message(item, [*_keys(model, at), "..."][0])
    return f"{place}: {prefix}{message[:1].lower()}{message[1:]}"


def _nearest_place(at: At, places: Places, where: str) -> str:
    """Return the place of a key, or of the nearest parent: a missing key has no line."""
    return next((places[at[:n]] for n in range(len(at), 0, -1) if at[:n] in places), where)


def _message(item: Any, key: str) -> str:
    """Return a problem and its value; `key` may be nested below it."""
    given, kind = item["input"], item["type"]
    if kind in ("tuple_type", "list_type") and isinstance(given, str):
        return f"expected a list such as [{given}] (got '{given}')"
    if given is None and kind == "string_type":
        return "expected a text, got nothing"
    if kind == "model_type":
        value = f"={given}" if key == "name" else ""
        return f"expected keys below it, such as {dotted((*item['loc'], key))}{value} (got '{given}')"
    message = str(item["msg"]).removeprefix("Value error, ")
    if isinstance(given, Mapping) and kind.endswith("_type"):
        return f"{message} (got the keys {', '.join(map(str, given))})"
    return message if isinstance(given, Mapping | BaseModel) or not item["loc"] else f"{message} (got '{given}')"


def _keys(model: type[BaseModel], at: At) -> list[str]:
    kind: Any = model
    for part in at:
        if get_origin(kind) in (dict, Mapping):
            kind = _first(get_args(kind)[1])
        elif get_origin(kind) is tuple:
            kind = _first(get_args(kind)[0])
        elif part in getattr(kind, "model_fields", {}):
            kind = _first(kind.model_fields[part].annotation)
        else:
            return []
    return [field.alias or name for name, field in getattr(kind, "model_fields", {}).items()]


def _first(annotation: Any) -> Any:
    """The first type in an annotation, such as `Student` in `Student | None`."""
    composed = get_origin(annotation) in (Union, UnionType, Annotated)
    return _first(get_args(annotation)[0]) if composed else annotation


def dotted(at: At) -> str:
    """Return a key path as written, `outer.lr`."""
    return ".".join(map(str, at))


Tree = dict[str, Any]

_BARE_BRACES = re.compile(r"""[\[,]\s*([^"'\[\],{}]+_\{[^{}]*\}[^"'\[\],{}]*)""")
"""A value of a list in brackets that has braces and no quotes, such as `en_en -> en_{de,en}`."""

_VALUES = 10_000
"""Values that a file of any size may have, each alias counted with all that it stands for."""

Model = TypeVar("Model", bound=BaseModel)


def read(path: Path, model: type[Model], overrides: Mapping[str, Any] | None = None) -> Model:
    """Read a YAML file into a model, following `include:`; `overrides` win, and problems name them `--set`."""
    tree, places = _read_included(path)
    keys = [tuple(key.split(".")) for key in flatten(overrides or {})]
    # An overridden key is that of `--set`; a section around it keeps its line where the file has one.
    places = {at[:1]: "--set" for at in keys} | places | dict.fromkeys(keys, "--set")
    return check(overlay(tree, overrides) if overrides else tree, model, str(path), places)


def read_stored(path: Path, model: type[Model]) -> Model:
    """Read a YAML file that metasearch wrote, with errors as `read`; ignore unknown keys without a value.

    A version with more options wrote them for options that were not used, so the settings are the same without them.
    """
    tree, places = _read(path)
    if isinstance(tree.get("config"), dict) and isinstance(tree["config"].get("mode"), str):
        raise ConfigError(f"{path}: it names its task and mode, as early versions wrote it; repeat the command")
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        for item in error.errors():
            if item["type"] == "extra_forbidden" and item["input"] in (None, [], {}):
                *above, key = item["loc"]
                branch: Any = tree
                for part in above:
                    branch = branch[part]
                del branch[key]
    return check(tree, model, str(path), places)


def find_place(path: Path, *at: str | int) -> str:
    """Return `file:line` for a key in a YAML file, or its nearest parent; the file where it is gone or damaged."""
    try:
        return _nearest_place(at, _read_included(path)[1], str(path))
    except ConfigError:
        return str(path)


def _read_included(path: Path, seen: tuple[Path, ...] = ()) -> tuple[Tree, Places]:
    """Return a file laid over the file it includes, and the places of keys; `seen` includes this file."""
    tree, places = _read(path)
    if "include" in tree:
        name = str(tree.pop("include"))
        siblings = {p.stem: p for p in path.parent.glob("*.yaml")}
        if name not in siblings:
            raise ConfigError(f"{path}: include: no file {name}.yaml.{nearest(name, siblings)}")
        if siblings[name] in (*seen, path):
            raise ConfigError(f"{path}: include: {name}.yaml includes itself")
        base, base_places = _read_included(siblings[name], (*seen, path))
        tree, places = overlay(base, tree), {**base_places, **places}
    return tree, places


def check(tree: Mapping[str, Any], model: type[Model], where: str, places: Places | None = None) -> Model:
    """Turn a tree of strings into a model; `ConfigError` lists every problem."""
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        problems = [problem(item, model, where, places or {}) for item in error.errors()]
        raise ConfigError("\n".join(problems)) from None


def overlay(base: Mapping[str, Any], over: Mapping[str, Any]) -> Tree:
    """Return `base` with the keys of `over` put over it; mappings are merged, everything else replaced."""
    found = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = overlay(found[key], value) if both else value
    return found


def flatten(tree: Mapping[str, Any], above: str = "") -> Tree:
    """Return the values of a nested tree by their dotted keys."""
    found: Tree = {}
    for key, value in tree.items():
        found |= flatten(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return found


def parse_value(written: str, where: str) -> Any:
    """Return a value written on the command line: a list such as `[de, fr]`, `null`, or the text itself."""
    if written == "null":
        return None
    if not written.startswith("["):
        return written
    try:
        value, _ = _parse(written, where)
    except ConfigError:
        value = None
    if not isinstance(value, list):
        raise ConfigError(f"{where}: expected a list such as [de, fr], got '{written}'")
    return value


class _Dumper(yaml.SafeDumper):
    """Writes a list of plain values on one line, however many mappings stand around it."""

    def represent_list(self, data: Iterable[Any]) -> yaml.SequenceNode:
        plain = not any(isinstance(item, list | dict) for item in data)
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=plain)


_Dumper.add_representer(list, _Dumper.represent_list)


def dump(tree: Mapping[str, Any]) -> str:
    """Return a tree as YAML, with keys in order and non-ASCII characters unescaped."""
    return yaml.dump(dict(tree), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def tree(path: Path) -> Tree:
    """Return a YAML file as text, unchecked; `ConfigError` names file and line of a syntax error."""
    return _read(path)[0]


def parse_tree(text: str, where: str) -> tuple[Tree, Places]:
    """Parse YAML as unchecked text, with `where:line` for each key; `ConfigError` names the line."""
    found, places = _parse(text, where)
    if not isinstance(found, dict):
        raise ConfigError(f"{where}:1: expected keys and values, such as 'task: {Path(where).stem}'")
    return found, places


def _read(path: Path) -> tuple[Tree, Places]:
    try:
        return parse_tree(read_bytes(path).decode("utf-8-sig"), str(path))  # an editor may have put a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _parse(text: str, where: str) -> tuple[Any, Places]:
    places: Places = {}
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        # With aliases, a few lines can stand for billions of values; without them a file has fewer than characters.
        limit = max(len(text), _VALUES)
        for at, line in _lines(node, where) if node else ():
            places[at] = f"{where}:{line}"
            if len(places) > limit:
                raise ConfigError(f"{where}:{line}: {dotted(at)}: aliases (*name) expand to over {limit:,} values")
        return (loader.construct_document(node) if node else None), places
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise ConfigError(f"{where}:{line + 1}: not YAML: {error.problem}{_quote_braces(text, line)}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position)
        raise ConfigError(f"{where}:{line + 1}: not YAML: {error.reason}") from None
    except RecursionError:
        raise ConfigError(f"{where}:1: not readable: nested too deep, or recursive") from None


def _quote_braces(text: str, line: int) -> str:
    """Return the advice to quote a variant in braces, where a list in brackets has one without quotes."""
    # With the line before, where the list may have begun.
    found = _BARE_BRACES.search("\n".join(text.splitlines()[max(0, line - 1) : line + 1]))
    return f'; in a list in brackets, quote what has braces: ["{found[1].strip()}"]' if found else ""


def _lines(node: yaml.Node, where: str, at: At = ()) -> Iterator[tuple[At, int]]:
    """Yield path and line of every key and item below a node; refuse duplicate keys and NUL characters."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError(f"{where}:{line}: expected a text as a key, got a list or a mapping")
            path = (*at, key.value)
            if key.value in seen:
                raise ConfigError(f"{where}:{line}: {dotted(path)}: duplicate key")
            seen.add(key.value)
            yield path, line
            yield from _lines(value, where, path)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield (*at, number), item.start_mark.line + 1
            yield from _lines(item, where, (*at, number))
    elif isinstance(node, yaml.ScalarNode) and "\0" in node.value:
        raise ConfigError(f"{where}:{node.start_mark.line + 1}: {dotted(at)}: NUL character")


_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml may be missing


class _Loader(Composer, _Parser):  # type: ignore[misc]  # of Any
    """Reads every plain value but null as text; composes in Python, as libyaml's composer crashes on deep nesting."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in known if tag.endswith(":null")]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        _Parser.__init__(self, text)
        Composer.__init__(self)
