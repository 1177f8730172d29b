"""Opening text files that may be packed with gzip."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from metasearch.errors import DataError


def kind_of(path: Path) -> str:
    """Return what a file's name ends in, without `.gz`: `.csv` for `pairs.csv.gz`."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def byte_lines(path: Path) -> Iterator[bytes]:
    """Yield a file's lines with their ends, unpacked where its name ends in `.gz`.

    Raises:
        DataError: it cannot be read, or what is packed is damaged.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            yield from file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def exact_text(path: Path) -> str:
    """Return a file's text with its line ends as they are and without a byte-order mark.

    Raises:
        DataError: it cannot be read, is damaged, or is no UTF-8.
    """
    try:
        return b"".join(byte_lines(path)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None


def not_utf8(path: Path, error: UnicodeDecodeError) -> DataError:
    """Return the error that names the line of a file's first wrong byte, and the byte; the whole file was decoded."""
    line = error.object.count(b"\n", 0, error.start) + 1
    return DataError(f"{path}:{line}: not UTF-8: byte {error.object[error.start]:#04x}")
