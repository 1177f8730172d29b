"""A neutral index: language bias is removed from its vectors and from queries.

The map (`metasearch.encoders.neutral`) is estimated from passages of the index, without labels, before the first vector
is written, and never changes: vectors with and without it cannot be compared.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config.languages import UNKNOWN
from metasearch.config.postprocessing import LEAST
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import NeutralMap, ProjectedEncoder, estimate, require_none
from metasearch.encoders.protocols import TextEncoder
from metasearch.errors import DataError
from metasearch.retrieval.search.passages import ROLE, encoding
from metasearch.runs.callbacks import Callback

Drawn = list[tuple[int, str]]
"""A heap of passages: number of the key, text."""
Sample = dict[str, Drawn]
"""Language → some passages in it."""
SAMPLE = 600
"""Passages of each language in the estimate, at most, as of `metasearch neutralise`."""

log = logging.getLogger(__name__)


def estimated(encoder: Encoder, sample: Sample, callback: Callback) -> NeutralMap:
    """Return the projection that removes the passages' languages from an encoder's vectors.

    Languages of fewer than 20 passages, and passages of unknown languages, have no part in it, which a line says.
    """
    require_none(encoder)
    enough = {tag: [text for _, text in drawn] for tag, drawn in sorted(sample.items()) if len(drawn) >= LEAST}
    enough.pop(UNKNOWN, None)
    few = ", ".join(f"{tag} {len(drawn)}" for tag, drawn in sorted(sample.items()) if tag not in enough)
    if len(enough) < 2:
        counts = ", ".join(f"{tag} {len(drawn)}" for tag, drawn in sorted(sample.items()))
        raise DataError(
            f"a neutral index needs {LEAST} passages in each of at least two languages; there are {counts or 'none'} "
            f"({UNKNOWN}: unknown; set it with --language or --detect)"
        )
    if few:
        log.warning("not in the estimate of the language bias: %s", few)
    vectors = {}
    for tag, texts in enough.items():
        with encoding(encoder, f"estimate, {tag}", callback):
            vectors[tag] = encoder.encode(texts, ROLE)
    return estimate(vectors)


def to_arrays(neutral: NeutralMap) -> dict[str, NDArray[Any]]:
    """Return a map as the arrays that an index keeps."""
    languages = np.frombuffer(json.dumps(neutral.languages, ensure_ascii=False).encode(), np.uint8)
    return {"centre": neutral.centre, "directions": neutral.directions, "languages": languages}


def of_arrays(arrays: Mapping[str, NDArray[Any]]) -> NeutralMap | None:
    """Return an index's stored projection; None if it is not neutral."""
    if not arrays:
        return None
    languages = json.loads(arrays["languages"].tobytes())
    return NeutralMap(arrays["centre"], arrays["directions"], tuple(languages))


def through(encoder: Encoder, neutral: NeutralMap | None) -> TextEncoder:
    """Return the encoder through the index's projection."""
    return encoder if neutral is None else ProjectedEncoder(encoder, neutral)


def warn_of_outside(neutral: NeutralMap, languages: Mapping[str, int]) -> None:
    """Warn about new passages in languages without part in a projection."""
    outside = {tag: count for tag, count in sorted(languages.items()) if tag not in neutral.languages}
    if outside:
        shown = ", ".join(f"{tag} {count:,}" for tag, count in outside.items())
        log.warning(
            "new passages in languages outside the estimate of the language bias: %s; make a new index to include them",
            shown,
        )
