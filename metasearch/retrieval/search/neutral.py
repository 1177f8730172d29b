"""Removes language bias from an index: whether it gets a projection, and when the projection is estimated anew.

The estimate takes the stored vectors of some passages of each language, chosen by their keys, without labels. So it
depends on the passages alone, and not on the order in which they came or on whether a process was stopped. Each
language weighs the same in it, however many passages there are.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config.languages import UNKNOWN, normalise_tag
from metasearch.config.projection import LEAST
from metasearch.encoders.adapter import MappedEncoder
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import ProjectedEncoder, estimate, is_neutral, require_none
from metasearch.encoders.protocols import TextEncoder
from metasearch.errors import DataError
from metasearch.retrieval.index.base import Adapter, FilePlaces
from metasearch.retrieval.index.projection import Arrays, languages_of, of_arrays, query_matrix, to_arrays
from metasearch.retrieval.index.writer import IndexWriter
from metasearch.retrieval.search.translations import with_translations

SAMPLE = 600
"""Passages of each language in the estimate, at most, as of `metasearch neutralise`."""
_GROWN = 2
"""A language that has so many times as many passages in the sample as in the estimate is estimated again."""

log = logging.getLogger(__name__)


def project(encoder: TextEncoder, arrays: Arrays, adapter: Adapter | None = None) -> TextEncoder:
    """Return the encoder through the stored projection of a neutral index, its map of translations, and its adapter."""
    neutral = of_arrays(arrays)
    found, matrix = encoder if neutral is None else ProjectedEncoder(encoder, neutral), query_matrix(arrays, adapter)
    return found if matrix is None else MappedEncoder(found, matrix)


def check(encoder: Encoder, wanted: bool | None, arrays: Arrays, counts: Mapping[str, int]) -> None:
    """Raise an error before anything is encoded where a wanted projection is impossible.

    Args:
        encoder: `EncoderError` if it has a projection.
        wanted: only True is checked; None takes one where it is possible.
        arrays: the stored projection, which stays where no other is possible.
        counts: how many passages each language has at most; `DataError` if they are too few.
    """
    if wanted and not languages_of(arrays):
        require_none(encoder)
        if len(_enough(counts)) < 2:
            raise DataError(f"--neutral {_too_few(counts)}")


def renewed(
    store: IndexWriter, files: Sequence[FilePlaces], encoder: Encoder, wanted: bool | None
) -> Mapping[str, NDArray[Any]]:
    """Return the projection that an index with some documents gets, and the map of its translations; empty for none.

    The stored one stays unless a language is new or has at least twice as many passages in the sample as before.

    Raises:
        DataError: one is wanted, and there are too few passages.
    """
    if wanted is False:
        return {}
    if is_neutral(encoder):
        return with_translations(store, files, store.arrays)
    found = _projection(store, files, encoder, wanted)
    return with_translations(store, files, found) if found else {}


def _projection(
    store: IndexWriter, files: Sequence[FilePlaces], encoder: Encoder, wanted: bool | None
) -> Mapping[str, NDArray[Any]]:
    sample = store.sample(files, SAMPLE)
    counts = {tag: len(places) for tag, places in sample.items()}
    enough, before = _enough(counts), languages_of(store.arrays)
    # One direction less than languages is removed, and something has to stay.
    if not 2 <= len(enough) < encoder.dimension():
        if wanted and not before:
            raise DataError(f"--neutral {_too_few(counts)}")
        if len(counts) > 1 and not before:
            log.info("no language-neutral projection: it %s", _too_few(counts))
        return store.arrays
    reason = _reason(dict(zip(before, store.arrays["texts"].tolist(), strict=True)) if before else {}, counts)
    if before and not reason:
        return store.arrays
    others = ", ".join(f"{tag} {count}" for tag, count in counts.items() if tag not in enough)
    log.info(
        "language-neutral projection estimated%s from %s%s%s",
        f" again ({reason})" if before else "", ", ".join(f"{tag} {counts[tag]}" for tag in enough),
        f", without {others}" if others else "", "; no passage is encoded again" if before else "",
    )  # fmt: skip
    ends = np.cumsum([counts[tag] for tag in enough])[:-1]
    vectors = np.split(store.stored_at(np.concatenate([sample[tag] for tag in enough])), ends)
    return to_arrays(estimate(dict(zip(enough, vectors, strict=True))), counts)


def warn_of_outside(arrays: Arrays, languages: Mapping[str, int]) -> None:
    """Warn about new passages in languages without part in the projection of an index of an earlier version."""
    inside = set(map(normalise_tag, languages_of(arrays)))
    outside = {tag: count for tag, count in sorted(languages.items()) if tag not in inside}
    if inside and outside:
        shown = ", ".join(f"{tag} {count:,}" for tag, count in outside.items())
        log.warning(
            "new passages in languages outside the estimate of the language bias: %s; make a new index to include them",
            shown,
        )


def _enough(counts: Mapping[str, int]) -> list[str]:
    return [tag for tag, count in sorted(counts.items()) if count >= LEAST and tag != UNKNOWN]


def _too_few(counts: Mapping[str, int]) -> str:
    shown = ", ".join(f"{tag} {count}" for tag, count in sorted(counts.items()))
    hint = f" ({UNKNOWN}: unknown; set it with --language or --detect)" if UNKNOWN in counts else ""
    return f"needs {LEAST} passages in each of two languages or more; there are {shown}{hint}"


def _reason(before: Mapping[str, int], counts: Mapping[str, int]) -> str:
    """Return why a projection of so many texts a language is out of date; empty if it is not."""
    grown = [
        f"{tag} {before[tag]} → {counts[tag]}" if tag in before else f"{tag} is new"
        for tag in _enough(counts)
        if counts[tag] >= _GROWN * before.get(tag, 0)
    ]
    return ", ".join(grown)
