"""The vectors of an index through the projection of its plan, which are computed once and cached in its folder."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from metasearch.data.formats.arrays import derive
from metasearch.search.index.exact_search import Quantised, to_int8
from metasearch.search.index.plan import PROJECTION, SearchPlan

FOLDER = "projection"
_AT_ONCE = 2**14
"""Rows that are projected at a time."""


def projected(folder: Path, contents: str, plan: SearchPlan, stored: Callable[[], Quantised]) -> Quantised:
    """Return the vectors of all rows through the projection of a plan, from their cache if possible.

    Args:
        folder: of the index.
        contents: hash of its rows.
        plan: of the index.
        stored: returns the vectors of all rows as the encoder gives them.
    """

    def compute() -> Mapping[str, NDArray[np.generic]]:
        before = stored()
        codes, steps = np.empty_like(before.codes), np.empty_like(before.steps)
        for start in range(0, len(codes), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            codes[part], steps[part] = to_int8(plan.documents(before.take(part)))
        return {"codes": codes, "steps": steps}

    own = {name: value for name, value in plan.record.items() if name in PROJECTION}
    key = hashlib.sha256(json.dumps([1, contents]).encode() + save(own)).hexdigest()
    return Quantised(**derive(folder / FOLDER, key, compute))
