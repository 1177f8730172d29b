"""Translations of texts, kept in the user's cache by translator, languages and text."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from metasearch.cache import cache_folder, cached, intact
from metasearch.data.fingerprint import fingerprint_of
from metasearch.data.translators.base import Translator
from metasearch.errors import DataError, EncoderError
from metasearch.formats.blank import blank

log = logging.getLogger(__name__)

AT_ONCE = 1000
"""Texts in one call of a translator, and in one folder of the cache, which is there whole or not at all."""
_FILE = "translations.jsonl"


def translations(translator: Translator, texts: Sequence[str], source: str, target: str) -> dict[str, str]:
    """Return text → translation of each distinct text, from the cache what is there.

    Raises:
        DataError: the translator fails, or gives a blank text or another number of them.
        EncoderError: the cache cannot be written.
    """
    distinct = list(dict.fromkeys(texts))
    if not translator.kept:
        return _translated(translator, distinct, source, target)
    key = fingerprint_of([[translator.fingerprint(source, target), source, target]])
    place = cache_folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        # Processes that want the same texts would translate them twice, and some translators differ each time.
        with FileLock(place / f"translations-{key}.lock"):
            return _from_cache(translator, distinct, source, target, key)
    except OSError as error:
        raise EncoderError(f"the cache {place} cannot be written: {error.strerror or error}") from error


def _from_cache(translator: Translator, texts: list[str], source: str, target: str, key: str) -> dict[str, str]:
    known: dict[str, str] = {}
    for folder in sorted(cache_folder().glob(f"translations-{key}-*")):
        if folder.is_dir() and intact(folder):
            known = _read(folder) | known
    missing = [text for text in texts if text not in known]
    if missing:
        log.info("translate: %d of %d texts from %s into %s are new", len(missing), len(texts), source, target)
    for start in range(0, len(missing), AT_ONCE):
        chunk = missing[start : start + AT_ONCE]

        def make(folder: Path, chunk: list[str] = chunk) -> None:
            rows = _translated(translator, chunk, source, target).items()
            lines = (json.dumps({"text": text, "translation": found}, ensure_ascii=False) for text, found in rows)
            (folder / _FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

        known |= _read(cached(f"translations-{key}-{fingerprint_of([chunk])}", make))
    return {text: known[text] for text in texts}


def _read(folder: Path) -> dict[str, str]:
    lines = (folder / _FILE).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    rows = [json.loads(line) for line in lines]
    return {row["text"]: row["translation"] for row in rows}


def _translated(translator: Translator, texts: list[str], source: str, target: str) -> dict[str, str]:
    found = translator.translate(texts, source, target) if texts else []
    if len(found) != len(texts):
        raise DataError(f"translate: the translator gave {len(found)} translations of {len(texts)} texts")
    for text, translation in zip(texts, found, strict=True):
        if held := blank(translation):
            raise DataError(f"translate: '{text[:80]}' from {source} into {target}: expected a translation, got {held}")
    return {text: translation.strip() for text, translation in zip(texts, found, strict=True)}
