"""Vectors of an index through its projection, or moved towards other languages: computed once, cached in its folder."""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metasearch.config.languages import UNKNOWN
from metasearch.search.index.arrays import derive
from metasearch.search.index.base import SearchError
from metasearch.search.index.exact_search import Quantised, to_int8
from metasearch.search.index.plan import SearchPlan

MOST = 2**18
"""Passages of an index that can be expanded, each of which is compared with all of the others."""
_AT_ONCE = 2**14
"""Rows that are projected at a time."""

log = logging.getLogger(__name__)


def projected(folder: Path, contents: str, plan: SearchPlan, stored: Callable[[], Quantised]) -> Quantised:
    """Return the vectors of all rows through the projection of a plan, from their cache if possible.

    `contents` is the hash of the rows; `stored` returns their vectors as the encoder gives them.
    """

    def compute() -> Mapping[str, NDArray[np.generic]]:
        before = stored()
        codes, steps = np.empty_like(before.codes), np.empty_like(before.steps)
        for start in range(0, len(codes), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            codes[part], steps[part] = to_int8(plan.documents(before.take(part)))
        return {"codes": codes, "steps": steps}

    key = hashlib.sha256(json.dumps([1, contents]).encode() + plan.packed_projection).hexdigest()
    return Quantised(**derive(folder / "projection", key, compute))


def expand_vectors(
    folder: Path, contents: str, quantised: Quantised, languages: Mapping[str, NDArray[np.bool_]]
) -> Quantised:
    """Return the vectors of all rows moved towards other languages; rows of unknown language keep theirs.

    `contents` is the hash of the rows and of their projection; `languages` tells which rows each has, `(R,)`.
    `SearchError` if there are more than `MOST` rows, or rows of one language alone.
    """
    from metasearch.encoders.pool_scores import ALPHA, expanded  # loads torch

    count = len(quantised.codes)
    if count > MOST:
        most = f"expansion compares all passages with each other, at most {MOST:,}"
        raise SearchError("expand", "cannot_expand", f"{most}; the index has {count:,}")
    known = {tag: rows for tag, rows in languages.items() if tag != UNKNOWN}
    if len(known) < 2:
        there = f"here all are in {next(iter(known))}" if known else "here none has a known language"
        raise SearchError("expand", "cannot_expand", f"expansion needs passages in several languages; {there}")
    if UNKNOWN in languages:
        log.warning("not expanded, language unknown: %s passages", f"{languages[UNKNOWN].sum():,}")

    def compute() -> Mapping[str, NDArray[np.generic]]:
        log.info("comparing %s passages with each other, once", f"{count:,}")
        vectors, numbers = quantised.take(slice(None)), np.full(count, -1, np.int64)
        for number, rows in enumerate(known.values()):
            numbers[rows] = number
        there = numbers >= 0
        vectors[there] = expanded(vectors[there], numbers[there])
        return to_int8(vectors)._asdict()

    key = hashlib.sha256(json.dumps([3, ALPHA, contents]).encode()).hexdigest()
    return Quantised(**derive(folder / "expansion", key, compute))
