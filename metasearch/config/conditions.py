"""Conditions on the fields of a passage: `price<10`, `topic=news`, `draft!=true`.

    NAME=VALUE  NAME!=VALUE  NAME<NUMBER  NAME<=NUMBER  NAME>NUMBER  NAME>=NUMBER

A name has none of the characters `=!<>"`. Spaces around name and value do not count.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

MOST = 32
"""Conditions of a search."""
_LONGEST = 1000
"""Characters of a condition."""
_FORM = re.compile(r'([^=!<>"]*)(!=|<=|>=|=|<|>)(.*)', re.S)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


class Condition(NamedTuple):
    """A condition on a field.

    Attributes:
        name: of the field.
        operator: `=`, `!=`, `<`, `<=`, `>` or `>=`.
        value: text of the value.
    """

    name: str
    operator: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Parse a condition; `ValueError` if the text is not one."""
        short = text if len(text) <= 60 else f"{text[:60]}…"
        if len(text) > _LONGEST:
            raise ValueError(f"'{short}': a condition has at most {_LONGEST:,} characters")
        match = _FORM.fullmatch(text)
        if not match or not match[1].strip():
            raise ValueError(f"'{short}': expected NAME=VALUE, or another of != < <= > >=, such as price<10")
        found = cls(match[1].strip(), match[2], match[3].strip())
        if found.operator not in ("=", "!=") and found.number is None:
            raise ValueError(f"'{short}': expected a number after {found.operator}, got '{found.value[:40]}'")
        return found

    @property
    def number(self) -> int | float | None:
        """The value as a number; None if it is none."""
        return read_number(self.value)


def read_number(text: str) -> int | float | None:
    """Return the finite number that a text is; None for other texts."""
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return None
    if len(text) < 20 and not set(text) & set(".eE"):
        return int(text)
    number = float(text)
    return number if math.isfinite(number) else None


def list_conditions(value: Any) -> Any:
    """Return conditions as a tuple of texts, from a list of them or a mapping of names to equal values.

    Example:
        >>> list_conditions({"topic": "news", "year": 2024})
        ('topic=news', 'year=2024')
    """
    if isinstance(value, Mapping):
        value = [_equality(name, wanted) for name, wanted in value.items()]
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise ValueError('expected a list such as ["price<10"], or an object such as {"topic": "news"}')
    if len(value) > MOST:
        raise ValueError(f"{len(value)} conditions; {MOST} at most")
    for each in value:
        Condition.parse(each)
    return tuple(value)


def _equality(name: Any, value: Any) -> str:
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"'{str(name)[:40]}': expected a text, a number or a boolean, got {str(value)[:40]}")
    if set(str(name)) & set('=!<>"'):
        raise ValueError(f"'{str(name)[:40]}': the name of a field to filter by has none of the characters =!<>\"")
    return f"{name}={value if isinstance(value, str) else json.dumps(value)}"
