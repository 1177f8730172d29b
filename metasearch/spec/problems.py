"""Says what is wrong with a value of a declaration: where it stands, what it is, and what is right."""

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from metasearch.errors import nearest

At = tuple[str | int, ...]
Places = dict[At, str]
"""Key path → `file:line`."""


def problem(item: Any, model: type[BaseModel], where: str, places: Places) -> str:
    """Return one problem of those that pydantic found in a model, in a line.

    Args:
        item: as pydantic tells it.
        model: type of the declaration.
        where: it stands, for values that no place is known of.
        places: of keys.
    """
    contradiction = item.get("ctx", {}).get("error")
    # Pydantic knows which value was checked, and a `Contradiction` where below it the fault is.
    at = (*item["loc"], *getattr(contradiction, "at", ()))
    # A missing key has no line: the nearest one around it is named.
    place = next((places[at[:n]] for n in range(len(at), 0, -1) if at[:n] in places), where)
    if item["type"] == "extra_forbidden":
        return f"{place}: {dotted(at)}: unknown key.{nearest(str(at[-1]), _keys(model, at[:-1]))}"
    if item["type"] == "missing":
        return f"{place}: {dotted(at)}: this key is missing"
    prefix = f"{dotted(at)}: " if at else ""
    message = _message(item, [*_keys(model, at), "..."][0])
    return f"{place}: {prefix}{message[:1].lower()}{message[1:]}"


def _message(item: Any, key: str) -> str:
    """Return what is wrong with a value, and the value; `key` is one that may stand below it."""
    given, kind = item["input"], item["type"]
    if kind in ("tuple_type", "list_type") and isinstance(given, str):
        return f"expected a list such as [{given}] (got '{given}')"
    if kind == "model_type":
        return f"expected keys below it, such as {dotted((*item['loc'], key))} (got '{given}')"
    message = str(item["msg"]).removeprefix("Value error, ")
    if isinstance(given, Mapping) and kind.endswith("_type"):
        return f"{message} (got the keys {', '.join(map(str, given))})"
    return message if isinstance(given, Mapping | BaseModel) or not item["loc"] else f"{message} (got '{given}')"


def _keys(model: type[BaseModel], at: At) -> list[str]:
    """Names of the keys allowed at a place below a model."""
    kind: Any = model
    for part in at:
        if get_origin(kind) is dict:
            kind = _first(get_args(kind)[1])
        elif part in getattr(kind, "model_fields", {}):
            kind = _first(kind.model_fields[part].annotation)
        else:
            return []
    return list(getattr(kind, "model_fields", ()))


def _first(annotation: Any) -> Any:
    """The first type of an annotation, such as `Student` of `Student | None`."""
    composed = get_origin(annotation) in (Union, UnionType, Annotated)
    return _first(get_args(annotation)[0]) if composed else annotation


def dotted(at: At) -> str:
    """Return a key path as it is written, `outer.lr`."""
    return ".".join(map(str, at))
