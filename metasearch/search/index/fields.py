"""Further fields of passages, such as table columns, as filters."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from metasearch.search.settings import Condition, Conditions, read_number


def scalars(value: Any) -> list[str | int | float]:
    """Return a value's comparable scalars: list items; booleans as texts; none for objects."""
    items = value if isinstance(value, list) else [value]
    found = (json.dumps(each) if isinstance(each, bool) else each for each in items)
    return [each for each in found if isinstance(each, str | int | float)]


class Column:
    """The values of one field. A row may have any number of values."""

    def __init__(self, pairs: Iterable[tuple[int, Any]]) -> None:
        codes: dict[str | int | float, int] = {}
        found = [
            (row, codes.setdefault(_composed(each), len(codes))) for row, value in pairs for each in scalars(value)
        ]
        table = np.array(found, np.int64).reshape(-1, 2)
        self._rows, self._codes = table[:, 0], table[:, 1]
        self._values = np.array([*codes, None], object)[:-1]  # with None, numpy reads no text as an array
        self._numbers = np.array([_number(each) for each in codes], np.float64)

    def __len__(self) -> int:
        """Return how many values there are."""
        return len(self._rows)

    def meets(self, condition: Condition, count: int) -> NDArray[np.bool_]:
        """Return which rows meet a condition, `(R,)`.

        `=` compares texts with texts and numbers with numbers. The order of numbers includes texts that are numbers.
        `!=` holds where `=` does not, also in rows without the field.
        """
        number = condition.number
        if condition.operator in ("=", "!="):
            values = self._values == _composed(condition.value)
            if number is not None:
                values = values | (self._values == number)
        else:
            values = _ORDER[condition.operator](self._numbers, number)
        found = np.zeros(count, np.bool_)
        found[self._rows[np.asarray(values, np.bool_)[self._codes]]] = True
        return ~found if condition.operator == "!=" else found


def meets(fields: Mapping[str, Any], where: Conditions) -> bool:
    """Return whether the fields of one passage meet all conditions."""
    columns = ((each, Column([(0, fields[each.name])] if each.name in fields else [])) for each in where)
    return all(column.meets(each, 1)[0] for each, column in columns)


_ORDER: Mapping[str, Any] = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def numbers_in(value: Any) -> list[float]:
    """Return the numbers in a field's values, also in texts, for ordered conditions."""
    return [number for number in map(_number, scalars(value)) if not np.isnan(number)]


def _composed(value: str | int | float) -> str | int | float:
    """Return a text in composed form (NFC), in which names from a Mac are equal to typed ones."""
    return normalize("NFC", value) if isinstance(value, str) else value


def _number(value: str | int | float) -> float:
    """Return a value as a number; NaN for other texts, which have no order."""
    number = read_number(value) if isinstance(value, str) else value
    return np.nan if number is None or abs(number) > sys.float_info.max else float(number)
