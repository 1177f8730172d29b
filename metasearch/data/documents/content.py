"""Reads documents bit by bit: text in UTF-8, lines of bounded length. Errors name file, byte and line."""

import codecs
import io
from collections.abc import Iterator
from pathlib import Path

from metasearch.data.formats.text_files import LONGEST_ROW, opened
from metasearch.errors import DataError

_SIZE = 2**18
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def texts(path: Path) -> Iterator[str]:
    """Yield the text of a file in parts, with LF for every CR LF and CR, without a byte-order mark."""
    newlines = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True)
    done, line = 0, 1
    with opened(path, lambda: f"{done:,} bytes") as file:
        while data := file.read(_SIZE):
            if not done and data.startswith(codecs.BOM_UTF8):
                data, done = data.removeprefix(codecs.BOM_UTF8), len(codecs.BOM_UTF8)
            _require_text(data, path, done, line)
            yield _decoded(newlines, data, path, done, line)
            done, line = done + len(data), line + data.count(b"\n")
    yield _decoded(newlines, b"", path, done, line)


def lines(path: Path) -> Iterator[str]:
    """Yield the lines in a file, each with LF; raises as `texts`, and for an overlong line."""
    number, rest = 1, ""
    for text in texts(path):
        *whole, rest = (rest + text).split("\n")
        longest = max([rest, *whole[:1]], key=len)
        if len(longest) > LONGEST_ROW:
            at = number if longest in whole[:1] else number + len(whole)
            raise DataError(f"{path}:{at}: the line has more than {LONGEST_ROW:,} characters")
        yield from (f"{line}\n" for line in whole)
        number += len(whole)
    if rest:
        yield rest


def whole(path: Path, most: int) -> str:
    """Return a file's text, up to a number of characters; raises as `texts`, and for an overlong file."""
    parts: list[str] = []
    size = 0
    for text in texts(path):
        parts.append(text)
        if (size := size + len(text)) > most:
            raise DataError(f"{path}: the file has more than {most:,} characters, the limit for such documents")
    return "".join(parts)


def _require_text(data: bytes, path: Path, done: int, line: int) -> None:
    for mark, name in _MARKS.items() if not done else ():
        if data.startswith(mark):
            raise DataError(f"{path}:1: not UTF-8 but {name}: byte 0 is {data[0]:#04x}; save the file as UTF-8")
    at = data.find(b"\0")
    if at >= 0:
        line += data.count(b"\n", 0, at)
        raise DataError(f"{path}:{line}: byte {done + at:,} is NUL: not UTF-8 text")


def _decoded(decoder: io.IncrementalNewlineDecoder, data: bytes, path: Path, done: int, line: int) -> str:
    try:
        return decoder.decode(data, final=not data)
    except UnicodeDecodeError as error:
        # The object begins with the bytes of a character that the part before ended in.
        at = error.start - (len(error.object) - len(data))
        line += data.count(b"\n", 0, max(at, 0))
        raise DataError(f"{path}:{line}: not UTF-8: byte {done + at:,} is {error.object[error.start]:#04x}") from None
