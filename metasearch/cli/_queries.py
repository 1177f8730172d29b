"""Queries of `metasearch search`: the argument, or the lines of the standard input."""

import codecs
import sys
from collections.abc import Iterator

import click

from metasearch.data.formats.blank import blank
from metasearch.errors import ConfigError, DataError

_AT_ONCE = 64


def check_query(text: str) -> str:
    """Return a query without white space at its ends; `ConfigError` where it is blank or not UTF-8."""
    if blank(text):
        raise ConfigError("the query is blank; say what to search for")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        # A byte that is no UTF-8 reaches a program as a lone surrogate (PEP 383).
        raise ConfigError(f"the query is not UTF-8: byte {ord(text[error.start]) & 0xFF:#04x}") from None
    return text.strip()


def asked_queries() -> Iterator[list[str]]:
    """Yield the queries of the standard input, in the lists that they are answered in: at a terminal each alone.

    Raises:
        ConfigError: the standard input is closed.
        DataError: a line is not UTF-8.
    """
    if sys.stdin is None:  # its descriptor is closed
        raise ConfigError("there is no query, and no standard input to read one from")
    return _typed() if sys.stdin.isatty() else _piped()


def _typed() -> Iterator[list[str]]:
    """Yield the queries typed at a terminal, one at a time; Ctrl-D ends them."""
    while True:
        click.echo("query: ", nl=False, err=True)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        if not blank(text := _decoded(line, "what was typed")):
            yield [text]


def _piped() -> Iterator[list[str]]:
    """Yield the lines of the standard input that are not blank, some at a time."""
    waiting: list[str] = []
    for number, line in enumerate(sys.stdin.buffer, 1):
        start = codecs.BOM_UTF8 if number == 1 else b""
        if not blank(text := _decoded(line.removeprefix(start), f"line {number} of the standard input")):
            waiting.append(text)
        if len(waiting) == _AT_ONCE:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _decoded(line: bytes, what: str) -> str:
    """Return a line as text, without white space at its ends; `DataError` where it is not UTF-8."""
    try:
        return line.decode().strip()
    except UnicodeDecodeError as error:
        raise DataError(f"{what} is not UTF-8: byte {error.object[error.start]:#04x}") from None
