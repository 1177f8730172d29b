"""Detects the languages of texts with py3langid."""

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from metasearch.config.languages import UNKNOWN, is_known, normalise_tag, parse_tag, primary_language
from metasearch.errors import ConfigError, EncoderError, nearest
from metasearch.io import cached

_PARTS = ("features", "prior", "labels", "moves", "rows", "found")
"""Arrays of the model, in the order of py3langid."""
_NO_LANGUAGE = "zxx"
"""Label of digits and marks alone."""
_FREQUENT = 0.05
"""Share of the texts above which a detected language is one of the texts, not a mistake about a short one."""


def detector(languages: Sequence[str] = ()) -> Callable[[str], str]:
    """Return a function from text to the likeliest of 97 language tags, or `und` for a text without clues.

    Short texts are often taken for another language; fewer languages to choose from help.
    """
    from py3langid.langid import RAW_FLOOR

    identifier = copy.copy(_load_identifier())
    tags, known, chosen = _tags(), detectable(), detectable(languages)
    if unknown := sorted(chosen - known):
        raise ConfigError(f"py3langid cannot detect the language '{unknown[0]}'.{nearest(unknown[0], known)}")
    if languages:
        identifier.set_languages([label for label, tag in tags.items() if tag in (*chosen, UNKNOWN)])

    def detect(text: str) -> str:
        label, score = identifier.classify(text)
        # Nothing in the text is a feature of the model, so that the label is the first of the list.
        return UNKNOWN if score <= RAW_FLOOR else tags[str(label)]

    return detect


def detectable(languages: Sequence[str] = ()) -> frozenset[str]:
    """Return the languages that `detector` chooses from."""
    return frozenset(primary_language(normalise_tag(tag)) for tag in languages or {*_tags().values()} - {UNKNOWN})


@cache
def _tags() -> dict[str, str]:
    """Return the language tag of each label of the model."""
    labels = map(str, _load_identifier().labels)
    return {label: UNKNOWN if label == _NO_LANGUAGE else primary_language(parse_tag(label)) for label in labels}


@cache
def _load_identifier() -> Any:
    """Open the model, which is unpacked once into the user's cache: unpacking takes a third of a second."""
    from py3langid import langid, modelio

    packed = langid.MODEL_DIR / langid.MODEL_FILE

    def unpack(folder: Path) -> None:
        for name, values in zip(_PARTS, modelio.load_model(packed), strict=True):
            np.save(folder / f"{name}.npy", np.asarray(values))

    try:
        folder = cached(f"py3langid-{version('py3langid')}", unpack)
    except EncoderError:  # no cache can be written
        return langid.LanguageIdentifier.from_model_file(packed)
    features, prior, labels, moves, rows, found = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in _PARTS)
    # Items of a memoryview are Python's own numbers, which the identifier's loop needs.
    steps = {"tk_nextmove": memoryview(moves), "tk_output": found.tolist(), "tk_row": rows.tolist()}
    return langid.LanguageIdentifier(features, np.array(prior), labels.tolist(), **steps)


def detect_all(texts: Sequence[str], languages: Sequence[str]) -> dict[str, str]:
    """Return each text's language.

    Without tags to choose from, the languages of at least one text in twenty and the most frequent one are detected
    first, and then chosen from.
    """
    distinct = list(dict.fromkeys(texts))
    if not languages:
        counts = Counter(filter(is_known, map(detector(), distinct))).most_common()
        languages = [tag for i, (tag, count) in enumerate(counts) if i == 0 or count > _FREQUENT * len(distinct)]
    return dict(zip(distinct, map(detector(languages), distinct), strict=True))
