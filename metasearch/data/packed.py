"""Opening text files that may be packed with gzip."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from metasearch.errors import DataError


def kind_of(path: Path) -> str:
    """Return what a file's name ends in, without `.gz`: `.csv` for `pairs.csv.gz`."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def byte_lines(path: Path) -> Iterator[bytes]:
    """Yield a file's lines with their ends and without a byte-order mark, unpacked where its name ends in `.gz`.

    Raises:
        DataError: it cannot be read, or what is packed is damaged; the message names the last whole line.
    """
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                yield line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file after line {number}: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _open(path: Path) -> BinaryIO:
    if path.suffix != ".gz":
        return path.open("rb")
    # Lines are cut faster by a buffered reader than by the gzip file itself.
    return io.BufferedReader(cast(io.RawIOBase, gzip.open(path)))


def exact_text(path: Path) -> str:
    """Return a file's text with its line ends as they are and without a byte-order mark.

    Raises:
        DataError: it cannot be read, is damaged, or is no UTF-8.
    """
    try:
        return b"".join(byte_lines(path)).decode()
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None


def not_utf8(path: Path, error: UnicodeDecodeError) -> DataError:
    """Return the error that names the line of a file's first wrong byte, and the byte; the whole file was decoded."""
    line = error.object.count(b"\n", 0, error.start) + 1
    return DataError(f"{path}:{line}: not UTF-8: byte {error.object[error.start]:#04x}")
