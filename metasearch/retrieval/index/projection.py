"""The projection of a neutral index and the map of its translations: as arrays of its file, and its projected vectors.

An index stores vectors as the encoder gives them, so that a new projection needs no text to be encoded again. Vectors
through the projection are computed once and cached in the folder of the index.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from metasearch.data.formats.arrays import derive
from metasearch.retrieval.index.base import Adapter
from metasearch.retrieval.index.exact_search import Quantised, to_int8

if TYPE_CHECKING:
    from metasearch.encoders.neutral import Projection

Arrays = Mapping[str, NDArray[Any]]

FOLDER = "projection"
MAP, MAP_PAGES = "translations", "translated"
"""Keys of the map of queries (`metasearch.encoders.translations`), and of the number of its pages."""
_PROJECTION = ("centre", "directions", "languages", "texts")
_AT_ONCE = 2**14
"""Rows that are projected at a time."""


def to_arrays(neutral: "Projection", counts: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Return a map as the arrays that an index keeps; `counts` are the texts of each language in the estimate."""
    languages = np.frombuffer(json.dumps(neutral.languages, ensure_ascii=False).encode(), np.uint8)
    texts = np.array([counts[tag] for tag in neutral.languages], np.int64)
    return {"centre": neutral.centre, "directions": neutral.directions, "languages": languages, "texts": texts}


def of_arrays(arrays: Arrays) -> "Projection | None":
    """Return an index's stored projection; None if it is not neutral."""
    from metasearch.encoders.neutral import Projection  # loads torch

    return Projection(arrays["centre"], arrays["directions"], languages_of(arrays)) if "centre" in arrays else None


def languages_of(arrays: Arrays) -> tuple[str, ...]:
    """Return the languages of a stored projection; none without one."""
    return tuple(json.loads(arrays["languages"].tobytes())) if "languages" in arrays else ()


def projection_in(arrays: Arrays) -> Arrays:
    """Return the arrays of the projection; none without one."""
    return {name: arrays[name] for name in _PROJECTION if name in arrays}


def query_matrix(arrays: Arrays, adapter: Adapter | None) -> NDArray[np.float32] | None:
    """Return what queries go through, `(D, D)`: the map of translations, then an adapter; None for neither."""
    matrix = arrays.get(MAP)
    if adapter is None or matrix is None:
        return matrix if adapter is None else adapter.matrix
    return (adapter.matrix.astype(np.float64) @ matrix.astype(np.float64)).astype(np.float32)


def projected(folder: Path, contents: str, arrays: Arrays, stored: Callable[[], Quantised]) -> Quantised:
    """Return the vectors of all rows through a projection, from their cache if possible.

    Args:
        folder: of the index.
        contents: hash of its rows.
        arrays: of the index.
        stored: returns the vectors of all rows as the encoder gives them.
    """

    def compute() -> Mapping[str, NDArray[np.generic]]:
        neutral, before = of_arrays(arrays), stored()
        assert neutral is not None
        codes, steps = np.empty_like(before.codes), np.empty_like(before.steps)
        for start in range(0, len(codes), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            codes[part], steps[part] = to_int8(neutral(before.take(part)).astype(np.float32))
        return {"codes": codes, "steps": steps}

    key = hashlib.sha256(json.dumps([1, contents]).encode() + save(dict(projection_in(arrays)))).hexdigest()
    return Quantised(**derive(folder / FOLDER, key, compute))
