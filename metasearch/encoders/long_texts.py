"""Shorten long texts before tokenization, so that cost depends on the part that is read.

A tokenizer reads a text to its end before it truncates it. A cut text has the same tokens, except for the word that
the cut crosses; a margin of tokens keeps that word out of what is read.
"""

from collections.abc import Callable, Sequence

_CHARACTERS = 8
"""Characters per token at first; twice as many for a text that has too few tokens in them."""
_MARGIN = 16


def shorten(
    texts: Sequence[str], limit: int, left: bool, count: Callable[[list[str], int], Sequence[int]]
) -> list[str]:
    """Return shortened texts that still give more tokens than are read, or all of the text.

    Args:
        texts: the texts.
        limit: tokens that are read.
        left: whether the tokenizer truncates on the left, so that the end of a text is read.
        count: returns how many tokens texts have, up to a limit.
    """
    found, wanted = list(texts), limit + _MARGIN
    size = _CHARACTERS * wanted
    long = [i for i, text in enumerate(texts) if len(text) > size]
    while long:
        for i in long:
            found[i] = _cut(texts[i], size, left)
        counts = count([found[i] for i in long], wanted)
        size *= 2
        short = [i for i, tokens in zip(long, counts, strict=True) if tokens < wanted]
        long = [i for i in short if len(texts[i]) > size]
        for i in set(short) - set(long):
            found[i] = texts[i]
    return found


def _cut(text: str, size: int, left: bool) -> str:
    """Return about so many characters of a text, up to a white space where there is one in the further half."""
    window = text[-size:] if left else text[:size]
    parts = window.split(None, 1) if left else window.rsplit(None, 1)
    whole = parts[-1 if left else 0] if len(parts) == 2 else ""
    return whole if 2 * len(whole) >= size else window
