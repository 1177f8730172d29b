"""Reads running text for vocabularies: one text a line, plain, tab-separated or compressed.

The sides of a parallel corpus in Moses format, such as `WikiMatrix.de-en.de`, are plain texts, too.
"""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import text_lines, unpacked
from metasearch.data.parallel.files import recognise
from metasearch.errors import DataError
from metasearch.io import near

SUFFIXES = (".txt", ".tsv")

log = logging.getLogger(__name__)


def read_texts(paths: Iterable[Path]) -> Iterator[str]:
    """Yield non-blank texts from files and folders, one a line; in a `.tsv` file the first two columns are texts.

    `DataError` with file and line if a path is missing, empty, damaged, or not UTF-8.
    """
    for path in text_files(paths):
        yield from read_file(path)


def text_files(paths: Iterable[Path]) -> list[Path]:
    """Return the given files, and the text files in given folders, at any depth, by name.

    The log names some of the other files. `DataError` where a path is missing, or a folder has no text file.
    """
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise DataError(f"{path}: no such file or folder{near(path)}")
        files += _inside(path) if path.is_dir() else [path]
    return list(dict.fromkeys(files))


def read_file(path: Path) -> Iterator[str]:
    """Yield the texts in one file; raises as `read_texts` does."""
    table = unpacked(path.name).endswith(".tsv")
    empty = True
    for _, line in text_lines(path):
        for text in line.split("\t")[:2] if table else [line]:
            if not blank(text):
                empty = False
                yield text.strip()
    if empty:
        raise DataError(f"{path}: the file has no text")


def _inside(folder: Path) -> list[Path]:
    found = (path for path in folder.rglob("*") if not path.is_dir())
    files = sorted(path for path in found if not any(n.startswith(".") for n in path.relative_to(folder).parts))
    texts = [path for path in files if _is_text(path)]
    if not texts:
        raise DataError(
            f"{folder}: no file in it ends in {', '.join(SUFFIXES)}, or in one of these and .gz, or is named as a side "
            "of a parallel corpus, such as WikiMatrix.de-en.de"
        )
    others = [str(path.relative_to(folder)) for path in files if not _is_text(path)]
    if others:
        names = ", ".join(others[:3] + ["..."] * (len(others) > 3))
        log.info("%s: %d files are not texts and are skipped: %s", folder, len(others), names)
    return texts


def _is_text(path: Path) -> bool:
    if unpacked(path.name).endswith(SUFFIXES):
        return True
    part = recognise(path)
    return part is not None and not part.columns
