"""Invisible characters and look-alikes: tests for blank text, removal of characters, normalisation, comparison.

An encoder reads two texts that look the same as the same text. So `remove_invisible` comes before every tokenizer.
"""

import re
import unicodedata

# Unicode's controls that are no white space, Default_Ignorable_Code_Point (DerivedCoreProperties.txt) and annotation
# marks, without what is in `_SHAPING`: soft hyphen, zero-width space, direction marks, byte-order mark, and so on.
_INVISIBLE = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufeff\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
# Without a shape of their own, these change that of characters beside them: fillers of Hangul syllables, joiners,
# variation selectors, and format controls of Mongolian, hieroglyphs and shorthand.
_SHAPING = (
    r"\u115f\u1160\u180b-\u180f\u200c\u200d\u3164\ufe00-\ufe0f\uffa0\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U000e0100-\U000e01ef"
)
# Of the other format characters (Cf), such as the Arabic number sign, all are drawn.
_SHOWN = re.compile(rf"[^\s{_INVISIBLE}{_SHAPING}]")
# Tags (U+E0020 to U+E007F) behind a black flag make it the flag of a region, as England's.
_REMOVED = re.compile(rf"(\U0001f3f4[\U000e0020-\U000e007f]+)|[{_INVISIBLE}]+")
# Nearly every text has none of them, and a class alone is searched for several times as fast.
_ANY = re.compile(f"[{_INVISIBLE}]")


def blank(text: str) -> str:
    """Return what a text without content holds, in words; the empty string where it shows something.

    Example:
        >>> blank(" \u200b"), blank(" "), blank("\ufeffone")
        ('only characters that show nothing', 'nothing', '')
    """
    if _SHOWN.search(text):
        return ""
    return "only characters that show nothing" if text.strip() else "nothing"


def require_text(text: str) -> str:
    """Return a text; `ValueError` if it shows nothing, or has half a surrogate pair, which UTF-8 cannot encode."""
    if held := blank(text) or half_pair(text):
        raise ValueError(f"expected a text, got {held}")
    return text


def half_pair(text: str) -> str:
    """Return the first half of a surrogate pair in a text, in words; the empty string where there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"half a surrogate pair, U+{ord(text[error.start]):04X}"
    return ""


def remove_invisible(text: str) -> str:
    """Return a text without characters that are invisible and do not shape their neighbours.

    The zero-width space, which separates words in Thai and Khmer, leaves nothing in its place: most texts of these
    languages have none, and an encoder is to read those with it as those without.

    Example:
        >>> remove_invisible("\ufeffsoft\u00adware")
        'software'
    """
    return _REMOVED.sub(lambda found: found[1] or "", text) if _ANY.search(text) else text


# Look-alikes.

_DOUBLE = "«»“”„‟″‶〝〞〟＂❝❞⹂"
_SINGLE = "‘’‚‛‹›′‵`´ʹʻʼʽ＇❛❜"
# Hyphens and dashes of Unicode category Pd that are written in many scripts, and the minus sign. Marks of one script,
# such as the Hebrew maqaf or the Japanese wave dash, are letters of its spelling and stay.
_DASH = "‐‑‒–—―⸺⸻﹘﹣－−⁃"

_ONE = {**dict.fromkeys(_DOUBLE, '"'), **dict.fromkeys(_SINGLE, "'"), **dict.fromkeys(_DASH, "-")}
# The variants are rare: searching for them is seven times as fast as `str.translate`.
_VARIANT = re.compile(f"[{re.escape(''.join(_ONE))}]")


def normalise(text: str) -> str:
    """Return a text in NFKC with one symbol each for double quotes, single quotes and dashes, stripped; idempotent.

    Preprocessing in the EMA teacher paper (Ham & Kim), which does not say which symbols: here they are `"`, `'` and
    `-`, for hyphens and dashes both.
    """
    if text.isascii():
        return text.replace("`", "'").strip()
    # Before NFKC, which would part ″ into two primes and write ´ as a space with an accent.
    text = _VARIANT.sub(_one, text)
    return _VARIANT.sub(_one, unicodedata.normalize("NFKC", text)).strip()


def _one(match: re.Match[str]) -> str:
    return _ONE[match[0]]


class _Kept(dict[int, str | None]):
    """A character translation that removes punctuation, symbols, white space and control characters."""

    def __missing__(self, code: int) -> str | None:
        kept = None if unicodedata.category(chr(code))[0] in "PSZC" else chr(code)
        self[code] = kept
        return kept


_KEPT = _Kept()


def comparison_key(text: str) -> str:
    """Return a text in NFKC and folded case without punctuation, symbols and white space.

    It is equal for texts that look the same to a reader.

    Example:
        >>> comparison_key("Here comes the bus!") == comparison_key("here  comes, the BUS.")
        True
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_KEPT)
