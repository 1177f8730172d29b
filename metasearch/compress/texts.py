"""Reads running text for vocabularies: one text a line, plain, tab-separated or compressed."""

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from metasearch.errors import DataError

SUFFIXES = (".txt", ".tsv")
_COLUMNS = 2


def read_texts(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the texts of files, and of the files in folders, without blank ones.

    A line is a text. In a `.tsv` file the first two columns are, and further ones, which hold labels, are left out.
    Files that end in `.gz` are decompressed.

    Args:
        paths: files, or folders of which all files `*.txt`, `*.tsv`, `*.txt.gz` and `*.tsv.gz` are read.

    Raises:
        DataError: a path is missing, a file has no text, is damaged, or is not UTF-8; names file and line.
    """
    for path in text_files(paths):
        yield from read_file(path)


def text_files(paths: Iterable[Path]) -> list[Path]:
    """Return files as they are, and for each folder the text files in it, at any depth, by name.

    Raises:
        DataError: a path is missing, or a folder has no text file.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        inside = [path] if path.is_file() else sorted(file for file in path.rglob("*") if _is_text(file))
        if not inside:
            raise DataError(f"{path}: no file in it ends in {', '.join(SUFFIXES)}, or in one of these and .gz")
        found += inside
    return list(dict.fromkeys(found))


def read_file(path: Path) -> Iterator[str]:
    """Yield the texts of one file; raises as `read_texts` does."""
    table = path.name.removesuffix(".gz").endswith(".tsv")
    empty = True
    for line in _lines(path):
        for text in line.split("\t")[:_COLUMNS] if table else [line]:
            if text := text.strip():
                empty = False
                yield text
    if empty:
        raise DataError(f"{path}: the file has no text")


def _is_text(path: Path) -> bool:
    return path.is_file() and path.name.removesuffix(".gz").endswith(SUFFIXES)


def _lines(path: Path) -> Iterator[str]:
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}:{number}: not UTF-8: byte {error.object[error.start]:#04x}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}:{number + 1}: the compressed file is damaged: {error}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def _open(path: Path) -> BinaryIO:
    return io.BufferedReader(gzip.open(path)) if path.suffix == ".gz" else path.open("rb")
