"""Counts the tokens of a text word by word: most tokenizers part at white space, and words come back often."""

from collections.abc import Callable
from functools import lru_cache

_WORDS = 2**16
_LONGEST = 32
"""Characters of a word that is remembered."""


def estimator(length: Callable[[str], int]) -> Callable[[str], int]:
    """Return a function that sums the lengths of a text's words, those of what every text gets added counted once.

    Of a tokenizer whose tokens end at white space it is the length itself; of others it may be more or less.

    Args:
        length: counts a text.
    """
    added = length("")
    remembered = lru_cache(_WORDS)(length)

    def estimate(text: str) -> int:
        words = text.split()
        return added + sum((remembered(word) if len(word) <= _LONGEST else length(word)) - added for word in words)

    return estimate
