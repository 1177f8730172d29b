"""Cuts documents into passages as an encoder reads them, and removes language bias for a neutral index.

The projection of a neutral index is estimated from its passages, without labels, before the first vector is written,
and never changes: vectors with and without it cannot be compared.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config.index import ALWAYS, PASSAGE_LENGTH, IndexSettings
from metasearch.config.languages import UNKNOWN, normalise_tag
from metasearch.config.postprocessing import LEAST
from metasearch.config.recipe import Role
from metasearch.data.documents.chunking import OTHER_COLUMNS, Settings
from metasearch.data.documents.languages import detectable, detector
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import NeutralMap, ProjectedEncoder, estimate, require_none
from metasearch.encoders.protocols import TextEncoder, report_progress
from metasearch.errors import ConfigError, DataError
from metasearch.runs.callbacks import Callback

ROLE: Role = "candidate"
"""In which passages are encoded; queries are questions."""


def cutting(settings: IndexSettings, encoder: Encoder) -> tuple[IndexSettings, Settings]:
    """Return settings with the passage length, and the chunking settings.

    `ConfigError` for values that do not fit together or the encoder, and for an undetectable language.
    """
    limit = encoder.limit(ROLE)
    length = min(PASSAGE_LENGTH, limit) if settings.length is None else settings.length
    if length > limit:
        raise ConfigError(
            f"length {length}: encoder '{encoder.name}' reads {limit} tokens of a passage; the rest of a longer "
            "passage could not be found"
        )
    if settings.overlap >= length:
        raise ConfigError(f"overlap {settings.overlap}: expected less than the {length} tokens of a passage")
    if settings.column in OTHER_COLUMNS:
        raise ConfigError(f"column '{settings.column}' cannot be the column with the text")
    chosen = () if settings.detect == "all" else settings.detect
    same = settings.model_dump(include={"overlap", "column", "titles", "names", "language", "keep_repeated"})
    cut = Settings(limit=length, length=_counter(encoder, length), **same)
    if chosen is not None:
        languages = [tag for tag in chosen if tag != ALWAYS]
        cut = replace(cut, detect=detector(languages), detectable=detectable(languages), detect_always=ALWAYS in chosen)
    return settings.model_copy(update={"length": length}), cut


@contextmanager
def encoding(
    encoder: Encoder, what: str, callback: Callback, done: int = 0, total: int | None = None
) -> Iterator[None]:
    """Report encoding to a callback, and clear the token cache at the end."""
    try:
        with report_progress(encoder, lambda now, all_now: callback.on_encode(what, done + now, total or all_now)):
            yield
    finally:
        encoder.forget()


def _counter(encoder: Encoder, limit: int) -> Callable[[str], int]:
    """Return a function that counts a text's tokens, up to one more than the limit."""
    prompt = encoder.prompt(ROLE)

    def count(text: str) -> int:
        # Not `encoder.lengths`, which remembers each text, and here most are parts of others.
        (tokens,) = encoder.input.tokenise([prompt + text], limit + 1)["input_ids"]
        return len(tokens)

    return count


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


def project(encoder: Encoder, arrays: Mapping[str, NDArray[Any]]) -> TextEncoder:
    """Return the encoder through an index's stored projection, if the index is neutral."""
    neutral = of_arrays(arrays)
    return encoder if neutral is None else ProjectedEncoder(encoder, neutral)


def warn_of_outside(neutral: NeutralMap, languages: Mapping[str, int]) -> None:
    """Warn about new passages in languages without part in a projection."""
    inside = set(map(normalise_tag, neutral.languages))
    outside = {tag: count for tag, count in sorted(languages.items()) if tag not in inside}
    if outside:
        shown = ", ".join(f"{tag} {count:,}" for tag, count in outside.items())
        log.warning(
            "new passages in languages outside the estimate of the language bias: %s; make a new index to include them",
            shown,
        )
