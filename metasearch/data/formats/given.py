"""Texts as arguments in Python: convert any ordered collection to a list."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from metasearch.data.formats.blank import half_pair
from metasearch.errors import DataError

_SHOWN = 40


def list_texts(texts: Iterable[str], name: str = "texts") -> list[str]:
    """Return texts as a list: from a list, a generator, a column of pandas, polars, pyarrow or `datasets`, an array.

    Args:
        texts: the texts, in order.
        name: of the argument, in messages.

    Raises:
        TypeError: the texts are a single text, which would be read letter by letter, a set without order, or a table.
        DataError: an item is not a text, or has half a surrogate pair; the message has its number.

    Example:
        >>> list_texts(text for text in ("Where?", "When?"))
        ['Where?', 'When?']
    """
    return list(each_text(texts, name))


def each_text(texts: Iterable[str], name: str = "texts") -> Iterator[str]:
    """Return an iterator over texts, with errors as `list_texts`; a wrong collection is refused before iteration."""
    if isinstance(texts, str):
        raise TypeError(f"{name}: expected a list of texts, got the text {texts[:_SHOWN]!r}; write [text]")
    # A table yields the names of its columns, or whole columns.
    refused = isinstance(texts, bytes | Mapping | set | frozenset) or hasattr(texts, "columns")
    if refused or not hasattr(texts, "__iter__"):
        raise TypeError(f"{name}: expected a list of texts, got {type(texts).__name__}")
    items: Iterable[Any] = texts.to_pylist() if hasattr(texts, "to_pylist") else texts  # of pyarrow
    return (_checked(text, f"{name}[{number}]") for number, text in enumerate(items))


def _checked(text: Any, place: str) -> str:
    if not isinstance(text, str):
        shown = " ".join(repr(text).split())
        raise DataError(f"{place}: expected a text, got {shown[:_SHOWN]}")
    if half := half_pair(text):
        raise DataError(f"{place}: expected a text, got {half}")
    return text
