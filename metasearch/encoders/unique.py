"""The texts of a list, each once."""

from collections.abc import Sequence


def distinct_texts(texts: Sequence[str]) -> list[str]:
    """Return each text once; a text in the place of a list of texts, which to Python is one of letters, is refused."""
    if isinstance(texts, str):
        raise TypeError(f"texts: expected a list of texts, got the text {texts[:40]!r}; write [text]")
    return list(dict.fromkeys(texts))
