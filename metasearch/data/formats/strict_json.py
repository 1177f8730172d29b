"""JSON without duplicate keys: Python's own parser silently keeps the last one."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any


class RepeatedKey(ValueError):
    """A key is duplicated in an object; the message names the object and the key."""


def parse(text: str) -> Any:
    """Return the value of a JSON text."""
    repeated: dict[int, tuple[str, dict[str, Any]]] = {}

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            # The object is kept with its key, so that no other one gets its id.
            repeated[id(made)] = Counter(key for key, _ in pairs).most_common(1)[0][0], made
        return made

    value = json.loads(text, object_pairs_hook=object_of)
    # The outermost object with such a key stands in the value; one that lost its place to a second key does not.
    for place, inside in _objects(value) if repeated else ():
        if id(inside) in repeated:
            prefix = f"{place}: " if place else ""
            raise RepeatedKey(f"{prefix}the key '{repeated[id(inside)][0]}' is duplicated")
    return value


def _objects(value: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every object below a value with its place, such as `data[0].title`, those outside first."""
    if isinstance(value, dict):
        yield place, value
        for key, item in value.items():
            yield from _objects(item, f"{place}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _objects(item, f"{place}[{i}]")
